package recommender

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	step = 5 * time.Minute
	day  = 24 * time.Hour
	mi   = 1 << 20
)

// past builds a history that ends now: cores and bytes say what was used at a
// time before it.
func past(length time.Duration, cores, bytes func(ago time.Duration) float64) *history.Container {
	c := &history.Container{CPUPressure: -1, MemoryPressure: -1}
	for ago := length - step; ago >= 0; ago -= step {
		end := now.Add(-ago).Unix()
		if cores != nil {
			c.AddCPU(end, cores(ago), -1)
		}
		if bytes != nil {
			c.Memory.Add(end, bytes(ago))
		}
	}
	return c
}

func level(v float64) func(time.Duration) float64 { return func(time.Duration) float64 { return v } }

// input is eight flat days at one core and 512Mi, under the profile Balanced in place
// with the percentile written out.
func input(edits ...func(*Input)) Input {
	in := Input{
		Now: now, Window: 8 * day, Step: step, Minimum: 3 * day, MinChangePercent: 10,
		History: past(8*day, level(1), level(512*mi)),
		Policy:  policy(95),
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func policy(cpuPercentile int32) effective.Container {
	c := v1alpha1.ContainerPolicy{Name: "*"}
	c.CPU.Percentile = &cpuPercentile
	return effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace, Containers: []v1alpha1.ContainerPolicy{c}}).Container("app")
}

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.011*want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestRecommend(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*Input)
		cpu, memory float64 // targets; 0 is unknown
		decreasable bool
		confidence  float64
		reasons     []v1alpha1.Reason
	}{
		"flat use gets its level and the margin": {
			change: func(*Input) {}, cpu: 1.15, memory: 512 * 1.08 * mi, decreasable: true, confidence: 1,
		},
		"no history is no recommendation, and never zero": {
			change:  func(in *Input) { in.History = nil },
			reasons: []v1alpha1.Reason{v1alpha1.ReasonNoSeries},
		},
		"what the source could not give is said, and lowers nothing": {
			change: func(in *Input) {
				in.Faults = []*history.Fault{{Reason: v1alpha1.ReasonPartialHistory, Err: history.ErrNoData}}
			},
			cpu: 1.15, memory: 512 * 1.08 * mi, confidence: 1, reasons: []v1alpha1.Reason{v1alpha1.ReasonPartialHistory},
		},
		"a day of history lowers nothing yet": {
			change: func(in *Input) { in.History = past(day, level(1), level(512*mi)) },
			cpu:    1.15, memory: 512 * 1.08 * mi, confidence: 1.0 / 7,
			reasons: []v1alpha1.Reason{v1alpha1.ReasonWindowNotCovered, v1alpha1.ReasonShortHistory},
		},
		"two days a week apart are two days of history": {
			change: func(in *Input) {
				gap := past(day, level(1), nil)
				for ago := 7*day - step; ago >= 6*day; ago -= step {
					gap.AddCPU(now.Add(-ago).Unix(), 1, -1)
				}
				in.History = gap
			},
			cpu: 1.15, confidence: 4.0 / 7, decreasable: true, // They touch four calendar days.
		},
		"new load is met by the last hour": {
			change: func(in *Input) {
				in.History = past(8*day, func(ago time.Duration) float64 {
					if ago < time.Hour {
						return 3
					}
					return 1
				}, level(512*mi))
			},
			cpu: 3 * 1.15, memory: 512 * 1.08 * mi, decreasable: true, confidence: 1,
		},
		"a burst of five minutes in the last hour is no load": {
			change: func(in *Input) {
				in.History = past(8*day, func(ago time.Duration) float64 {
					if ago < step {
						return 3
					}
					return 1
				}, level(512*mi))
			},
			cpu: 1.15, memory: 512 * 1.08 * mi, decreasable: true, confidence: 1,
		},
		"an old peak of memory is not forgotten within the window": {
			change: func(in *Input) {
				in.History = past(8*day, level(1), func(ago time.Duration) float64 {
					if ago == 6*day {
						return 2048 * mi
					}
					return 512 * mi
				})
			},
			cpu: 1.15, memory: 2048 * 1.08 * mi, decreasable: true, confidence: 1,
		},
		"a percentile of memory that the user wrote switches the recent floor off": {
			change: func(in *Input) {
				in.Policy.Memory.Percentile, in.Policy.Memory.PercentileGiven = 50, true
				in.History = past(8*day, level(1), func(ago time.Duration) float64 {
					if ago < time.Hour {
						return 2048 * mi
					}
					return 512 * mi
				})
			},
			cpu: 1.15, memory: 512 * 1.08 * mi, decreasable: true, confidence: 1,
		},
		"throttled usage counts as more": {
			change: func(in *Input) {
				h := &history.Container{}
				for ago := 8*day - step; ago >= 0; ago -= step {
					h.AddCPU(now.Add(-ago).Unix(), 0.05, 1)
				}
				in.History = h
			},
			cpu: 0.1 * 1.15, decreasable: true, confidence: 1, reasons: []v1alpha1.Reason{v1alpha1.ReasonThrottled},
		},
		"kills whose base keeps growing stop at four times the template": {
			change: func(in *Input) {
				in.TemplateMemoryBytes = 512 * mi
				for i, limit := range []float64{512, 1024, 2048, 4096} {
					in.History.OOMKills = append(in.History.OOMKills, history.OOMKill{
						At: now.Add(time.Duration(i-5) * time.Hour), Pod: "web-0", LimitBytes: limit * mi,
					})
				}
			},
			cpu: 1.15, memory: 2048 * mi, decreasable: true, confidence: 1,
			reasons: []v1alpha1.Reason{v1alpha1.ReasonOOMKilled, v1alpha1.ReasonSuspectedLeak},
		},
	} {
		t.Run(name, func(t *testing.T) {
			need := Recommend(input(tc.change))
			if need.CPU.Known != (tc.cpu > 0) || need.Memory.Known != (tc.memory > 0) {
				t.Errorf("known: cpu %v, memory %v", need.CPU.Known, need.Memory.Known)
			}
			about(t, "cpu", need.CPU.Target, tc.cpu)
			about(t, "memory", need.Memory.Target, tc.memory)
			about(t, "confidence", need.Confidence, tc.confidence)
			for r, known := range map[corev1.ResourceName]bool{corev1.ResourceCPU: tc.cpu > 0, corev1.ResourceMemory: tc.memory > 0} {
				if got := need.MayLower(r); known && got != tc.decreasable {
					t.Errorf("%s may be lowered: %v, want %v", r, got, tc.decreasable)
				}
			}
			for _, r := range tc.reasons {
				if !slices.Contains(need.Reasons, r) {
					t.Errorf("reason %s is missing: %v", r, need.Reasons)
				}
			}
			checkBounds(t, need)
		})
	}
}

