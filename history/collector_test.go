package history

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

var end = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const mi = 1 << 20

// collect runs a collector of one workload over one chunk.
func collect(q Query, add func(*Collector), mask ...time.Duration) Usage {
	q.Workloads = []Workload{{WorkloadKey: WorkloadKey{"shop", "Deployment", "web"}, MaskStartup: maskOf(mask)}}
	c := NewCollector(q)
	add(c)
	c.EndChunk()
	return c.Usage()[0]
}

func maskOf(mask []time.Duration) time.Duration {
	if len(mask) == 0 {
		return 0
	}
	return mask[0]
}

// minutes gives samples a minute apart that end at the window's end; negative
// values are left out.
func minutes(values ...float64) (ends []int64, kept []float64) {
	for i, v := range values {
		if v != none {
			ends = append(ends, end.Unix()-int64(len(values)-1-i)*60)
			kept = append(kept, v)
		}
	}
	return ends, kept
}

const none = -1

func hour(step time.Duration) Query {
	return Query{From: end.Add(-time.Hour), To: end, Step: step}
}

// TestB01ARestartedContainerCountsOnce is field case B01.
func TestB01ARestartedContainerCountsOnce(t *testing.T) {
	oldEnds, oldValues := minutes(950*mi, 980*mi, 1000*mi, 1000*mi, 1000*mi, 1000*mi, none, none)
	newEnds, newValues := minutes(none, none, none, 300*mi, 500*mi, 700*mi, 800*mi, 800*mi)
	for name, order := range map[string][2]int{"old first": {0, 1}, "new first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			ends, values := [2][]int64{oldEnds, newEnds}, [2][]float64{oldValues, newValues}
			u := collect(hour(time.Minute), func(c *Collector) {
				for _, i := range order {
					c.Add(0, "web-0", "app", MetricMemory, ends[i], values[i])
				}
			})
			app := u.Containers["app"]
			if peak, _ := app.Memory.Peak(); peak != 1000*mi || app.Memory.Count() != 8 {
				t.Errorf("peak %v Mi of %d samples, want 1000 of 8", peak/mi, app.Memory.Count())
			}
			if u.Pods.Live != 1 || len(u.Containers) != 1 {
				t.Errorf("%d live pods and %d containers, want one of each", u.Pods.Live, len(u.Containers))
			}
		})
	}
}

// TestB08SamplesThatCannotBeTrueAreDropped is field case B08.
func TestB08SamplesThatCannotBeTrueAreDropped(t *testing.T) {
	q := hour(time.Minute)
	q.Ceiling = Ceiling{CPUCores: 32, MemoryBytes: 128 << 30}
	u := collect(q, func(c *Collector) {
		ends, values := minutes(1, -0.513, 18446744074, 1, math.NaN(), math.Inf(1), 0.12)
		c.Add(0, "web-0", "app", MetricCPU, ends, values)
		ends, values = minutes(1595*mi, 1174275820239, 1595*mi)
		c.Add(0, "web-0", "app", MetricMemory, ends, values)
	})
	app := u.Containers["app"]
	if peak, _ := app.CPU.Peak(); peak != 1 || app.CPU.Count() != 3 {
		t.Errorf("CPU peak %v of %d samples, want 1 of 3: a low value after a restart is a sample", peak, app.CPU.Count())
	}
	if peak, _ := app.Memory.Peak(); peak != 1595*mi {
		t.Errorf("memory peak %v, want 1595Mi", peak)
	}
	if want := (Dropped{Invalid: 3, Implausible: 2}); app.Dropped != want {
		t.Errorf("dropped %+v, want %+v", app.Dropped, want)
	}
}

