package sizing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// The tests of this file are public bug reports; their ids stand in the names.

func limitPolicy(name v1alpha1.LimitPolicyName) func(*v1alpha1.ContainerPolicy) {
	return func(c *v1alpha1.ContainerPolicy) {
		c.CPU.Limit.Policy, c.Memory.Limit.Policy = name, name
	}
}

func memoryPercentile(p int32) func(*v1alpha1.ContainerPolicy) {
	return func(c *v1alpha1.ContainerPolicy) { c.Memory.Percentile = number(p) }
}

func memoryBounds(least, most string) func(*v1alpha1.ContainerPolicy) {
	return func(c *v1alpha1.ContainerPolicy) {
		if least != "" {
			c.Memory.Min = quantity(least)
		}
		if most != "" {
			c.Memory.Max = quantity(most)
		}
	}
}

// rare is 1000 samples of memory: 992 at 400Mi, 8 spread over the window at
// 1100Mi.
func rare() *history.Container {
	c := steady(0.3, 0)
	c.Memory = history.Sketch{}
	for i := range int64(1000) {
		value := 400.0 * mi
		if i%125 == 7 {
			value = 1100 * mi
		}
		c.Memory.Add(now.Unix()-(999-i)*600, value)
	}
	return c
}

// TestB11RareSpikes is field case B11.
func TestB11RareSpikes(t *testing.T) {
	t.Run("by default the peak counts, however rare", func(t *testing.T) {
		r := Recommend(subject(asks("app", "500m", "1200Mi", "1", "1200Mi"), rare(), bare()))[0]
		if got := *r.Sized.Memory.Target.Request; got < 1100*mi {
			t.Errorf("memory request %s, want at least 1100Mi", memory(r))
		}
	})
	for _, policy := range []v1alpha1.LimitPolicyName{v1alpha1.LimitRatio, v1alpha1.LimitAuto, v1alpha1.LimitEqual} {
		t.Run(fmt.Sprintf("a percentile that the user wrote is kept, but no limit (%s) below the peak", policy), func(t *testing.T) {
			spec := bare(memoryPercentile(99), limitPolicy(policy))
			r := Recommend(subject(asks("app", "500m", "1200Mi", "1", "1200Mi"), rare(), spec))[0]
			if got := float64(*r.Sized.Memory.Target.Request); got < 395*mi || got > 405*mi {
				t.Errorf("memory request %s, want 400Mi", memory(r))
			}
			if got := *r.Sized.Memory.Target.Limit; got < 1100*mi {
				t.Errorf("memory limit %s, want at least 1100Mi", memory(r))
			}
			wantReasons(t, r, v1alpha1.ReasonPeakAboveTarget)
			if note := noteOf(r, recommender.StepLimit, "peak"); !strings.Contains(note, "1100Mi") || !strings.Contains(note, "8 of 1000 samples") {
				t.Errorf("the note names neither peak nor samples: %q", note)
			}
		})
	}
}

// noteOf finds the note of a step that contains a text.
func noteOf(r Recommendation, name recommender.StepName, contains string) string {
	for _, s := range r.Sized.Derivation {
		if s.Step == name && strings.Contains(s.Note, contains) {
			return s.Note
		}
	}
	return ""
}

// TestB13OneKillIsEnough is field case B13.
func TestB13OneKillIsEnough(t *testing.T) {
	t.Run("one hot pod of twenty", func(t *testing.T) {
		h := killed(steady(0.1, 100*mi), time.Hour, 300*mi)
		r := Recommend(subject(asks("app", "100m", "300Mi", "", "300Mi"), h, bare(memoryPercentile(90))))[0]
		if got := memory(r); got != "400Mi/400Mi" {
			t.Errorf("memory %s, want 400Mi/400Mi (300Mi + 100Mi)", got)
		}
		wantReasons(t, r, v1alpha1.ReasonOOMKilled)
	})
	t.Run("the figure at the kill, when no limit is known", func(t *testing.T) {
		h := steady(0.1, 200*mi)
		h.OOMKills = []history.OOMKill{{At: now.Add(-time.Hour), Pod: "web-0", UsedBytes: 476450463}}
		r := Recommend(subject(asks("app", "100m", "300Mi"), h, bare()))[0]
		if got := *r.Sized.Memory.Target.Request; got < 581308063 {
			t.Errorf("memory request %d, want at least 581308063", got)
		}
	})
	t.Run("kills without any sample", func(t *testing.T) {
		h := &history.Container{}
		for i := range 5 {
			h = killed(h, time.Duration(i+1)*30*time.Second, 64*mi)
		}
		r := Recommend(subject(asks("app", "100m", "64Mi", "", "64Mi"), h, bare()))[0]
		if got := memory(r); got != "164Mi/164Mi" {
			t.Errorf("memory %s, want 164Mi/164Mi", got)
		}
		if r.Sized.CPU.Known {
			t.Errorf("a CPU target was invented: %s", cpu(r))
		}
	})
}

