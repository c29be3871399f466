package prometheus

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// Every query that there is, against the real server with every series.
func TestRealServerTakesEveryQuery(t *testing.T) {
	const n = 30 * 60
	start := now.Add(-n * time.Minute)
	scrapes := promserver.Scrapes{Start: start, Step: time.Minute, Every: time.Minute}
	const pod = "web-7d4b9c6f5d-abcde"
	constant := func(v float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = v
		}
		return values
	}
	// The container starts anew every three hours and is not ready for five minutes.
	ready, started := constant(1), constant(0)
	for i := range n {
		started[i] = float64(start.Unix() + int64(i/180*180*60))
		if i%180 < 5 {
			ready[i] = 0
		}
	}
	gauge := func(values []float64, metric string, more ...string) promserver.Series {
		return scrapes.Gauge(named(metric, pod, "app", more...), values)
	}
	counter := func(perSecond float64, metric string) promserver.Series {
		return scrapes.Counter(named(metric, pod, "app"), constant(perSecond))
	}
	owner := func(metric, label, name, kind, owner string) promserver.Series {
		return scrapes.Gauge(map[string]string{
			"__name__": metric, "namespace": "shop", label: name, "owner_kind": kind, "owner_name": owner, "owner_is_controller": "true",
		}, constant(1))
	}
	m := defaultMetrics()
	server := promserver.Start(t, []promserver.Series{
		counter(0.4, m.CPUUsage),
		gauge(constant(300*mi), m.MemoryWorkingSet),
		counter(10, m.CFSPeriods),
		counter(2.5, m.CFSThrottledPeriods),
		counter(0.2, m.CPUPressure),
		counter(0.01, m.MemoryPressure),
		gauge(started, m.StartTime),
		gauge(constant(0), m.OOMEvents),
		gauge(constant(1<<30), m.SpecMemoryLimit),
		gauge(ready, m.Ready),
		gauge(constant(0), m.Restarts),
		gauge(constant(1), m.LastTerminatedReason, "reason", "Completed"),
		gauge(constant(float64(start.Unix())), m.LastTerminatedTimestamp),
		gauge(constant(1<<30), m.ResourceLimits, "resource", "memory", "unit", "byte"),
		owner(m.PodOwner, "pod", pod, "ReplicaSet", "web-7d4b9c6f5d"),
		owner(m.ReplicaSetOwner, "replicaset", "web-7d4b9c6f5d", "Deployment", "web"),
		owner(m.JobOwner, "job_name", "web-28000000", "CronJob", "web"),
	})
	s, waits := newTestSource(t, server.URL)
	web, cron := deployment("web"), deployment("web")
	web.MaskStartup = 10 * time.Minute
	cron.Kind = "CronJob"
	u := mustLoad(t, s, query(24*time.Hour, 5*time.Minute, web, cron))
	if len(u.Faults) > 0 || len(waits.list()) > 0 {
		t.Errorf("faults %v, waits %v", u.Faults, waits.list())
	}
	c := u.Containers["app"]
	if c == nil {
		t.Fatal("no container")
	}
	// Eight starts, each hiding the interval that it fills.
	if c.Masked != 8 || c.MaskFailed || c.CPU.Count() != 288-8 {
		t.Errorf("%d samples are masked (failed: %v) and %d kept, want 8 and 280", c.Masked, c.MaskFailed, c.CPU.Count())
	}
	if want := (history.Throttling{Samples: 280, Censored: 280, ShareSum: 280 * 0.25}); c.Throttling.Samples != want.Samples || c.Throttling.Censored != want.Censored || !near(c.Throttling.ShareSum, want.ShareSum) {
		t.Errorf("throttling %+v, want %+v", c.Throttling, want)
	}
	if !near(c.CPUPressure, 0.2) || !near(c.MemoryPressure, 0.01) {
		t.Errorf("pressure %v and %v, want 0.2 and 0.01", c.CPUPressure, c.MemoryPressure)
	}
	if len(c.OOMKills) > 0 {
		t.Errorf("kills %v of a container that was never killed", c.OOMKills)
	}
}

// A container without a CPU limit has no periods, and is not throttled.
func TestRealServerNoPeriodsAreNoThrottling(t *testing.T) {
	scrapes := promserver.Scrapes{Start: now.Add(-3 * time.Hour), Step: time.Minute, Every: time.Minute}
	zero := make([]float64, 180)
	m := defaultMetrics()
	server := promserver.Start(t, []promserver.Series{
		scrapes.Counter(named(m.CPUUsage, "web-0", "app"), zero),
		scrapes.Counter(named(m.CFSPeriods, "web-0", "app"), zero),
		scrapes.Counter(named(m.CFSThrottledPeriods, "web-0", "app"), zero),
	})
	s, _ := newTestSource(t, server.URL)
	u := mustLoad(t, s, query(2*time.Hour, 5*time.Minute, statefulSet("web")))
	c := u.Containers["app"]
	if c == nil || c.CPU.Count() != 24 || c.Throttling.Samples != 0 {
		t.Errorf("got %+v, faults %v", c, u.Faults)
	}
}

// A counter that begins anew at a restart gives neither a spike nor a gap.
// Field case B08.
func TestB08CounterResetInTheRealServer(t *testing.T) {
	scrapes := promserver.Scrapes{Start: now.Add(-3 * time.Hour), Step: time.Minute, Every: time.Minute}
	half := make([]float64, 180)
	for i := range half {
		half[i] = 0.5
	}
	series := scrapes.Counter(named(cpuMetric, "web-0", "app"), half)
	for i := range series.Values {
		if i > 100 {
			series.Values[i] -= series.Values[100]
		}
	}
	s, _ := newTestSource(t, promserver.Start(t, []promserver.Series{series}).URL)
	u := mustLoad(t, s, query(2*time.Hour, 5*time.Minute, statefulSet("web")))
	c := u.Containers["app"]
	if low, high := quantile(t, &c.CPU, 0.001), quantile(t, &c.CPU, 1); low < 0.39 || high > 0.51 || c.Dropped.Total() > 0 || c.CPU.Count() != 24 {
		t.Errorf("CPU lies between %v and %v in %d samples, want about 0.5 in 24", low, high, c.CPU.Count())
	}
}
