package updater

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// The tests of this file are public bug reports; their ids stand in the names.

// applied carries out the first step of a decision as API server and kubelet
// do when nothing stands in the way, and returns whether there was one.
func applied(t *testing.T, p *corev1.Pod, d Decision) bool {
	t.Helper()
	if d.Record != nil {
		remember(t, p, *d.Record)
	}
	if len(d.Steps) == 0 {
		return false
	}
	p.Spec = *specWith(&p.Spec, d.Steps[0].Changes)
	p.Generation++
	settle(p)
	return true
}

// has is what a container asks for of a resource.
func has(p *corev1.Pod, container string, r corev1.ResourceName) string {
	c, _ := resizable(&p.Spec, container)
	return sizeOf(r, &c.Resources).text(r)
}

// TestB23APodWithoutRequests is field case B23.
func TestB23APodWithoutRequests(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeInPlace, v1alpha1.ModeInPlaceOrRecreate} {
		in := input(pod(asks("app")), to("app", "100m", "128Mi"))
		in.Policy.Mode, in.Policy.Update.Restart, in.Restart.Allowed, in.Workload.SizedAtCreation = mode, v1alpha1.RestartAlways, true, true
		for range 3 {
			d := Plan(in)
			if d.Action != Skip || d.Reason != v1alpha1.ReasonWouldChangeQoS || d.Record != nil {
				t.Errorf("mode %s: %s %s: %s", mode, d.Action, d.Reason, d.Message)
			}
		}
	}
}

// TestB25AMemoryLimitIsNotLoweredUnderUse is field case B25.
func TestB25AMemoryLimitIsNotLoweredUnderUse(t *testing.T) {
	for name, tc := range map[string]struct {
		minor   int
		used    int64
		idle    bool // a second container
		want    string
		because v1alpha1.Reason
	}{
		"(a) a server of 1.33":                    {33, 150 * mi, false, "300Mi/1Gi", v1alpha1.ReasonLimitDecreaseUnsupported},
		"(a) a server of 1.33, with 700Mi in use": {33, 700 * mi, false, "300Mi/1Gi", v1alpha1.ReasonMemoryInUse},
		"(b) a server of 1.34, with 700Mi in use": {34, 700 * mi, false, "300Mi/1Gi", v1alpha1.ReasonMemoryInUse},
		"(c) with a second, idle container":       {34, 700 * mi, true, "300Mi/1Gi", v1alpha1.ReasonMemoryInUse},
		"(d) with 150Mi in use":                   {34, 150 * mi, false, "300Mi/600Mi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			containers := []corev1.Container{asks("app", "", "512Mi", "", "1Gi")}
			if tc.idle {
				containers = append(containers, asks("idle", "10m", "64Mi", "", "128Mi"))
			}
			p := pod(containers...)
			in := input(p, to("app", "", "300Mi", "", "600Mi"))
			in.Server.Minor = tc.minor
			in.Usage.Containers["app"] = Use{MemoryBytes: tc.used, MemoryPeakBytes: tc.used}
			d := Plan(in)
			if !applied(t, p, d) || has(p, "app", corev1.ResourceMemory) != tc.want {
				t.Errorf("memory %s, want %s: %s", has(p, "app", corev1.ResourceMemory), tc.want, d.Message)
			}
			if tc.because != "" && !heldFor(d, tc.because) {
				t.Errorf("held %+v, want reason %s", d.Held, tc.because)
			}
		})
	}
}

