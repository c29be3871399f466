package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/golden"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/driver"
)

var web = history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"}

// sayAll calls every method once.
func sayAll(m *Metrics) {
	m.CycleDone(2, nil)
	m.CycleDone(3, errors.New("no"))
	m.Workloads(map[string]int{StateRecommended: 7, StateNoData: 1})
	m.HistoryAges(map[string]float64{"prometheus": 90})
	m.WithoutHistory(map[shortOf]int{{"prometheus", v1alpha1.ReasonNoSeries}: 2})
	m.HistoryBytes(1 << 20)
	m.Loaded("prometheus", 4, 100)
	m.LoadFailed("prometheus", "SourceUnreachable")
	m.Dropped("Invalid", 3)
	m.Queried("prometheus", "Answered", 0.2)
	m.Written("VerticalRecommendation")
	m.NotWritten("VerticalRecommendation", "403")
	m.Recommendation(web, "app", corev1.ResourceCPU, 0.25, 1)
	m.Recommendation(web, "app", corev1.ResourceMemory, 1<<28, 0)
	m.Forget(history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "another"})
}

// sayAllOfResizes does so for the metrics of the updater, which are there with
// --in-place.
func sayAllOfResizes(m *driver.Metrics) {
	up := updater.Change{Container: "app", Resource: corev1.ResourceCPU, From: updater.Size{Request: 100}, To: updater.Size{Request: 200}}
	step := updater.Step{Changes: []updater.Change{up}}
	m.Ended(updater.Outcome{State: updater.Done, Reason: v1alpha1.ReasonBelowNeed}, &updater.Intent{Steps: []updater.Step{step}}, time.Second)
	m.Refused(step, v1alpha1.ReasonQuotaExceeded)
	m.Requested(3)
	m.Underway(types.NamespacedName{Namespace: "shop", Name: "deployment-web"}, 1, 1)
}

func TestNilMetricsDoNothing(*testing.T) {
	sayAll(nil)
	sayAllOfResizes(nil)
}