// TestB14KillsAtTheCeilingDoNotFeedOnThemselves is field case B14.
func TestB14KillsAtTheCeilingDoNotFeedOnThemselves(t *testing.T) {
	spec := bare(memoryBounds("", "4Gi"), func(c *v1alpha1.ContainerPolicy) { c.Memory.OOM.BumpPercent = number(100) })
	app := asks("app", "1", "4Gi", "1", "4Gi")
	for kills := 1; kills <= 8; kills++ {
		h := steady(0.5, 3*gi)
		for day := range kills {
			h = killed(h, time.Duration(day)*24*time.Hour+time.Hour, 4*gi)
		}
		r := Recommend(subject(app, h, spec))[0]
		if got := r.Sized.Memory.Uncapped; got != 8*gi {
			t.Errorf("after %d kills: uncapped %d, want 8Gi", kills, got)
		}
		if got := memory(r); got != "4Gi/4Gi" {
			t.Errorf("after %d kills: memory %s, want 4Gi/4Gi", kills, got)
		}
		wantReasons(t, r, v1alpha1.ReasonCappedByMax, v1alpha1.ReasonOOMKilled)
	}
	t.Run("the floor stays while the last kill is in the window", func(t *testing.T) {
		r := Recommend(subject(app, killed(steady(0.5, 3*gi), 7*24*time.Hour, 4*gi), spec))[0]
		if r.Sized.Memory.Uncapped != 8*gi {
			t.Errorf("uncapped %d, want 8Gi", r.Sized.Memory.Uncapped)
		}
	})
	t.Run("when the last kill has left the window, so has its floor", func(t *testing.T) {
		r := Recommend(subject(app, killed(steady(0.5, 3*gi), 9*24*time.Hour, 4*gi), spec))[0]
		if r.Sized.Memory.Uncapped != 3*gi || has(r, v1alpha1.ReasonCappedByMax) {
			t.Errorf("uncapped %d, reasons %v, want 3Gi and nothing capped", r.Sized.Memory.Uncapped, r.Sized.Reasons)
		}
	})
}

// TestB19MaxBoundsLimitsToo is field case B19.
func TestB19MaxBoundsLimitsToo(t *testing.T) {
	t.Run("a ratio from a template that mixes units", func(t *testing.T) {
		spec := bare(memoryBounds("1Gi", "8Gi"), limitPolicy(v1alpha1.LimitRatio))
		r := Recommend(subject(asks("app", "", "1024M", "", "8Gi"), steady(0.1, 476450463), spec))[0]
		if got := memory(r); got != "1Gi/8Gi" {
			t.Errorf("memory %s, want 1Gi/8Gi", got)
		}
		wantReasons(t, r, v1alpha1.ReasonLimitClamped)
	})
	t.Run("a target below min, and limits of eight times", func(t *testing.T) {
		spec := bare(memoryBounds("4Gi", "16Gi"), limitPolicy(v1alpha1.LimitRatio), func(c *v1alpha1.ContainerPolicy) {
			c.CPU.Min, c.CPU.Max = quantity("500m"), quantity("4")
		})
		r := Recommend(subject(asks("app", "500m", "4Gi", "4", "32Gi"), steady(0.1, gi), spec))[0]
		if cpu(r) != "500m/4" || memory(r) != "4Gi/16Gi" {
			t.Errorf("cpu %s, memory %s, want 500m/4 and 4Gi/16Gi", cpu(r), memory(r))
		}
		wantReasons(t, r, v1alpha1.ReasonLimitClamped, v1alpha1.ReasonRaisedToMin)
	})
}