// TestB26ASizeThatCanNeverFit is field case B26.
func TestB26ASizeThatCanNeverFit(t *testing.T) {
	one := func() *corev1.Pod { return pod(asks("app", "1", "1Gi", "1", "1Gi")) }
	small := func(in *Input, others int64) {
		in.Node.Allocatable = sizing.Capacity{CPUMilli: 4000, MemoryBytes: 64 * gi}
		in.Node.Held = sizing.Capacity{CPUMilli: 1000 + others, MemoryBytes: 2 * gi}
	}
	t.Run("(a) nothing above what the node has is sent", func(t *testing.T) {
		p := one()
		in := input(p, to("app", "6", "1Gi", "6", "1Gi"))
		small(&in, 0)
		d := Plan(in)
		if !applied(t, p, d) || has(p, "app", corev1.ResourceCPU) != "4" || !heldFor(d, v1alpha1.ReasonNodeTooSmall) {
			t.Errorf("cpu %s: %s %+v", has(p, "app", corev1.ResourceCPU), d.Message, d.Held)
		}
	})
	t.Run("(a) where the node is not known, it is put back, and not asked for again", func(t *testing.T) {
		p := one()
		in := input(p, to("app", "6", "1Gi", "6", "1Gi"))
		in.Node = Node{Name: "node-1"}
		send(t, p, Plan(in))
		pending(p, corev1.PodReasonInfeasible, p.Generation)
		p.Status.Conditions[1].Message = "Node didn't have enough capacity: cpu, requested: 6000, capacity: 4000"
		d := Plan(in)
		if d.Action != Revert || d.Reason != v1alpha1.ReasonNodeTooSmall {
			t.Fatalf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
		p.Status.Conditions = p.Status.Conditions[:1]
		if applied(t, p, d); has(p, "app", corev1.ResourceCPU) != "1" {
			t.Fatalf("cpu %s, want 1", has(p, "app", corev1.ResourceCPU))
		}
		for _, target := range []string{"6", "8", "7"} {
			in.Target.Containers[0] = to("app", target, "1Gi", target, "1Gi")
			in.Now = in.Now.Add(24 * time.Hour)
			in.Target.ReadAt = in.Now
			if d := Plan(in); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonNodeTooSmall {
				t.Errorf("target %s: %s %s", target, d.Action, d.Message)
			}
		}
		in.Target.Containers[0] = to("app", "2", "1Gi", "2", "1Gi")
		if d := Plan(in); d.Action != Resize {
			t.Errorf("a smaller size is not asked for: %s", d.Message)
		}
	})
	t.Run("(b) a deferred size gives its claim back after ten minutes, and the part that fits is taken", func(t *testing.T) {
		p := one()
		in := input(p, to("app", "3", "1Gi", "3", "1Gi"))
		in.Node = Node{Name: "node-1"} // The cache has not seen the node.
		send(t, p, Plan(in))
		pending(p, corev1.PodReasonDeferred, p.Generation)
		for minute := range 10 {
			in.Now = now.Add(time.Duration(minute) * time.Minute)
			if d := Plan(in); d.Action != Wait || d.Record != nil || d.Reason != v1alpha1.ReasonResizeDeferred {
				t.Fatalf("after %d minutes: %s %s", minute, d.Action, d.Message)
			}
		}
		in.Now = now.Add(10 * time.Minute)
		d := Plan(in)
		if d.Action != Revert || d.Reason != v1alpha1.ReasonResizeDeferred || d.Ended == nil || d.Ended.State != Deferred {
			t.Fatalf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
		p.Status.Conditions = p.Status.Conditions[:1]
		if applied(t, p, d); has(p, "app", corev1.ResourceCPU) != "1" {
			t.Fatalf("cpu %s, want 1", has(p, "app", corev1.ResourceCPU))
		}
		if d := Plan(in); d.Action != Wait || !d.Until.Equal(now.Add(20*time.Minute)) {
			t.Errorf("%s %s until %s", d.Action, d.Message, d.Until)
		}
		small(&in, 2000)
		d = Plan(in)
		if applied(t, p, d); has(p, "app", corev1.ResourceCPU) != "2" {
			t.Errorf("cpu %s, want 2: %s", has(p, "app", corev1.ResourceCPU), d.Message)
		}
	})
}

// send writes a decision's record and first step, and leaves the answer to the
// test.
func send(t *testing.T, p *corev1.Pod, d Decision) {
	t.Helper()
	if d.Record == nil || len(d.Steps) == 0 {
		t.Fatalf("nothing to send: %s %s", d.Action, d.Message)
	}
	remember(t, p, *d.Record)
	p.Spec = *specWith(&p.Spec, d.Steps[0].Changes)
	p.Generation++
}

// TestB28WholeCoresUnderAStaticCPUManager is field case B28.
func TestB28WholeCoresUnderAStaticCPUManager(t *testing.T) {
	p := pod(asks("app", "1", "300Mi", "1", "300Mi"))
	in := input(p, to("app", "2", "300Mi", "2", "300Mi"))
	send(t, p, Plan(in))
	pending(p, corev1.PodReasonInfeasible, p.Generation)
	p.Status.Conditions[1].Message = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	d := Plan(in)
	if d.Action != Revert || d.Reason != v1alpha1.ReasonStaticCPUManager {
		t.Fatalf("%s %s: %s", d.Action, d.Reason, d.Message)
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	if applied(t, p, d); has(p, "app", corev1.ResourceCPU) != "1" {
		t.Fatalf("cpu %s, want 1", has(p, "app", corev1.ResourceCPU))
	}
	for _, cores := range []string{"3", "2", "4", "500m"} {
		in.Target.Containers[0] = to("app", cores, "300Mi", cores, "300Mi")
		in.Now = in.Now.Add(24 * time.Hour)
		in.Target.ReadAt = in.Now
		if d := Plan(in); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonStaticCPUManager {
			t.Errorf("target %s: %s %s: %s", cores, d.Action, d.Reason, d.Message)
		}
	}
	t.Run("memory is not concerned", func(t *testing.T) {
		in.Target.Containers[0] = to("app", "3", "600Mi", "3", "600Mi")
		if got := describe(Plan(in).Steps); got != "app memory 300Mi → 600Mi" {
			t.Errorf("steps %s", got)
		}
	})
	t.Run("what one pod was told holds for the next on that node", func(t *testing.T) {
		in := input(pod(asks("app", "1", "300Mi", "1", "300Mi")), to("app", "2", "300Mi", "2", "300Mi"))
		in.Node.StaticCPU = true
		if d := Plan(in); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonStaticCPUManager {
			t.Errorf("%s %s", d.Action, d.Message)
		}
		in.Node = Node{Name: "node-2"}
		if d := Plan(in); d.Action != Resize {
			t.Errorf("elsewhere: %s %s", d.Action, d.Message)
		}
	})
}

// TestB31DoesAGoServiceSeeItsCPU is field case B31.
func TestB31DoesAGoServiceSeeItsCPU(t *testing.T) {
	literal := corev1.EnvVar{Name: "GOMAXPROCS", Value: "2"}
	fromLimit := corev1.EnvVar{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}
	frozen := corev1.EnvVar{Name: "GODEBUG", Value: "updatemaxprocs=0"}
	coupled, want := []string{"2", "", "2"}, []string{"4", "", "4"}
	for name, tc := range map[string]struct {
		env         []corev1.EnvVar
		has, target []string
		then        string
		because     v1alpha1.Reason
		adviceAbout string
	}{
		"(a) no variable":                 {has: coupled, target: want, then: "4"},
		"(b) GOMAXPROCS=2":                {env: []corev1.EnvVar{literal}, has: coupled, target: want, then: "2", because: v1alpha1.ReasonRuntimePinned, adviceAbout: "GOMAXPROCS"},
		"(c) GOMAXPROCS from limits.cpu":  {env: []corev1.EnvVar{fromLimit}, has: coupled, target: want, then: "2", because: v1alpha1.ReasonRuntimeNeedsRestart, adviceAbout: "GOMAXPROCS"},
		"(d) no limit":                    {has: []string{"500m"}, target: []string{"1"}, then: "1"},
		"(e) GODEBUG=updatemaxprocs=0":    {env: []corev1.EnvVar{frozen}, has: coupled, target: want, then: "2", because: v1alpha1.ReasonRuntimeNeedsRestart, adviceAbout: "GODEBUG"},
		"(d) no limit, GOMAXPROCS=2":      {env: []corev1.EnvVar{literal}, has: []string{"500m"}, target: []string{"1"}, then: "1"},
		"a request apart from its limit":  {env: []corev1.EnvVar{fromLimit}, has: []string{"500m", "", "2"}, target: []string{"1", "", "4"}, then: "1/2", because: v1alpha1.ReasonRuntimeNeedsRestart, adviceAbout: "GOMAXPROCS"},
		"(a) and down again, by one core": {has: want, target: []string{"3", "", "3"}, then: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			c := asks("app", tc.has...)
			c.Env = tc.env
			p := pod(c)
			target := to("app", tc.target...)
			target.Runtime = v1alpha1.RuntimeGo
			d := Plan(input(p, target))
			if applied(t, p, d); has(p, "app", corev1.ResourceCPU) != tc.then {
				t.Errorf("cpu %s, want %s: %s %s", has(p, "app", corev1.ResourceCPU), tc.then, d.Message, d.Reason)
			}
			if restarts(d.Steps) {
				t.Error("it restarts a container")
			}
			if tc.because == "" {
				return
			}
			if !heldFor(d, tc.because) {
				t.Fatalf("held %+v, want %s", d.Held, tc.because)
			}
			if advice := strings.Join(d.Held[0].Advice, "; "); !strings.Contains(advice, tc.adviceAbout) {
				t.Errorf("advice %q does not speak of %s", advice, tc.adviceAbout)
			}
		})
	}
}

// TestB32AJVMReadsItsMemoryOnce is field case B32.
func TestB32AJVMReadsItsMemoryOnce(t *testing.T) {
	heap := corev1.EnvVar{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx650m -XX:MaxMetaspaceSize=150m"}
	jvm := func(policy corev1.ResourceResizeRestartPolicy) *corev1.Pod {
		c := asks("app", "500m", "1Gi", "1", "1Gi")
		c.Env = []corev1.EnvVar{heap}
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: policy}}
		return pod(c)
	}
	target := to("app", "700m", "800Mi", "1400m", "800Mi")
	t.Run("(a) with a resizePolicy that restarts, and leave to: once, with one restart", func(t *testing.T) {
		p := jvm(corev1.RestartContainer)
		in := input(p, target)
		in.Policy.Update.Restart, in.Restart.Allowed = v1alpha1.RestartAlways, true
		in.Usage.Containers["app"] = Use{MemoryBytes: 420 * mi, MemoryPeakBytes: 420 * mi}
		d := Plan(in)
		if got := describe(d.Steps); got != "app cpu 500m/1 → 700m/1400m, then app memory 1Gi → 800Mi" || !restarts(d.Steps[1:]) || restarts(d.Steps[:1]) {
			t.Errorf("steps %s, %+v", got, d.Steps)
		}
		writes := 0
		for applied(t, p, Plan(in)) {
			writes++
		}
		r, err := RecordOf(p)
		if writes != 2 || err != nil || has(p, "app", corev1.ResourceMemory) != "800Mi" || InducedRestarts(nil).With(*r.Last)["app"] != 1 {
			t.Errorf("%d writes, memory %s, last %+v, %v", writes, has(p, "app", corev1.ResourceMemory), r.Last, err)
		}
	})
	t.Run("(b) without one, memory stays and CPU moves", func(t *testing.T) {
		d := Plan(input(jvm(corev1.NotRequired), target))
		if got := describe(d.Steps); got != "app cpu 500m/1 → 700m/1400m" || !heldFor(d, v1alpha1.ReasonRuntimeNeedsRestart) {
			t.Errorf("steps %s, held %+v", got, d.Held)
		}
	})
	t.Run("(c) a raw target of 1.4% above makes no move in 30 cycles", func(t *testing.T) {
		c := asks("app", "500m", "1Gi", "1", "1Gi")
		c.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:MaxRAMPercentage=75"}}
		p := pod(c)
		raw := int64(math.Round(1.014 * gi))
		in := input(p, Container{Name: "app", Memory: Want{Size: Size{raw, raw}, Lower: raw, Upper: raw}})
		in.Policy.MinChangePercent = 10
		for cycle := range 30 {
			in.Now = in.Now.Add(time.Minute)
			in.Target.ReadAt = in.Now
			if d := Plan(in); d.Action != Skip || d.Record != nil {
				t.Fatalf("cycle %d: %s %s", cycle, d.Action, d.Message)
			}
		}
	})
	t.Run("(d) what a person says reads its limit once is treated alike", func(t *testing.T) {
		target := to("app", "", "412Mi", "", "412Mi")
		target.Adjust = v1alpha1.AdjustAtStart
		d := Plan(input(pod(asks("app", "100m", "128Mi", "", "128Mi")), target))
		if len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonRuntimeNeedsRestart {
			t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
	})
}

// TestB37AgainstAQuota is field case B37.
func TestB37AgainstAQuota(t *testing.T) {
	for _, key := range []corev1.ResourceName{"cpu", "requests.cpu", "limits.cpu"} {
		t.Run("first: no more than the quota has, under the key "+string(key), func(t *testing.T) {
			quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
			hard := asks("", "4", "8Gi").Resources.Requests
			quota.Status.Hard = corev1.ResourceList{key: hard[corev1.ResourceCPU], "memory": hard[corev1.ResourceMemory]}
			used := int64(3800)
			for i := range 2 {
				p := pod(asks("app", "500m", "256Mi", "500m", "256Mi"))
				in := input(p, to("app", "1", "256Mi", "1", "256Mi"))
				quota.Status.Used = corev1.ResourceList{key: sizing.Quantity(corev1.ResourceCPU, used), "memory": sizing.Quantity(corev1.ResourceMemory, 2*gi)}
				in.Space.Quotas = []corev1.ResourceQuota{quota}
				in.Target.Containers[0].Whole = v1alpha1.WholeCoresNever
				d := Plan(in)
				for _, s := range d.Steps {
					used += s.Changes[0].To.Request - s.Changes[0].From.Request
				}
				if used > 4000 || !heldFor(d, v1alpha1.ReasonQuotaExceeded) || !strings.Contains(d.Held[0].Message, "key "+string(key)) {
					t.Errorf("pod %d: %dm used after %s; held %+v", i, used, describe(d.Steps), d.Held)
				}
				if d.Action == Recreate {
					t.Error("a pod is recreated")
				}
			}
			if used != 4000 {
				t.Errorf("%dm used, want what there was", used)
			}
		})
	}
	refused := func(target string) Decision {
		in := input(pod(asks("app", "500m", "256Mi", "500m", "256Mi")), to("app", target, "256Mi", target, "256Mi"))
		in.Space.QuotasUnknown = `resourcequotas is forbidden`
		return Plan(in)
	}
	t.Run("second: quotas that cannot be listed refuse increases", func(t *testing.T) {
		if d := refused("1"); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonQuotaUnknown {
			t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
	})
	t.Run("third: and not decreases", func(t *testing.T) {
		if d := refused("300m"); describe(d.Steps) != "app cpu 500m → 300m" {
			t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
	})
}

// TestB38APodLimitRangeIsMetOnce is field case B38: sizing and plan together
// make one write in ten cycles.
func TestB38APodLimitRangeIsMetOnce(t *testing.T) {
	p := pod(asks("main", "1", "700Mi", "1", "700Mi"), asks("side", "1", "200Mi", "1", "200Mi"))
	ranges := []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypePod, Max: asks("", "", "1Gi").Resources.Requests},
	}}}}
	need := func(lower, target, upper float64) recommender.Need {
		return recommender.Need{Memory: recommender.Estimate{Known: true, Decreasable: true, Lower: lower * mi, Target: target * mi, Upper: upper * mi}}
	}
	policy := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace}).Container("main")
	toFit := sizing.Pod{Template: p.Spec.DeepCopy(), Replicas: 1, LimitRanges: ranges, Containers: []sizing.Container{
		{Name: "main", Need: need(890, 900, 910), Policy: policy}, {Name: "side", Need: need(295, 300, 305), Policy: policy},
	}}
	for cycle := range 10 {
		toFit.Current = resourcesOf(p)
		in := input(p)
		in.Now = now.Add(time.Duration(cycle) * time.Hour)
		in.Target.ReadAt, in.Policy.MinChangePercent, in.Space.LimitRanges = in.Now, 5, ranges
		for _, s := range sizing.Fit(toFit) {
			in.Target.Containers = append(in.Target.Containers, Container{Name: s.Name, CPU: WantOf(s.CPU), Memory: WantOf(s.Memory)})
		}
		d := Plan(in)
		if wrote := applied(t, p, d); wrote != (cycle == 0) {
			t.Errorf("cycle %d: %s %s", cycle, d.Action, d.Message)
		}
		if a, b := has(p, "main", corev1.ResourceMemory), has(p, "side", corev1.ResourceMemory); a != "768Mi" || b != "256Mi" {
			t.Fatalf("cycle %d: %s and %s, want 768Mi and 256Mi", cycle, a, b)
		}
	}
}

