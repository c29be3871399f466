package driver

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
)

// BenchmarkResize1000 resizes 1,000 pods of 100 workloads on simulated nodes of a
// real API server: unthrottled until all are done, and at the default rate of 60
// a minute for two minutes. A run is one iteration: use -benchtime 1x.
func BenchmarkResize1000(b *testing.B) {
	const workloads, each = 100, 10
	for name, run := range map[string]struct{ rate, enough int }{
		"unthrottled": {1 << 20, workloads * each},
		"default":     {60, 120},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				bed := newBed(b, func(b *bed) { b.rate = run.rate })
				all := podtest.WatchAll(b, bed.kube, bed.namespace)
				bed.fill(workloads, each)
				all.Await(b, "to be ready", workloads*each, podtest.Ready)
				before := heap()
				b.StartTimer()
				began := time.Now()
				stop := bed.manage(func(_ *manager.Options, o *Options) { o.Clock = clock.RealClock{} })
				all.Await(b, "to be resized", run.enough, idle)
				took := time.Since(began)
				b.StopTimer()
				done := testutil.ToFloat64(bed.measured.resizes.WithLabelValues("Up", "cpu", "Done", "BelowNeed"))
				b.ReportMetric(testutil.ToFloat64(bed.measured.requests)/done, "requests/pod")
				b.ReportMetric(float64(took.Milliseconds())/done, "ms/pod")
				b.ReportMetric(heap()-before, "MB")
				stop()
				b.StartTimer()
			}
		})
	}
}

// heap is what is in use, in MB.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / (1 << 20)
}

// fill makes workloads with pods that should grow.
func (b *bed) fill(workloads, each int) {
	b.Helper()
	template := size{"100m", "64Mi"}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range workloads {
		set := b.workload(fmt.Sprintf("w%03d", i), template)
		b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
		for n := range each {
			group.Go(func() error {
				return b.client.Create(context.Background(), b.newPod(set, n, template, onNode(fmt.Sprintf("sim-%d", 1+n%4))))
			})
		}
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