func TestMetricsKeepToTheNamingRules(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	sayAll(NewMetrics(reg, MetricsOptions{Sizes: true}))
	sayAllOfResizes(driver.NewMetrics(reg))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "plimsoll_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestWhatIsMeasured(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	at := time.Unix(1_700_000_000, 500_000_000)
	sayAll(NewMetrics(reg, MetricsOptions{Sizes: true, Clock: clocktesting.NewFakePassiveClock(at)}))
	want := `
plimsoll_api_write_failures_total{code="403",kind="VerticalRecommendation"} 1
plimsoll_api_writes_total{kind="VerticalRecommendation"} 1
plimsoll_cycle_seconds 2 5
plimsoll_cycles_total{outcome="Failed"} 1
plimsoll_cycles_total{outcome="Succeeded"} 1
plimsoll_history_age_seconds{source="prometheus"} 90
plimsoll_history_bytes 1048576
plimsoll_history_load_failures_total{reason="SourceUnreachable",source="prometheus"} 1
plimsoll_history_load_seconds{source="prometheus"} 1 4
plimsoll_history_loaded_workloads_total{source="prometheus"} 100
plimsoll_last_successful_cycle_timestamp_seconds 1700000000.5
plimsoll_recommended_cpu_cores{container="app",kind="Deployment",namespace="shop",workload="web"} 0.25
plimsoll_recommended_memory_bytes{container="app",kind="Deployment",namespace="shop",workload="web"} 268435456
plimsoll_requested_cpu_cores{container="app",kind="Deployment",namespace="shop",workload="web"} 1
plimsoll_requested_memory_bytes{container="app",kind="Deployment",namespace="shop",workload="web"} 0
plimsoll_samples_dropped_total{reason="Implausible"} 0
plimsoll_samples_dropped_total{reason="Invalid"} 3
plimsoll_sizes_left_out_total 0
plimsoll_source_queries_total{outcome="Answered",source="prometheus"} 1
plimsoll_source_query_seconds{source="prometheus"} 1 0.2
plimsoll_workloads_without_history{reason="NoSeries",source="prometheus"} 2
plimsoll_workloads{state="Ignored"} 0
plimsoll_workloads{state="Invalid"} 0
plimsoll_workloads{state="NoData"} 1
plimsoll_workloads{state="Recommended"} 7
`
	if diff := cmp.Diff(want, "\n"+values(t, reg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASourceThatIsNotInUseAnyMoreHasNoGauges(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, MetricsOptions{})
	m.HistoryAges(map[string]float64{"old": 7})
	m.WithoutHistory(map[shortOf]int{{"old", v1alpha1.ReasonNoSeries}: 2})
	m.HistoryAges(map[string]float64{"new": 8})
	m.WithoutHistory(nil)
	if got := values(t, reg); strings.Contains(got, "old") || !strings.Contains(got, `plimsoll_history_age_seconds{source="new"} 8`) {
		t.Errorf("the metrics are\n%s", got)
	}
}

// measured gives the bed's controller metrics.
func (b *bed) measured() *prometheus.Registry {
	reg := prometheus.NewPedanticRegistry()
	b.Metrics = NewMetrics(reg, MetricsOptions{Clock: b.clock})
	b.histories.Metrics = b.Metrics
	return reg
}

// An alert must hold for as long as an outage does, also after a restart into it.
func TestAnOutageShowsForAsLongAsItLasts(t *testing.T) {
	const hours = 3
	down := func(s *source) {
		s.err = &history.Fault{Reason: v1alpha1.ReasonSourceUnreachable, Err: errors.New("no route to host")}
	}
	for name, tc := range map[string]struct {
		change func(*source)
		reason v1alpha1.Reason
	}{
		"the source is away": {down, v1alpha1.ReasonSourceUnreachable},
		"it has no series any more": {func(s *source) {
			s.cpu, s.memory, s.fault = level(-1), level(-1), &history.Fault{Reason: v1alpha1.ReasonNoSeries, Err: errors.New("synthetic")}
		}, v1alpha1.ReasonNoSeries},
		"it gives a part of the data": {func(s *source) {
			s.fault = partial("synthetic")
		}, v1alpha1.ReasonPartialHistory},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			reg := b.measured()
			b.deployment("web", "500m", "512Mi")
			b.policy("web", "web")
			b.pod("web", now.Add(-24*time.Hour))
			b.source.set(tc.change)
			b.cycle(0)
			for range hours * 3 {
				b.cycle(20 * time.Minute)
				want := fmt.Sprintf(`plimsoll_workloads_without_history{reason=%q,source="prometheus"} 1`, tc.reason)
				if got := values(t, reg); !strings.Contains(got, want) {
					t.Fatalf("%s: no %s in\n%s", b.clock.Now(), want, got)
				}
			}
			age := testutil.ToFloat64(b.Metrics.historyAge.WithLabelValues("prometheus"))
			if most := (hours*time.Hour + time.Minute).Seconds(); tc.reason != v1alpha1.ReasonPartialHistory && (age < most-120 || age > most) {
				t.Errorf("the age is %g s, want about %d hours", age, hours)
			}
		})
	}
}

func TestAStateThatNobodyIsInAnyMoreIsZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, MetricsOptions{})
	m.Workloads(map[string]int{StateNoData: 4})
	m.Workloads(map[string]int{StateRecommended: 4})
	if got := values(t, reg); !strings.Contains(got, `plimsoll_workloads{state="NoData"} 0`) {
		t.Errorf("the metrics are\n%s", got)
	}
}

func TestContainersHaveGaugesOnlyWhenAskedFor(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	sayAll(NewMetrics(reg, MetricsOptions{}))
	if got := values(t, reg); strings.Contains(got, "cpu_cores") {
		t.Errorf("the metrics are\n%s", got)
	}
}

func TestGaugesOfContainersAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, MetricsOptions{Sizes: true, MaxSizes: 3})
	another := web
	another.Name = "another"
	say := func(key history.WorkloadKey, containers ...string) {
		for _, c := range containers {
			m.Recommendation(key, c, corev1.ResourceCPU, 1, 1)
		}
	}
	gauges := func() int {
		return strings.Count(values(t, reg), "plimsoll_recommended_cpu_cores{")
	}
	leftOut := func() float64 { return testutil.ToFloat64(m.sizes.leftOut) }

	say(web, "a", "b")
	say(another, "a", "b")
	if gauges() != 3 || leftOut() != 1 {
		t.Errorf("four sizes and room for three: %d gauges, %v left out", gauges(), leftOut())
	}
	say(web, "a", "b")
	if gauges() != 3 || leftOut() != 1 {
		t.Errorf("said again: %d gauges, %v left out", gauges(), leftOut())
	}
	m.Forget(web)
	if gauges() != 1 {
		t.Errorf("a workload forgotten: %d gauges, want 1", gauges())
	}
	say(another, "a", "b")
	if gauges() != 2 || leftOut() != 1 {
		t.Errorf("room made: %d gauges, %v left out", gauges(), leftOut())
	}
	m.Recommendation(web, "a", corev1.ResourceEphemeralStorage, 1, 1)
	if len(m.sizes.of[web]) != 0 {
		t.Error("a resource that is not sized takes room")
	}
}

// TestMetricsAreDocumented keeps docs/metrics.md equal to what is registered.
func TestMetricsAreDocumented(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	sayAll(NewMetrics(reg, MetricsOptions{Sizes: true}))
	sayAllOfResizes(driver.NewMetrics(reg))
	var doc strings.Builder
	doc.WriteString(metricsIntroduction)
	for _, f := range families(t, reg) {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	doc.WriteString(metricsEnd)
	golden.Check(t, "../docs/metrics.md", doc.String())
}

const metricsIntroduction = `# Metrics

Written from the code by ` + "`make golden`" + `. How a Prometheus is let in: [the controller](controller.md#metrics).

| metric | type | labels | meaning |
|---|---|---|---|
`

const metricsEnd = `
Beside these there are ` + "`go_*` and `process_*`" + ` of the runtime and the process, ` + "`rest_client_requests_total`" + ` of what is asked
of the API server, and ` + "`leader_election_master_status`" + `, which is 1 for the replica that works. Only that one has
workloads and history; the others have 0 or nothing.

Labels such as ` + "`namespace` and `container`" + ` are those of the workload and not of the controller's pod: scrape with
` + "`honor_labels: true`" + `, or they become ` + "`exported_namespace`" + ` and so on.

Worth an alert:

| what | expression |
|---|---|
| no pass succeeded for a quarter of an hour | ` + "`time() - max(plimsoll_last_successful_cycle_timestamp_seconds) > 900`" + ` |
| a source cannot be read, or not whole | ` + "`min_over_time(plimsoll_workloads_without_history{reason!=\"NoSeries\"}[15m]) > 0`" + ` |
| a source knows nothing of half the workloads | ` + "`sum(plimsoll_workloads_without_history{reason=\"NoSeries\"}) > 0.5 * sum(plimsoll_workloads)`" + ` |
| what is known is old | ` + "`max by (source) (plimsoll_history_age_seconds) > 3600`" + ` |
| the API server does not take what is written | ` + "`increase(plimsoll_api_write_failures_total[1h]) > 0`" + ` |
| resizes that were sent do not end | ` + "`min_over_time(plimsoll_resizes_pending[30m]) > 0 unless on () sum(increase(plimsoll_resizes_total[30m])) > 0`" + ` |
| gauges of containers have no room left | ` + "`increase(plimsoll_sizes_left_out_total[1h]) > 0`" + ` |
`

// values are our metrics, one a line; of a histogram count and sum.
func values(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	var lines []string
	for _, f := range families(t, g) {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			line := f.GetName()
			if len(labels) > 0 {
				line += "{" + strings.Join(labels, ",") + "}"
			}
			lines = append(lines, line+valueOf(f.GetType(), m))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func valueOf(kind dto.MetricType, m *dto.Metric) string {
	switch kind {
	case dto.MetricType_COUNTER:
		return fmt.Sprintf(" %.12g", m.Counter.GetValue())
	case dto.MetricType_GAUGE:
		return fmt.Sprintf(" %.12g", m.Gauge.GetValue())
	default:
		return fmt.Sprintf(" %d %.12g", m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum())
	}
}

func families(t *testing.T, g prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	all, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "plimsoll_") })
}