// TestB40TheSameQuantitySpeltOtherwise is field case B40.
func TestB40TheSameQuantitySpeltOtherwise(t *testing.T) {
	for _, tc := range []struct {
		resource  corev1.ResourceName
		git, live string
		drift     bool
	}{
		{corev1.ResourceCPU, "1", "1", false},
		{corev1.ResourceCPU, "1000m", "1", false},
		{corev1.ResourceCPU, "1500m", "1.5", false},
		{corev1.ResourceCPU, "0.1", "100m", false},
		{corev1.ResourceMemory, "1000M", "1G", false},
		{corev1.ResourceMemory, "2Gi", "2048Mi", false},
		{corev1.ResourceMemory, "128974848", "123Mi", false},
		{corev1.ResourceMemory, "1G", "1Gi", true},
		{corev1.ResourceCPU, "1500m", "2", true},
	} {
		t.Run(fmt.Sprintf("%s %s and %s", tc.resource, tc.git, tc.live), func(t *testing.T) {
			list := func(value string) []string {
				if tc.resource == corev1.ResourceCPU {
					return []string{value, "64Mi"}
				}
				return []string{"100m", value}
			}
			template, p := pod(asks("app", list(tc.git)...)), pod(asks("app", list(tc.live)...))
			target := to("app", list(tc.git)...)
			drift := DriftOf(&template.Spec, p, []Container{target})
			if (len(drift) > 0) != tc.drift {
				t.Errorf("drift %+v, want %v", drift, tc.drift)
			}
			if d := Plan(input(p, target)); (len(d.Steps) > 0) != tc.drift {
				t.Errorf("%s %s", d.Action, d.Message)
			}
		})
	}
}