// What is known of one resource says nothing of the other.
func TestAResourceIsLoweredOnItsOwnHistory(t *testing.T) {
	for name, tc := range map[string]struct {
		cpu, memory time.Duration // how long each was seen
		lowers      []corev1.ResourceName
		short       bool
	}{
		"both":               {8 * day, 8 * day, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}, false},
		"memory for minutes": {8 * day, 20 * time.Minute, []corev1.ResourceName{corev1.ResourceCPU}, true},
		"CPU for minutes":    {20 * time.Minute, 8 * day, []corev1.ResourceName{corev1.ResourceMemory}, true},
		"memory not at all":  {8 * day, 0, []corev1.ResourceName{corev1.ResourceCPU}, false},
		"neither for long":   {day, day, nil, true},
		"neither at all":     {0, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history.Container{}
			for ago := 8*day - step; ago >= 0; ago -= step {
				at := now.Add(-ago).Unix()
				if ago < tc.cpu {
					h.AddCPU(at, 1, -1)
				}
				if ago < tc.memory {
					h.Memory.Add(at, 512*mi)
				}
			}
			need := Recommend(input(func(in *Input) { in.History = h }))
			var lowers []corev1.ResourceName
			for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if need.MayLower(r) {
					lowers = append(lowers, r)
				}
			}
			if short := slices.Contains(need.Reasons, v1alpha1.ReasonShortHistory); !slices.Equal(lowers, tc.lowers) || short != tc.short {
				t.Errorf("%v may be lowered, want %v; history is short: %v", lowers, tc.lowers, short)
			}
			if wide := need.Memory.Upper > 2*need.Memory.Target; need.Memory.Known && wide != (tc.memory < time.Hour) {
				t.Errorf("memory is good enough up to %v, for a target of %v", need.Memory.Upper, need.Memory.Target)
			}
		})
	}
}

func checkBounds(t *testing.T, need Need) {
	t.Helper()
	for _, e := range []Estimate{need.CPU, need.Memory} {
		if !(e.Lower <= e.Target && e.Target <= e.Upper) {
			t.Errorf("lower %v, target %v, upper %v", e.Lower, e.Target, e.Upper)
		}
	}
}

func TestBoundsAreWideWhileLittleIsKnown(t *testing.T) {
	long := Recommend(input()).CPU
	short := Recommend(input(func(in *Input) { in.History = past(6*time.Hour, level(1), nil) })).CPU
	about(t, "the lower bound with full confidence is the need without margin: it", long.Lower, 1)
	if short.Lower > long.Lower/1.5 || short.Upper < long.Upper*1.5 {
		t.Errorf("after six hours %v to %v, after eight days %v to %v", short.Lower, short.Upper, long.Lower, long.Upper)
	}
}