// TestB13ALateKillCountsAsAnEarlyOne is field case B13.
func TestB13ALateKillCountsAsAnEarlyOne(t *testing.T) {
	kill := OOMKill{At: end.Add(-16 * time.Second), Pod: "web-0", UsedBytes: 476450463}
	ends, values := minutes(200 * mi)
	sample := func(c *Collector) { c.Add(0, "web-0", "app", MetricMemory, ends, values) }
	for name, order := range map[string][]func(*Collector){
		"sample first": {sample, func(c *Collector) { c.AddOOMKill(0, "app", kill) }},
		"kill first":   {func(c *Collector) { c.AddOOMKill(0, "app", kill) }, sample},
		"kill twice":   {func(c *Collector) { c.AddOOMKill(0, "app", kill); c.AddOOMKill(0, "app", kill) }, sample},
	} {
		t.Run(name, func(t *testing.T) {
			u := collect(hour(time.Minute), func(c *Collector) {
				for _, add := range order {
					add(c)
				}
			})
			if got := u.Containers["app"].OOMKills; !slices.Equal(got, []OOMKill{kill}) {
				t.Errorf("kills %+v, want the one", got)
			}
		})
	}
}

// TestB08WithoutNodesTheAbsurdIsDroppedAllTheSame is field case B08.
func TestB08WithoutNodesTheAbsurdIsDroppedAllTheSame(t *testing.T) {
	u := collect(hour(time.Minute), func(c *Collector) {
		ends, values := minutes(1, 18446744074, 1)
		c.Add(0, "web-0", "app", MetricCPU, ends, values)
	})
	if app := u.Containers["app"]; app.CPU.Count() != 2 || app.Dropped.Implausible != 1 {
		t.Errorf("%d samples, %+v", app.CPU.Count(), app.Dropped)
	}
}

// startup is the day of B16: every 144 minutes a container starts, and is
// ready after two.
func startup() (ends []int64, cpu, notReady, started []float64) {
	begin := end.Add(-24 * time.Hour).Unix()
	for i := range int64(1440) {
		ends = append(ends, begin+(i+1)*60)
		started = append(started, float64(begin+i/144*144*60))
		if i%144 < 2 {
			cpu, notReady = append(cpu, 2), append(notReady, 1)
		} else {
			cpu, notReady = append(cpu, 0.02), append(notReady, 0)
		}
	}
	return ends, cpu, notReady, started
}