// TestB43EveryReleaseUndoesTheSizing is field case B43.
func TestB43EveryReleaseUndoesTheSizing(t *testing.T) {
	template := pod(asks("app", "500m", "512Mi"))
	withSidecar(template, asks("logger", "50m", "64Mi"))
	targets := []Container{to("app", "1200m", "900Mi"), to("logger", "80m", "100Mi")}
	for i := range 3 {
		p := template.DeepCopy()
		p.UID, p.CreationTimestamp = types.UID(fmt.Sprint("uid-", i)), metav1.NewTime(now.Add(-time.Second))
		in := input(p, targets...)
		in.Policy.Pace.IncreaseCooldown = time.Hour
		if !applied(t, p, Plan(in)) {
			t.Fatal("nothing is sent")
		}
		for container, want := range map[string][2]string{"app": {"1200m", "900Mi"}, "logger": {"80m", "100Mi"}} {
			if cpu, memory := has(p, container, corev1.ResourceCPU), has(p, container, corev1.ResourceMemory); cpu != want[0] || memory != want[1] {
				t.Errorf("pod %d, %s: %s, %s, want %v after one look", i, container, cpu, memory, want)
			}
		}
		drift := DriftOf(&template.Spec, p, targets)
		var names []string
		for _, d := range drift {
			names = append(names, fmt.Sprintf("%s %s→%s", d.Container, d.Memory.Template.Request, d.Memory.Live.Request))
		}
		if want := []string{"app 512Mi→900Mi", "logger 64Mi→100Mi"}; !slices.Equal(names, want) {
			t.Errorf("drift %v, want %v", names, want)
		}
	}
	t.Run("a new pod goes down at once as well", func(t *testing.T) {
		p := template.DeepCopy()
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
		in := input(p, to("app", "100m", "100Mi"))
		in.Policy.Pace.CPUMaxStepPercent, in.Policy.Pace.MaxStepPercent = 25, 25
		if got := describe(Plan(in).Steps); got != "app cpu 500m → 100m, app memory 512Mi → 100Mi" {
			t.Errorf("steps %s", got)
		}
	})
	t.Run("and after something has grown before it was ready", func(t *testing.T) {
		p := template.DeepCopy()
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		in := input(p, to("app", "100m", "512Mi"), to("logger", "80m", "64Mi"))
		in.Policy.Pace.CPUMaxStepPercent = 25
		if !applied(t, p, Plan(in)) || has(p, "logger", corev1.ResourceCPU) != "80m" || has(p, "app", corev1.ResourceCPU) != "500m" {
			t.Fatalf("before it is ready, it has %s and %s", has(p, "app", corev1.ResourceCPU), has(p, "logger", corev1.ResourceCPU))
		}
		p.Status.Conditions[0].Status = corev1.ConditionTrue
		if got := describe(Plan(in).Steps); got != "app cpu 500m → 100m" {
			t.Errorf("steps %s", got)
		}
	})
}

