package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// The states by which Workloads counts.
const (
	StateRecommended = "Recommended"
	StateNoData      = "NoData"
	StateIgnored     = "Ignored"
	StateInvalid     = "Invalid"
)

// What becomes of a cycle.
const (
	outcomeSucceeded = "Succeeded"
	outcomeFailed    = "Failed"
)

// defaultMaxSizes is how many sizes of containers have gauges: those of 10,000
// containers. Each takes two series, and a server that scrapes them keeps some
// kilobytes for a series.
const defaultMaxSizes = 20_000

// MetricsOptions say what is measured beyond the ordinary. The zero value is
// nothing.
type MetricsOptions struct {
	// Sizes adds gauges for every container: two series for each resource.
	Sizes bool
	// MaxSizes bounds the sizes, one for each container and resource, that have
	// gauges; 0 is 20,000.
	MaxSizes int
	// Clock tells the present; nil is the system's.
	Clock clock.PassiveClock
}

// Metrics are what the controller measures of itself. All methods do nothing on
// a nil *Metrics, and are safe for concurrent use.
type Metrics struct {
	clock clock.PassiveClock

	cycles       *prometheus.CounterVec
	cycleSeconds prometheus.Observer
	lastCycle    prometheus.Gauge
	workloads    *prometheus.GaugeVec
	historyAge   *prometheus.GaugeVec
	without      *prometheus.GaugeVec
	historyBytes prometheus.Gauge
	loadSeconds  *prometheus.HistogramVec
	loaded       *prometheus.CounterVec
	loadFailures *prometheus.CounterVec
	dropped      *prometheus.CounterVec
	queries      *prometheus.CounterVec
	querySeconds *prometheus.HistogramVec
	writes       *prometheus.CounterVec
	unwritten    *prometheus.CounterVec
	sizes        *sizeGauges // nil where they were not asked for
}

// slowBuckets reach from a pass over nothing to one over weeks of history.
var slowBuckets = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}