// TestB20RoundingToWholeUnits is field case B20.
func TestB20RoundingToWholeUnits(t *testing.T) {
	for rounding, want := range map[v1alpha1.Rounding]int64{v1alpha1.RoundingMiB: 3136290816, v1alpha1.RoundingBytes: 3135326127} {
		spec := bare(func(c *v1alpha1.ContainerPolicy) { c.Memory.Rounding = rounding })
		r := Recommend(subject(asks("app", "1", "1Gi"), steady(0.1, 3135326127), spec))[0]
		got := *r.Sized.Memory.Target.Request
		q := Quantity(corev1.ResourceMemory, got)
		again := resource.MustParse(q.String())
		if got != want || again.Value() != want || strings.HasSuffix(q.String(), "m") {
			t.Errorf("rounding %s: %d, written %s, want %d", rounding, got, q.String(), want)
		}
	}
}

// TestB22WholeCoresUnderACeiling is field case B22.
func TestB22WholeCoresUnderACeiling(t *testing.T) {
	for _, tc := range []struct {
		raw      float64
		max      string
		multiple int32
		want     string
		reason   v1alpha1.Reason
	}{
		{raw: 3.85, want: "4/4"},
		{raw: 3.05, want: "4/4"},
		{raw: 4.0, want: "4/4"},
		{raw: 0.4, want: "1/1"},
		{raw: 3.2, max: "3500m", want: "3/3", reason: v1alpha1.ReasonWholeCoresRoundedDown},
		{raw: 3.85, multiple: 2, want: "4/4"},
		{raw: 4.1, multiple: 2, want: "6/6"},
		{raw: 4.1, max: "5", multiple: 2, want: "4/4", reason: v1alpha1.ReasonWholeCoresRoundedDown},
		{raw: 0.4, max: "800m", want: "2/2", reason: v1alpha1.ReasonWholeCoresDoNotFit},
	} {
		t.Run(fmt.Sprintf("%v cores, max %q, multiple of %d", tc.raw, tc.max, max(tc.multiple, 1)), func(t *testing.T) {
			spec := bare(func(c *v1alpha1.ContainerPolicy) {
				c.CPU.WholeCores = v1alpha1.WholeCoresAlways
				if tc.multiple > 0 {
					c.CPU.CoreMultiple = number(tc.multiple)
				}
				if tc.max != "" {
					c.CPU.Max = quantity(tc.max)
				}
			})
			r := Recommend(subject(asks("app", "2", "1Gi", "2", "1Gi"), steady(tc.raw, gi), spec))[0]
			if got := cpu(r); got != tc.want {
				t.Errorf("cpu %s, want %s", got, tc.want)
			}
			if tc.reason != "" {
				wantReasons(t, r, tc.reason)
			}
		})
	}
}

// TestB31NoLimitAppears is field case B31.
func TestB31NoLimitAppears(t *testing.T) {
	c := asks("app", "500m", "1Gi", "", "1Gi")
	c.Env = []corev1.EnvVar{{Name: "GODEBUG", Value: "madvdontneed=1"}}
	r := Recommend(subject(c, steady(1, gi), bare()))[0]
	if got := cpu(r); got != "1/unset" {
		t.Errorf("cpu %s, want 1/unset", got)
	}
}

// TestB31WithheldWithTheEditThatFreesIt is field case B31.
func TestB31WithheldWithTheEditThatFreesIt(t *testing.T) {
	c := asks("app", "2", "1Gi", "2", "1Gi")
	c.Env = []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}}
	r := Recommend(subject(c, steady(4, gi), bare()))[0]
	if got := cpu(r); got != "4/4" {
		t.Errorf("the target is published all the same: cpu %s, want 4/4", got)
	}
	wantReasons(t, r, v1alpha1.ReasonRuntimePinned)
	if len(r.Sized.Advice) == 0 {
		t.Error("no advice")
	}
}