func TestEstimators(t *testing.T) {
	// Ten busy hours a day at 2 cores, from 8:00 to 18:00 UTC, else 0.2.
	daily := func(ago time.Duration) float64 {
		if hour := now.Add(-ago - 1).Hour(); hour >= 8 && hour < 18 {
			return 2
		}
		return 0.2
	}
	night := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		estimator  v1alpha1.Estimator
		percentile int
		at         time.Time
		want       float64
		note       string
	}{
		"a percentile of time":                        {v1alpha1.EstimatorPercentile, 50, now, 2, "p50"}, // The last hour is busy.
		"a percentile of load is busier":              {v1alpha1.EstimatorLoadAdjusted, 20, now, 2, "weighted by its own size"},
		"by day, time of day asks for the day":        {v1alpha1.EstimatorTimeOfDay, 95, now, 2, "12:00 to 14:00 UTC on 8 earlier days"},
		"by night, time of day asks for the night":    {v1alpha1.EstimatorTimeOfDay, 95, night, 0.2, "02:00 to 04:00 UTC"},
		"at the edge of day, the next hour counts":    {v1alpha1.EstimatorTimeOfDay, 95, night.Add(5 * time.Hour), 2, "07:00 to 09:00 UTC"},
		"a percentile does not follow the time of it": {v1alpha1.EstimatorPercentile, 95, night, 2, "p95"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(func(in *Input) {
				in.Now = tc.at
				in.History = past(8*day+12*time.Hour, daily, nil)
				if tc.at != now {
					in.History = until(tc.at, daily)
				}
				in.Policy.CPU.Estimator, in.Policy.CPU.Percentile, in.Policy.CPU.MarginPercent = tc.estimator, tc.percentile, 0
			})
			need := Recommend(in)
			about(t, "target", need.CPU.Target, tc.want)
			if !strings.Contains(notes(need), tc.note) {
				t.Errorf("no step says %q:\n%s", tc.note, notes(need))
			}
		})
	}
}

// until is eight days of use that end at another time than now.
func until(end time.Time, cores func(time.Duration) float64) *history.Container {
	c := &history.Container{}
	for ago := 8*day - step; ago >= 0; ago -= step {
		c.AddCPU(end.Add(-ago).Unix(), cores(now.Sub(end)+ago), -1)
	}
	return c
}

func notes(need Need) string {
	var lines []string
	for _, s := range need.Derivation {
		lines = append(lines, string(s.Step)+": "+s.Note)
	}
	return strings.Join(lines, "\n")
}

func TestTheDerivationLeadsToTheTarget(t *testing.T) {
	need := Recommend(input())
	last := map[corev1.ResourceName]float64{}
	for _, s := range need.Derivation {
		if s.Note == "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			t.Errorf("step %+v", s)
		}
		last[s.Resource] = s.Value
	}
	if last[corev1.ResourceCPU] != need.CPU.Target || last[corev1.ResourceMemory] != need.Memory.Target {
		t.Errorf("the last steps are %v, the targets %v and %v", last, need.CPU.Target, need.Memory.Target)
	}
}

// TestB16TheReportSaysWhichRuleApplied is field case B16.
func TestB16TheReportSaysWhichRuleApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Input)
		note   string
	}{
		"left out": {func(in *Input) { in.Boosted, in.History.Masked = true, 20 }, "20 samples from before readiness were left out"},
		"no word":  {func(in *Input) { in.Boosted, in.History.MaskFailed = true, true }, "no sample was left out"},
		"no boost": {func(*Input) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := notes(Recommend(input(tc.change)))
			if !strings.Contains(text, tc.note) || (tc.note == "") == strings.Contains(text, "masked") {
				t.Errorf("notes:\n%s", text)
			}
		})
	}
}

func TestPressureIsSaid(t *testing.T) {
	text := notes(Recommend(input(func(in *Input) { in.History.CPUPressure, in.History.MemoryPressure = 0.344, 0 })))
	if !strings.Contains(text, "samples, the largest shown; some task waited for it up to 34% of an interval") || strings.Count(text, "waited") != 1 {
		t.Errorf("notes:\n%s", text)
	}
}

func TestAHeapThatIsAShareOfTheLimitMustHoldWhatWasUsed(t *testing.T) {
	jvm := corev1.Container{Name: "app", Env: []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:MaxRAMPercentage=50"}}}
	in := input(func(in *Input) {
		in.Verdict = verdict.Of(jvm, verdict.Input{})
		in.MemoryLimitBytes = 4096 * mi
	})
	about(t, "the limit's floor", Recommend(in).Memory.LimitFloor, 1024*mi)
	in.MemoryLimitBytes = 800 * mi
	about(t, "the limit's floor, never above the limit itself,", Recommend(in).Memory.LimitFloor, 800*mi)
}

func BenchmarkRecommend(b *testing.B) {
	in := input(func(in *Input) {
		noise := func(scale float64) func(time.Duration) float64 {
			return func(ago time.Duration) float64 {
				return scale * (1 + 0.5*math.Sin(float64(ago)/float64(4*time.Hour)) + 0.1*math.Sin(float64(ago)))
			}
		}
		in.History = past(8*day, noise(1), noise(512*mi))
		in.History.Compact()
	})
	b.ReportAllocs()
	for b.Loop() {
		if need := Recommend(in); !need.CPU.Known {
			b.Fatal("nothing known")
		}
	}
}
