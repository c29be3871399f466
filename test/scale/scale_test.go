package scale

import (
	"flag"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
	"github.com/plimsoll-dev/plimsoll/test/process"
)

var deployments = flag.Int("deployments", 2000, "how many Deployments of five pods the cluster of the benchmark has")

// BenchmarkController measures the passes of a controller over a large cluster
// that one cluster-wide policy targets: the first, over eight days of five
// minutes; passes in which nothing is new; and, with a policy of ten seconds,
// passes each of which has something to read. In each of the latter it is a
// failure to write anything.
//
// pass-s is how long a pass took, load-s/pass how much of it the source, cpu-s/pass the CPU time of the process in it
// (and until the next began), peak-MB and rss-MB its memory, heap-MB its heap at
// the smallest, history-MB what the history takes of it, reads and writes are
// requests to the API server, queries and received-MB are those to the source of
// history.
func BenchmarkController(b *testing.B) {
	crlog.SetLogger(logr.Discard()) // Else the library of the benchmark's own client asks for it.
	large := size{deployments: *deployments, replicas: 5, namespaces: 20, nodes: 100}
	c := cluster.Start(b, cluster.Options{ControlPlaneOnly: true})
	crd.Install(b, c.Config)
	large.simulate(b, c.Config)
	began := time.Now()
	if err := large.create(b.Context(), c.Config); err != nil {
		b.Fatal(err)
	}
	b.Logf("made %d pods in %s", large.deployments*large.replicas, time.Since(began).Round(time.Second))
	policies := newClient(b, c.Config)
	policy := &v1alpha1.ClusterVerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Spec: v1alpha1.ClusterVerticalPolicySpec{
			NamespaceSelector: &metav1.LabelSelector{},
			PolicySpec:        v1alpha1.PolicySpec{Mode: v1alpha1.ModeRecommend},
		},
	}
	if err := policies.Create(b.Context(), policy); err != nil {
		b.Fatal(err)
	}
	history := newServer(large)
	listener := httptest.NewServer(history)
	b.Cleanup(listener.Close)
	bench := &bench{controller: start(b, c.KubeconfigPath, listener.URL), history: history}

	b.Run("first", func(b *testing.B) { bench.measure(b, 1) })
	b.Run("idle", func(b *testing.B) { bench.steady(b, 12) })
	b.Run("ten-seconds/first", func(b *testing.B) {
		history.begins.Store(time.Now().Add(-3 * time.Hour).Unix())
		before := policy.DeepCopy()
		policy.Spec.History = v1alpha1.History{StepSeconds: ptr.To(int32(10)), WindowDays: ptr.To(int32(1)), MinimumDays: ptr.To(int32(0))}
		if err := policies.Patch(b.Context(), policy, client.MergeFrom(before)); err != nil {
			b.Fatal(err)
		}
		bench.measure(b, 1)
	})
	b.Run("ten-seconds/steady", func(b *testing.B) { bench.steady(b, 24) })
}

func newClient(b *testing.B, config *rest.Config) client.Client {
	b.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// bench is a controller at work, and what it was like when it was last looked at.
type bench struct {
	controller *process.Controller
	history    *server
	last       process.Reading
	sent       int64
}

// steady measures passes that have nothing to write.
func (m *bench) steady(b *testing.B, passes int) {
	before := m.last
	m.measure(b, passes)
	if n := writes(m.last) - writes(before); n != 0 {
		b.Errorf("nothing has changed, and %v requests wrote to the API server", n)
	}
}

// measure reports on the next passes.
func (m *bench) measure(b *testing.B, passes int) {
	heap := 0.0
	now := m.last
	for i := range passes {
		now = m.controller.AwaitCycles(b, m.last, i+1)
		if h := now.Sum("go_memstats_heap_alloc_bytes"); i == 0 || h < heap {
			heap = h
		}
	}
	since := func(name string, with ...string) float64 { return now.Sum(name, with...) - m.last.Sum(name, with...) }
	if failed := since("plimsoll_cycles_total", "outcome", "Failed"); failed > 0 {
		b.Errorf("%v passes failed", failed)
	}
	if got := now.Sum("plimsoll_workloads", "state", "Recommended"); got != float64(m.history.size.deployments) {
		b.Errorf("%v of %d workloads have a recommendation", got, m.history.size.deployments)
	}
	n := float64(passes)       // A policy that was just written may have started one more, which finds nothing new.
	b.ReportMetric(0, "ns/op") // Says nothing: passes wait for each other.
	for unit, value := range map[string]float64{
		"pass-s": since("plimsoll_cycle_seconds") / n, "load-s/pass": since("plimsoll_history_load_seconds") / n,
		"cpu-s/pass": since("process_cpu_seconds_total") / n,
		"peak-MB":    peakMB(b, m.controller.PID()), "rss-MB": now.Sum("process_resident_memory_bytes") / 1e6,
		"heap-MB": heap / 1e6, "history-MB": now.Sum("plimsoll_history_bytes") / 1e6,
		"goroutines": now.Sum("go_goroutines"),
		"reads/pass": (reads(now) - reads(m.last)) / n, "writes": writes(now) - writes(m.last),
		"queries/pass":     since("plimsoll_source_queries_total") / n,
		"received-MB/pass": float64(m.history.sent.Load()-m.sent) / 1e6 / n,
		"loaded/pass":      since("plimsoll_history_loaded_workloads_total") / n,
	} {
		b.ReportMetric(value, unit)
	}
	m.last, m.sent = now, m.history.sent.Load()
}