// TestB32HeapsAreReadOnce is field case B32.
func TestB32HeapsAreReadOnce(t *testing.T) {
	jvm := func(options string) corev1.Container {
		c := asks("app", "1", "1Gi", "1", "1Gi")
		c.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: options}}
		return c
	}
	margin := func(percent int32) func(*v1alpha1.ContainerPolicy) {
		return func(c *v1alpha1.ContainerPolicy) { c.Memory.MarginPercent = number(percent) }
	}
	t.Run("memory never falls below what the JVM was told", func(t *testing.T) {
		c := jvm("-Xmx650m -XX:MaxMetaspaceSize=150m")
		r := Recommend(subject(c, steady(1, 420*mi), bare(margin(15))))[0]
		if got := *r.Sized.Memory.Target.Request; got < 800*mi || got >= gi {
			t.Errorf("memory %s, want at least 800Mi and less than 1Gi", memory(r))
		}
		wantReasons(t, r, v1alpha1.ReasonHeapFloor, v1alpha1.ReasonRuntimeNeedsRestart)
	})
	t.Run("a working set that follows the limit does not ratchet", func(t *testing.T) {
		limit := int64(gi)
		for cycle := range 30 {
			c := jvm("-XX:MaxRAMPercentage=75")
			c.Resources.Limits[corev1.ResourceMemory] = Quantity(corev1.ResourceMemory, limit)
			c.Resources.Requests[corev1.ResourceMemory] = Quantity(corev1.ResourceMemory, limit)
			r := Recommend(subject(c, steady(1, 0.78*float64(limit)), bare(margin(30))))[0]
			limit = *r.Sized.Memory.Target.Limit
			if limit != gi {
				t.Fatalf("cycle %d: memory %s, want 1Gi/1Gi", cycle, memory(r))
			}
		}
	})
	t.Run("a container that reads its limit once", func(t *testing.T) {
		spec := bare(func(c *v1alpha1.ContainerPolicy) { c.Memory.Adjust = v1alpha1.AdjustAtStart })
		r := Recommend(subject(asks("app", "1", "128Mi", "1", "128Mi"), steady(1, 412*mi), spec))[0]
		if got := memory(r); got != "412Mi/412Mi" {
			t.Errorf("memory %s, want 412Mi/412Mi", got)
		}
		wantReasons(t, r, v1alpha1.ReasonRuntimeNeedsRestart)
	})
}

// TestB38PodLimitRangeScalesEverythingAlike is field case B38.
func TestB38PodLimitRangeScalesEverythingAlike(t *testing.T) {
	main, side := asks("main", "1", "700Mi", "1", "700Mi"), asks("side", "1", "200Mi", "1", "200Mi")
	estimate := func(lower, target, upper float64) recommender.Need {
		return recommender.Need{Memory: recommender.Estimate{Known: true, Decreasable: true, Lower: lower * mi, Target: target * mi, Upper: upper * mi}}
	}
	policy := effective.Resolve(bare()).Container("main")
	pod := Pod{
		Template: &corev1.PodSpec{Containers: []corev1.Container{main, side}},
		Containers: []Container{
			{Name: "main", Need: estimate(890, 900, 910), Policy: policy, Verdict: verdict.Of(main, verdict.Input{})},
			{Name: "side", Need: estimate(295, 300, 305), Policy: policy, Verdict: verdict.Of(side, verdict.Input{})},
		},
		Replicas: 1,
		LimitRanges: []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}}}}},
	}
	for cycle := range 10 {
		sized := Fit(pod)
		if got, want := show(corev1.ResourceMemory, sized[0].Memory.Target), "768Mi/768Mi"; got != want {
			t.Fatalf("cycle %d: main %s, want %s", cycle, got, want)
		}
		if got, want := show(corev1.ResourceMemory, sized[1].Memory.Target), "256Mi/256Mi"; got != want {
			t.Fatalf("cycle %d: side %s, want %s", cycle, got, want)
		}
		for _, s := range sized {
			if m := s.Memory; m.Lower > *m.Target.Request || *m.Target.Request > m.Upper {
				t.Errorf("cycle %d: %s: lower %d, target %d, upper %d", cycle, s.Name, m.Lower, *m.Target.Request, m.Upper)
			}
		}
		// What was applied is what the next cycle finds.
		pod.Current = map[string]corev1.ResourceRequirements{}
		for i, s := range sized {
			r := pod.Template.Containers[i].Resources
			list := corev1.ResourceList{corev1.ResourceCPU: r.Requests[corev1.ResourceCPU], corev1.ResourceMemory: Quantity(corev1.ResourceMemory, *s.Memory.Target.Request)}
			pod.Current[s.Name] = corev1.ResourceRequirements{Requests: list, Limits: list}
		}
	}
}
