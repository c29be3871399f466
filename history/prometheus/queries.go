package prometheus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/plimsoll-dev/plimsoll/history"
)

// queries writes PromQL. Everything is reduced to one series a container on the
// server: a restarted container's old and new cgroup are two series there, and
// so are the copies that two servers scraped; the larger value counts.
type queries struct {
	metrics     Metrics
	usageLabels Labels // on the kubelet's series
	stateLabels Labels // on kube-state-metrics' series
	matchers    []string
	// rate is the window of rates, peak that of everything else.
	rate, peak time.Duration
	// step is how far apart samples are asked for.
	step time.Duration
}

// leastRateWindow holds two samples of a kubelet's, however often it is asked: it
// takes them itself, 10 to 19 s apart.
const leastRateWindow = 40 * time.Second

func (s Settings) queries(scrape, step time.Duration) queries {
	rate := s.RateWindow
	if rate == 0 {
		// Four intervals, so that a rate survives a missed scrape and is not the
		// noise of two samples.
		rate = max(step, 4*scrape, leastRateWindow)
	}
	return queries{
		metrics:     s.Metrics,
		usageLabels: s.Labels,
		stateLabels: s.StateLabels,
		matchers:    s.Matchers,
		step:        step,
		rate:        rate,
		peak:        max(step, scrape),
	}
}

// duration writes d as PromQL does.
func duration(d time.Duration) string { return model.Duration(d).String() }

// selector is a metric's series of the batch's containers, or with no workload
// in it of all. Rows of the pod's own cgroup and of its pause container are no
// containers.
func (q queries) selector(metric string, l Labels, b batch, more ...string) string {
	var of []string
	if len(b.workloads) > 0 {
		of = []string{b.namespaceMatcher(l), l.Pod + "=~" + strconv.Quote(anyOf(b.patterns))}
	}
	matchers := slices.Concat(of, []string{l.Container + `!=""`, l.Container + `!="POD"`}, more, q.matchers)
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

// namespaceMatcher selects the namespaces of the batch. A pod of one may match
// the pattern of another's workload; who owns it is looked at in the answer.
func (b batch) namespaceMatcher(l Labels) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(b.namespaces)))
	if len(distinct) == 1 {
		return l.Namespace + "=" + strconv.Quote(distinct[0])
	}
	return l.Namespace + "=~" + strconv.Quote(anyOf(escapeAll(distinct)))
}

// anyOf is a regular expression for any of the given ones, each once.
func anyOf(patterns []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(patterns))), "|")
}

func (q queries) usage(metric string, b batch) string {
	return q.selector(metric, q.usageLabels, b)
}

func (q queries) state(metric string, b batch, more ...string) string {
	return q.selector(metric, q.stateLabels, b, more...)
}

// largest reduces an expression to one series a container.
func largest(l Labels, expr string) string {
	return fmt.Sprintf("max by (%s, %s, %s) (%s)", l.Namespace, l.Pod, l.Container, expr)
}

func over(function, selector string, window time.Duration) string {
	return function + "(" + selector + "[" + duration(window) + "])"
}

// usageQuery gives the samples of one metric.
type usageQuery struct {
	metric history.Metric
	// record is what the metric is called in the name of a recorded series, or
	// that name where the recorded series is read.
	record string
	labels Labels
	// needs are the series that it reads; where one is absent, it is not asked.
	needs []string
	// startup queries are asked only for workloads that mask their start.
	startup bool
	// required queries are what a recommendation is made of; where they fail,
	// nothing is known.
	required bool
	text     func(batch) string
}

// usageQueries are the queries of every chunk, those that cannot be done
// without first.
func (q queries) usageQueries() []usageQuery {
	m := q.metrics
	rateOf := func(metric string) func(batch) string {
		return func(b batch) string {
			return largest(q.usageLabels, over("rate", q.usage(metric, b), q.rate))
		}
	}
	peakOf := func(metric string) func(batch) string {
		return func(b batch) string {
			return largest(q.usageLabels, over("max_over_time", q.usage(metric, b), q.peak))
		}
	}
	return []usageQuery{
		{metric: history.MetricCPU, record: recordCPU, labels: q.usageLabels, required: true, text: rateOf(m.CPUUsage)},
		{metric: history.MetricMemory, record: recordMemory, labels: q.usageLabels, required: true, text: peakOf(m.MemoryWorkingSet)},
		{
			metric: history.MetricThrottled, record: "throttled_share", labels: q.usageLabels,
			needs: []string{m.CFSThrottledPeriods, m.CFSPeriods},
			text:  q.throttledShare,
		},
		{metric: history.MetricCPUPressure, record: "cpu_pressure", labels: q.usageLabels, needs: []string{m.CPUPressure}, text: rateOf(m.CPUPressure)},
		{metric: history.MetricMemoryPressure, record: "memory_pressure", labels: q.usageLabels, needs: []string{m.MemoryPressure}, text: rateOf(m.MemoryPressure)},
		{metric: history.MetricNotReady, record: "not_ready", labels: q.stateLabels, startup: true, needs: []string{m.Ready}, text: q.notReady},
		{metric: history.MetricStarted, record: "started_seconds", labels: q.usageLabels, startup: true, needs: []string{m.StartTime}, text: peakOf(m.StartTime)},
	}
}

// throttledShare leaves out containers that had no period in the window, which
// would give 0/0.
func (q queries) throttledShare(b batch) string {
	throttled := over("rate", q.usage(q.metrics.CFSThrottledPeriods, b), q.rate)
	periods := over("rate", q.usage(q.metrics.CFSPeriods, b), q.rate)
	return largest(q.usageLabels, throttled+" / ("+periods+" > 0)")
}

// notReady is 1 where the container was not ready at any time of the interval.
func (q queries) notReady(b batch) string {
	return largest(q.stateLabels, over("max_over_time", q.state(q.metrics.Ready, b), q.peak)) + " == bool 0"
}

// scrapeCount is how many samples the best series of the batch has in the
// window.
func (q queries) scrapeCount(b batch, window time.Duration) string {
	return "max(" + over("count_over_time", q.usage(q.metrics.MemoryWorkingSet, b), window) + ")"
}

// named is a selector of series by name, in some namespaces.
func (q queries) named(names []string, l Labels, namespaces []string) string {
	matchers := []string{model.MetricNameLabel + "=~" + strconv.Quote(strings.Join(names, "|"))}
	if len(namespaces) <= maxProbedNamespaces {
		matchers = append(matchers, l.Namespace+"=~"+strconv.Quote(anyOf(escapeAll(namespaces))))
	}
	return "{" + strings.Join(append(matchers, q.matchers...), ",") + "}"
}

// escape makes a name of Kubernetes a regular expression: of all they may
// contain only the dot means something there.
func escape(name string) string { return strings.ReplaceAll(name, ".", `\.`) }

func escapeAll(names []string) []string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = escape(name)
	}
	return escaped
}
