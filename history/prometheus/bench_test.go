package prometheus

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

const benchStep = 5 * time.Minute

// benchCluster is what loads are measured on: 1,000 containers in 500 pods of 250
// Deployments.
var benchCluster = promserver.Cluster{Deployments: 250, Days: 16}

// BenchmarkLoad reads windows of several lengths from the real server, and for
// comparison fetches the same bytes without looking at them. Peak heap must not
// grow with the window.
func BenchmarkLoad(b *testing.B) {
	server, _ := benchCluster.Start(b)
	for _, days := range []int{4, 8, 16} {
		b.Run(fmt.Sprintf("days=%d", days), func(b *testing.B) {
			q := history.Query{From: now.AddDate(0, 0, -days), To: now, Step: benchStep}
			for i := range benchCluster.Deployments {
				q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: history.WorkloadKey{
					Namespace: promserver.ClusterNamespace(i), Kind: "Deployment", Name: promserver.ClusterDeployment(i),
				}})
			}
			s := DefaultSettings()
			s.URL, s.RemoteRead = server.URL, RemoteReadNever // What is fetched raw are range queries.
			source, err := New(s)
			if err != nil {
				b.Fatal(err)
			}
			requests := recordRequests(b, s, q) // This also warms the server's memory.
			var loading, fetching time.Duration
			var peakHeap, retained, answered float64
			for b.Loop() {
				before := source.client.received.Load()
				start := time.Now()
				usage, p := withPeakHeap(func() []history.Usage { return benchLoad(b, source, q) })
				loading += time.Since(start)
				peakHeap = max(peakHeap, p)
				answered = float64(source.client.received.Load() - before)
				b.StopTimer()
				retained = heap()
				checkBenchUsage(b, usage, days)
				start = time.Now()
				fetchRaw(b, server.URL, requests, s.MaxInFlight)
				fetching += time.Since(start)
				b.StartTimer()
			}
			b.ReportMetric(peakHeap/(1<<20), "peak-heap-MB")
			b.ReportMetric(retained/(1<<20), "live-heap-MB")
			b.ReportMetric(answered/(1<<20), "answer-MB")
			b.ReportMetric(float64(len(requests)), "queries")
			b.ReportMetric(fetching.Seconds()/float64(b.N), "raw-fetch-s")
			b.ReportMetric(loading.Seconds()/fetching.Seconds(), "times-raw-fetch")
		})
	}
}

func benchLoad(b *testing.B, s *Source, q history.Query) []history.Usage {
	usage, err := s.Load(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	return usage
}

func checkBenchUsage(b *testing.B, usage []history.Usage, days int) {
	for _, u := range usage {
		for _, name := range promserver.ClusterContainers {
			c := u.Containers[name]
			if c == nil || c.Memory.Count() < days*287 || c.CPU.Count() < promserver.ClusterReplicas*days*287 || len(u.Faults) > 0 {
				b.Fatalf("%s: container %s is not whole, faults %v", u.Workload, name, u.Faults)
			}
		}
	}
}

// withPeakHeap is the largest size of the heap while f runs, sampled.
func withPeakHeap[T any](f func() T) (result T, peak float64) {
	runtime.GC()
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
				metrics.Read(s)
				peak = max(peak, float64(s[0].Value.Uint64()))
			}
		}
	})
	result = f()
	close(stop)
	sampling.Wait()
	return result, peak
}

// heap is the size of what is reachable.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func recordRequests(b *testing.B, settings Settings, q history.Query) []rawRequest {
	source, err := New(settings)
	if err != nil {
		b.Fatal(err)
	}
	r := new(recorder)
	r.Client = source.recorded(b, r)
	benchLoad(b, source, q)
	return r.all
}

func fetchRaw(b *testing.B, url string, requests []rawRequest, inFlight int) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: inFlight}}
	defer client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(inFlight)
	for _, r := range requests {
		group.Go(func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+r.path, bytes.NewReader(r.body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
