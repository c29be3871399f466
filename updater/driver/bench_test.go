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
// real API server: unthrottled by the system's clock, and at the default rate of 60
// a minute by a clock that is put forward by a minute when as many are done. A run
// is one iteration: use -benchtime 1x.
func BenchmarkResize1000(b *testing.B) {
	const workloads, each = 100, 10
	for name, rate := range map[string]int{"unthrottled": 1 << 20, "default": 60} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				bed := newBed(b, func(b *bed) { b.rate = rate })
				all := podtest.WatchAll(b, bed.kube, bed.namespace)
				names := bed.fill(workloads, each)
				all.Await(b, "to be ready", workloads*each, podtest.Ready)
				before, minutes := heap(), 0
				b.StartTimer()
				began := time.Now()
				stop := bed.manage(func(_ *manager.Options, o *Options) {
					if rate > workloads*each {
						o.Clock = clock.RealClock{}
					}
				})
				bed.byTheMinute(all, workloads*each, names, func(minute int) { minutes = minute })
				took := time.Since(began)
				b.StopTimer()
				done := testutil.ToFloat64(bed.measured.resizes.WithLabelValues("Up", "cpu", "Done", "BelowNeed"))
				b.ReportMetric(testutil.ToFloat64(bed.measured.requests)/done, "requests/pod")
				b.ReportMetric(float64(took.Milliseconds())/done, "ms/pod")
				b.ReportMetric(float64(minutes), "minutes")
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

// fill makes workloads with pods that should grow, and names them.
func (b *bed) fill(workloads, each int) (names []string) {
	b.Helper()
	template := size{"100m", "64Mi"}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range workloads {
		set := b.workload(fmt.Sprintf("w%03d", i), template)
		names = append(names, set.Name)
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
	return names
}