// TestB49ATargetThatAlternates is the second run of field case B49.
func TestB49ATargetThatAlternates(t *testing.T) {
	p := pod(asks("app", "100m", "64Mi"))
	in := input(p)
	in.Policy.MinChangePercent = 10
	writes := 0
	for cycle := range 20 {
		target := []string{"55m", "54m"}[cycle%2]
		in.Target.Containers = []Container{to("app", target, "64Mi")}
		in.Now = in.Now.Add(30 * time.Second)
		in.Target.ReadAt = in.Now
		if applied(t, p, Plan(in)) {
			writes++
		}
	}
	if writes != 1 || has(p, "app", corev1.ResourceCPU) != "55m" {
		t.Errorf("%d resizes, cpu %s, want one to 55m", writes, has(p, "app", corev1.ResourceCPU))
	}
}

// TestB50TheLargestNeedGoesFirst is the order of field case B50, and that a pod
// without history is not changed.
func TestB50TheLargestNeedGoesFirst(t *testing.T) {
	waiting := func(change func(*Input), target Container) Decision {
		in := input(burstable(), target)
		in.Rate = Grant{}
		if change != nil {
			change(&in)
		}
		return Plan(in)
	}
	much := to("app", "5", "512Mi", "5", "1Gi")
	order := []Decision{
		waiting(func(in *Input) { killed(in.Pod, "app", time.Minute) }, to("app", "500m", "600Mi", "1", "1200Mi")),
		waiting(nil, much),
		waiting(nil, upCPU),
		waiting(nil, to("app", "400m", "512Mi", "800m", "1Gi")),
	}
	for i, d := range order {
		if d.Action != Wait || d.Reason != v1alpha1.ReasonRateLimited || d.Record != nil {
			t.Errorf("%d: %s %s", i, d.Action, d.Message)
		}
	}
	if !slices.IsSortedFunc(order, func(a, b Decision) int { return a.Urgency.Compare(b.Urgency) }) {
		t.Errorf("not in order: %+v", order)
	}
	if order[0].Urgency.Compare(order[1].Urgency) >= 0 || order[1].Urgency.Compare(order[2].Urgency) >= 0 {
		t.Error("they are all alike")
	}
	loading := waiting(func(in *Input) { in.Target.History, in.Rate.Allowed = v1alpha1.ReasonHistoryLoading, true }, much)
	if loading.Action != Wait || loading.Reason != v1alpha1.ReasonHistoryLoading || len(loading.Steps) > 0 {
		t.Errorf("%s %s", loading.Action, loading.Message)
	}
}
