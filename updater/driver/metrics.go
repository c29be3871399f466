package driver

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// Metrics are what is measured of resizes. All methods do nothing on a nil
// *Metrics, and are safe for concurrent use.
type Metrics struct {
	resizes  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underway prometheus.Gauge
	deferred prometheus.Gauge
	drifted  *prometheus.GaugeVec
	requests prometheus.Counter

	mu        sync.Mutex
	workloads map[types.NamespacedName]podCounts
	sum       podCounts
}

// podCounts are how many pods of a workload, or of all, are in some state.
type podCounts struct {
	// underway are those that are being resized, without those that are deferred.
	underway, deferred int
	// driftedCPU and driftedMemory are those that ask for other than their template
	// writes.
	driftedCPU, driftedMemory int
}

func (c podCounts) plus(o podCounts, sign int) podCounts {
	return podCounts{
		c.underway + sign*o.underway, c.deferred + sign*o.deferred,
		c.driftedCPU + sign*o.driftedCPU, c.driftedMemory + sign*o.driftedMemory,
	}
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		resizes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_resizes_total",
			Help: "Resizes that ended, by direction (Up, Down), resource, outcome and reason; only with --in-place.",
		}, []string{"direction", "resource", "outcome", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plimsoll_resize_seconds", Help: "Time from the decision on a resize to its end, by outcome; only with --in-place.",
			Buckets: []float64{.25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1200},
		}, []string{"outcome"}),
		underway: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plimsoll_resizes_pending", Help: "Resizes that were sent and have not ended, deferred ones aside; only with --in-place.",
		}),
		deferred: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plimsoll_resizes_deferred", Help: "Resizes that wait for room on their node; only with --in-place.",
		}),
		drifted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plimsoll_pods_drifted", Help: "Pods that ask for other than their template writes, by resource; only with --in-place, of workloads whose pods are resized.",
		}, []string{"resource"}),
		requests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plimsoll_pod_requests_total", Help: "Requests to the API server that write to pods; only with --in-place.",
		}),
		workloads: map[types.NamespacedName]podCounts{},
	}
	reg.MustRegister(m.resizes, m.seconds, m.underway, m.deferred, m.drifted, m.requests)
	for _, r := range sizing.Resources {
		m.drifted.WithLabelValues(string(r)) // 0 is there from the start.
	}
	return m
}

// Ended counts a resize that ended, and how long it took.
func (m *Metrics) Ended(o updater.Outcome, i *updater.Intent, took time.Duration) {
	if m == nil {
		return
	}
	changes := o.Changes
	if len(changes) == 0 && i != nil {
		for _, s := range i.Steps {
			changes = append(changes, s.Changes...)
		}
	}
	m.count(changes, string(o.State), o.Reason)
	if i != nil {
		m.seconds.WithLabelValues(string(o.State)).Observe(took.Seconds())
	}
}

// Refused counts a step that the API server refused.
func (m *Metrics) Refused(s updater.Step, reason v1alpha1.Reason) {
	if m != nil {
		m.count(s.Changes, "Refused", reason)
	}
}

func (m *Metrics) count(changes []updater.Change, outcome string, reason v1alpha1.Reason) {
	for _, c := range changes {
		direction := "Down"
		if c.Grows() {
			direction = "Up"
		}
		m.resizes.WithLabelValues(direction, string(c.Resource), outcome, string(reason)).Inc()
	}
}

// Requested counts writes to pods.
func (m *Metrics) Requested(n int) {
	if m != nil {
		m.requests.Add(float64(n))
	}
}

// Underway says how many resizes of the workload of a recommendation are under
// way, and how many of them deferred.
func (m *Metrics) Underway(w types.NamespacedName, underway, deferred int) {
	m.change(w, func(c *podCounts) { c.underway, c.deferred = underway, deferred })
}

// Drifted says how many pods of the workload of a recommendation ask for other CPU
// and memory than their template writes.
func (m *Metrics) Drifted(w types.NamespacedName, cpu, memory int) {
	m.change(w, func(c *podCounts) { c.driftedCPU, c.driftedMemory = cpu, memory })
}

func (m *Metrics) change(w types.NamespacedName, to func(*podCounts)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.workloads[w]
	to(&now)
	m.sum = m.sum.plus(m.workloads[w], -1).plus(now, 1)
	if m.workloads[w] = now; now == (podCounts{}) {
		delete(m.workloads, w)
	}
	m.underway.Set(float64(m.sum.underway))
	m.deferred.Set(float64(m.sum.deferred))
	m.drifted.WithLabelValues(string(corev1.ResourceCPU)).Set(float64(m.sum.driftedCPU))
	m.drifted.WithLabelValues(string(corev1.ResourceMemory)).Set(float64(m.sum.driftedMemory))
}