// NewMetrics registers the metrics, and with them those of the Go runtime and
// of the process. It panics where a name is taken.
func NewMetrics(reg prometheus.Registerer, o MetricsOptions) *Metrics {
	f := factory{reg}
	m := &Metrics{
		clock: o.Clock,
		cycles: f.counters("plimsoll_cycles_total",
			"Passes over all workloads that ended, by outcome: Succeeded or Failed.", "outcome"),
		cycleSeconds: f.histograms("plimsoll_cycle_seconds", "How long a pass over all workloads took.", slowBuckets).WithLabelValues(),
		lastCycle: f.gauges("plimsoll_last_successful_cycle_timestamp_seconds",
			"When the last pass that succeeded ended, in seconds since 1970; 0 before the first.").WithLabelValues(),
		workloads: f.gauges("plimsoll_workloads",
			"Workloads that a policy targets, by what became of them: Recommended, NoData, Ignored or Invalid.", "state"),
		historyAge: f.gauges("plimsoll_history_age_seconds",
			"How far what is known of usage lags the present, of the workload that is furthest behind; where nothing was ever read, since that was tried.", "source"),
		without: f.gauges("plimsoll_workloads_without_history",
			"Workloads of which the source did not give all that was asked for the last time, by reason (docs/reasons.md).", "source", "reason"),
		historyBytes: f.gauges("plimsoll_history_bytes",
			"Memory that the history of all workloads takes, without what the runtime adds.").WithLabelValues(),
		loadSeconds: f.histograms("plimsoll_history_load_seconds",
			"How long it took to read a part of the history of some workloads.", slowBuckets, "source"),
		loaded: f.counters("plimsoll_history_loaded_workloads_total",
			"Workloads whose history was read, counted again each time.", "source"),
		loadFailures: f.counters("plimsoll_history_load_failures_total",
			"Attempts to read history that gave nothing of any workload, by reason (docs/reasons.md).", "source", "reason"),
		dropped: f.counters("plimsoll_samples_dropped_total",
			"Samples that were left out since they cannot be true: Invalid (not a number, negative) or Implausible (more than a node has).", "reason"),
		queries: f.counters("plimsoll_source_queries_total",
			"Queries sent to a source, repetitions included, by outcome: Answered, Refused, Overloaded, ServerError, TooSlow or Unreachable.", "source", "outcome"),
		querySeconds: f.histograms("plimsoll_source_query_seconds",
			"How long a source took to answer a query, or to fail.", prometheus.ExponentialBuckets(0.005, 2.5, 12), "source"),
		writes: f.counters("plimsoll_api_writes_total", "Objects written to the API server, by kind.", "kind"),
		unwritten: f.counters("plimsoll_api_write_failures_total",
			"Objects that the API server did not take, by kind and HTTP code, none where there was no answer; each is tried again, less and less often.", "kind", "code"),
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	if o.Sizes {
		m.sizes = newSizeGauges(f, o.MaxSizes)
	}
	// What is 0 until something goes wrong is there from the start, so that an
	// alert on its growth sees the first time.
	for _, outcome := range []string{outcomeSucceeded, outcomeFailed} {
		m.cycles.WithLabelValues(outcome)
	}
	m.Dropped("Invalid", 0)
	m.Dropped("Implausible", 0)
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return m
}

// CycleDone counts a pass over all workloads; err is why it failed.
func (m *Metrics) CycleDone(seconds float64, err error) {
	if m == nil {
		return
	}
	m.cycleSeconds.Observe(seconds)
	if err != nil {
		m.cycles.WithLabelValues(outcomeFailed).Inc()
		return
	}
	m.cycles.WithLabelValues(outcomeSucceeded).Inc()
	m.lastCycle.Set(float64(m.clock.Now().UnixMilli()) / 1000)
}

// Workloads sets how many workloads are in each state; a state that is not
// named has none.
func (m *Metrics) Workloads(byState map[string]int) {
	if m == nil {
		return
	}
	for _, state := range []string{StateRecommended, StateNoData, StateIgnored, StateInvalid} {
		m.workloads.WithLabelValues(state).Set(float64(byState[state]))
	}
}

// HistoryAges sets how far what is known from each source lags the present, in
// seconds. A source that is not named is not in use, and has no gauge.
func (m *Metrics) HistoryAges(bySource map[string]float64) {
	if m == nil {
		return
	}
	m.historyAge.Reset()
	for source, seconds := range bySource {
		m.historyAge.WithLabelValues(source).Set(seconds)
	}
}

// shortOf is a source that did not give all that was asked for, and why.
type shortOf struct {
	source string
	reason v1alpha1.Reason
}

// WithoutHistory sets how many workloads a source gave less than all of. What is
// not named has no gauge.
func (m *Metrics) WithoutHistory(workloads map[shortOf]int) {
	if m == nil {
		return
	}
	m.without.Reset()
	for of, n := range workloads {
		m.without.WithLabelValues(of.source, string(of.reason)).Set(float64(n))
	}
}

// HistoryBytes sets what the history of all workloads takes.
func (m *Metrics) HistoryBytes(bytes int) {
	if m != nil {
		m.historyBytes.Set(float64(bytes))
	}
}

// Loaded counts workloads whose history was read from a source at once.
func (m *Metrics) Loaded(source string, seconds float64, workloads int) {
	if m == nil {
		return
	}
	m.loadSeconds.WithLabelValues(source).Observe(seconds)
	m.loaded.WithLabelValues(source).Add(float64(workloads))
}

// LoadFailed counts an attempt to read history that gave nothing.
func (m *Metrics) LoadFailed(source, reason string) {
	if m != nil {
		m.loadFailures.WithLabelValues(source, reason).Inc()
	}
}

// Dropped counts n samples that were left out; reason is Invalid or Implausible.
func (m *Metrics) Dropped(reason string, n int) {
	if m != nil {
		m.dropped.WithLabelValues(reason).Add(float64(n))
	}
}

// Queried counts one query to a source that took so long.
func (m *Metrics) Queried(source, outcome string, seconds float64) {
	if m == nil {
		return
	}
	m.queries.WithLabelValues(source, outcome).Inc()
	m.querySeconds.WithLabelValues(source).Observe(seconds)
}

// Written counts an object of this kind that was written to the API server.
func (m *Metrics) Written(kind string) {
	if m != nil {
		m.writes.WithLabelValues(kind).Inc()
	}
}

// NotWritten counts an object of this kind that the API server did not take.
func (m *Metrics) NotWritten(kind, code string) {
	if m != nil {
		m.unwritten.WithLabelValues(kind, code).Inc()
	}
}

// Recommendation sets what a container should ask for of CPU, in cores, or
// memory, in bytes, and what it asks for now; 0 is nothing. It does nothing
// where gauges of containers were not asked for, and counts what has no room.
func (m *Metrics) Recommendation(key history.WorkloadKey, container string, r corev1.ResourceName, target, current float64) {
	if m != nil && m.sizes != nil {
		m.sizes.set(key, size{container, r}, target, current)
	}
}

// Forget takes all gauges of a workload away: it is gone, or its containers may
// be others now.
func (m *Metrics) Forget(key history.WorkloadKey) {
	if m != nil && m.sizes != nil {
		m.sizes.forget(key)
	}
}

// sizeGauges are the gauges of containers, of which there are so many and no
// more: a cluster grows, and what scrapes it does not grow with it.
type sizeGauges struct {
	recommended, requested map[corev1.ResourceName]*prometheus.GaugeVec
	leftOut                prometheus.Counter
	most                   int

	mu    sync.Mutex
	count int
	of    map[history.WorkloadKey]map[size]bool
}

type size struct {
	container string
	resource  corev1.ResourceName
}

func newSizeGauges(f factory, most int) *sizeGauges {
	if most == 0 {
		most = defaultMaxSizes
	}
	gauges := func(what, help string) map[corev1.ResourceName]*prometheus.GaugeVec {
		labels := []string{"namespace", "kind", "workload", "container"}
		return map[corev1.ResourceName]*prometheus.GaugeVec{
			corev1.ResourceCPU:    f.gauges("plimsoll_"+what+"_cpu_cores", "CPU "+help, labels...),
			corev1.ResourceMemory: f.gauges("plimsoll_"+what+"_memory_bytes", "Memory "+help, labels...),
		}
	}
	return &sizeGauges{
		recommended: gauges("recommended", "that a container should ask for; only with --metrics-labels."),
		requested:   gauges("requested", "that a container asks for in its template, 0 where it asks for none; only with --metrics-labels."),
		leftOut: f.counters("plimsoll_sizes_left_out_total",
			"Times that a recommendation got no gauge since there are too many; only with --metrics-labels.").WithLabelValues(),
		most: most,
		of:   map[history.WorkloadKey]map[size]bool{},
	}
}

func (g *sizeGauges) set(key history.WorkloadKey, s size, target, current float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recommended[s.resource] == nil {
		return
	}
	if !g.of[key][s] {
		if g.count >= g.most {
			g.leftOut.Inc()
			return
		}
		if g.of[key] == nil {
			g.of[key] = map[size]bool{}
		}
		g.of[key][s] = true
		g.count++
	}
	g.recommended[s.resource].WithLabelValues(key.Namespace, key.Kind, key.Name, s.container).Set(target)
	g.requested[s.resource].WithLabelValues(key.Namespace, key.Kind, key.Name, s.container).Set(current)
}

func (g *sizeGauges) forget(key history.WorkloadKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.of[key] {
		g.recommended[s.resource].DeleteLabelValues(key.Namespace, key.Kind, key.Name, s.container)
		g.requested[s.resource].DeleteLabelValues(key.Namespace, key.Kind, key.Name, s.container)
	}
	g.count -= len(g.of[key])
	delete(g.of, key)
}

// factory makes metrics that are registered.
type factory struct{ reg prometheus.Registerer }

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.reg.MustRegister(v)
	return v
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.reg.MustRegister(v)
	return v
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.reg.MustRegister(v)
	return v
}
