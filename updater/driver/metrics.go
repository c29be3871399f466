package driver

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// Metrics are what is measured of resizes. All methods do nothing on a nil
// *Metrics, and are safe for concurrent use.
type Metrics struct {
	resizes  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underway prometheus.Gauge
	deferred prometheus.Gauge
	requests prometheus.Counter

	mu        sync.Mutex
	workloads map[types.NamespacedName][2]int
	sums      [2]int
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
		requests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plimsoll_pod_requests_total", Help: "Requests to the API server that write to pods; only with --in-place.",
		}),
		workloads: map[types.NamespacedName][2]int{},
	}
	reg.MustRegister(m.resizes, m.seconds, m.underway, m.deferred, m.requests)
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

// Underway says how many resizes of the workload of a recommendation are under way, and how many of
// them deferred.
func (m *Metrics) Underway(w types.NamespacedName, underway, deferred int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := m.workloads[w], [2]int{underway, deferred}
	if now == [2]int{} {
		delete(m.workloads, w)
	} else {
		m.workloads[w] = now
	}
	for i := range m.sums {
		m.sums[i] += now[i] - before[i]
	}
	m.underway.Set(float64(m.sums[0]))
	m.deferred.Set(float64(m.sums[1]))
}