// TestB16StartUpIsMaskedOnlyWhereABoostServesIt is field case B16.
func TestB16StartUpIsMaskedOnlyWhereABoostServesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		mask    time.Duration
		ready   bool
		masked  int
		samples int
		p99     float64
		failed  bool
	}{
		"with a boost, the samples from before readiness are left out":  {mask: 5 * time.Minute, ready: true, masked: 20, samples: 1420, p99: 0.02},
		"without one, nothing is left out silently":                     {ready: true, samples: 1440, p99: 2},
		"with a boost but no word on readiness, nothing is left out":    {mask: 5 * time.Minute, samples: 1440, p99: 2, failed: true},
		"what takes longer than the boost may last is load and remains": {mask: time.Second, ready: true, masked: 10, samples: 1430, p99: 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			q := Query{From: end.Add(-24 * time.Hour), To: end, Step: time.Minute}
			u := collect(q, func(c *Collector) {
				ends, cpu, notReady, started := startup()
				if tc.ready {
					c.Add(0, "web-0", "app", MetricNotReady, ends, notReady)
					c.Add(0, "web-0", "app", MetricStarted, ends, started)
				}
				c.Add(0, "web-0", "app", MetricCPU, ends, cpu)
			}, tc.mask)
			app := u.Containers["app"]
			if app.Masked != tc.masked || app.CPU.Count() != tc.samples || app.MaskFailed != tc.failed {
				t.Errorf("%d masked, %d kept, failed %v; want %d, %d, %v", app.Masked, app.CPU.Count(), app.MaskFailed, tc.masked, tc.samples, tc.failed)
			}
			if got, _ := app.CPU.Distribution().Quantile(0.99); math.Abs(got-tc.p99) > 0.01*tc.p99 {
				t.Errorf("p99 %v, want %v", got, tc.p99)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	ends, a := minutes(1, 2, 3)
	_, b := minutes(4, 1, 1)
	t.Run("CPU pools the samples of all replicas, memory takes the worst at each instant", func(t *testing.T) {
		u := collect(hour(time.Minute), func(c *Collector) {
			for pod, values := range map[string][]float64{"web-0": a, "web-1": b} {
				c.Add(0, pod, "app", MetricCPU, ends, values)
				c.Add(0, pod, "app", MetricMemory, ends, values)
			}
		})
		app := u.Containers["app"]
		if app.CPU.Count() != 6 {
			t.Errorf("%d CPU samples, want 6", app.CPU.Count())
		}
		d := app.Memory.Distribution()
		if low, _ := d.Quantile(0.01); app.Memory.Count() != 3 || math.Abs(low-2) > 0.02 {
			t.Errorf("%d memory samples from %v, want 3 from 2 (of 4, 2, 3)", app.Memory.Count(), low)
		}
	})
	t.Run("samples of replicas that end at other seconds are of one instant", func(t *testing.T) {
		u := collect(hour(5*time.Minute), func(c *Collector) {
			for pod := range int64(3) {
				shifted := make([]int64, len(ends))
				for i := range ends {
					shifted[i] = ends[i] - pod*13
				}
				c.Add(0, string(rune('a'+pod)), "app", MetricMemory, shifted, a)
			}
		})
		if got := u.Containers["app"].Memory.Count(); got != 3 {
			t.Errorf("%d instants, want 3", got)
		}
	})
}

func TestThrottledUsageIsALowerBound(t *testing.T) {
	ends, cpu := minutes(0.05, 0.05, 0.05, 0.05)
	_, shares := minutes(1, 1, 0.5, 0)
	u := collect(hour(time.Minute), func(c *Collector) {
		c.Add(0, "web-0", "app", MetricCPU, ends, cpu)
		c.Add(0, "web-0", "app", MetricThrottled, ends, shares)
	})
	app := u.Containers["app"]
	if peak, _ := app.CPU.Peak(); peak != 0.05 {
		t.Errorf("usage peak %v, want what was used", peak)
	}
	if peak, _ := app.Demand().Peak(); peak != 0.1 {
		t.Errorf("demand peak %v, want twice the usage where every period was throttled", peak)
	}
	if app.Demand().Count() != 4 || app.Throttling != (Throttling{Samples: 4, Censored: 3, ShareSum: 2.5}) {
		t.Errorf("%d of demand, %+v", app.Demand().Count(), app.Throttling)
	}
}

func TestNoDataIsSaid(t *testing.T) {
	u := collect(hour(time.Minute), func(*Collector) {})
	if len(u.Containers) != 0 || len(u.Faults) != 1 || u.Faults[0].Reason != v1alpha1.ReasonNoSeries {
		t.Errorf("%d containers, faults %v", len(u.Containers), u.Faults)
	}
}

func TestSamplesOutsideTheWindowAreNotSeen(t *testing.T) {
	q := hour(time.Minute)
	u := collect(q, func(c *Collector) {
		c.Add(0, "web-0", "app", MetricCPU, []int64{q.From.Unix(), q.From.Unix() + 1, q.To.Unix(), q.To.Unix() + 1}, []float64{9, 1, 2, 9})
	})
	app := u.Containers["app"]
	if peak, _ := app.CPU.Peak(); app.CPU.Count() != 2 || peak != 2 || app.Dropped.Total() != 0 {
		t.Errorf("%d samples up to %v, %d dropped; want 2 up to 2 and none dropped", app.CPU.Count(), peak, app.Dropped.Total())
	}
}

func TestAPodThatEndedIsPast(t *testing.T) {
	u := collect(hour(time.Minute), func(c *Collector) {
		ends, values := minutes(1, 1, 1, 1, 1, 1, 1, 1)
		c.Add(0, "web-old", "app", MetricCPU, ends[:2], values[:2])
		c.Add(0, "web-new", "app", MetricCPU, ends[4:], values[4:])
	})
	if u.Pods != (Pods{Live: 1, Past: 1}) {
		t.Errorf("pods %+v, want one live and one past", u.Pods)
	}
}
