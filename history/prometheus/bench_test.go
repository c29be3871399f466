package prometheus

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/binaries"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// The cluster that loads are measured on: 1,000 containers in 500 pods of 250
// Deployments in five namespaces, scraped once a minute.
const (
	benchDeployments = 250
	benchReplicas    = 2
	benchDays        = 16
	benchScrape      = time.Minute
	benchStep        = 5 * time.Minute
)

// BenchmarkLoad reads windows of several lengths from the real server, and for
// comparison fetches the same bytes without looking at them. Peak heap must not
// grow with the window.
func BenchmarkLoad(b *testing.B) {
	server := benchServer(b)
	for _, days := range []int{4, 8, 16} {
		b.Run(fmt.Sprintf("days=%d", days), func(b *testing.B) {
			q := history.Query{From: now.AddDate(0, 0, -days), To: now, Step: benchStep}
			for i := range benchDeployments {
				q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: history.WorkloadKey{
					Namespace: benchNamespace(i), Kind: "Deployment", Name: benchName(i),
				}})
			}
			s := DefaultSettings()
			s.URL = server.URL
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
		for _, name := range []string{"app", "proxy"} {
			c := u.Containers[name]
			if c == nil || c.Memory.Count() < days*287 || c.CPU.Count() < benchReplicas*days*287 || len(u.Faults) > 0 {
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

func benchNamespace(deployment int) string { return fmt.Sprintf("team-%d", deployment%5) }

func benchName(deployment int) string { return fmt.Sprintf("service-%03d", deployment) }

// benchServer runs the real server on the cluster's data, which is made once
// and kept outside the checkout.
func benchServer(b *testing.B) *promserver.Server {
	version, err := binaries.Version("prometheus")
	if err != nil {
		b.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(cache, "plimsoll", "bench", fmt.Sprintf("load-%s-1", version))
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		makeBenchData(b, dir)
	}
	server, err := promserver.Run(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	return server
}

func makeBenchData(b *testing.B, dir string) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		b.Fatal(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".make-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(tmp); err != nil {
			b.Error(err)
		}
	})
	fmt.Fprintln(os.Stderr, "bench: making the data of 1,000 containers, once")
	start := time.Now()
	server, err := promserver.Run(b.Context(), tmp)
	if err != nil {
		b.Fatal(err)
	}
	defer server.Stop()
	cluster := newBenchCluster()
	for at := now.AddDate(0, 0, -benchDays); at.Before(now); at = at.Add(benchSlice) {
		if err := server.WriteSlice(b.Context(), func(add func(map[string]string, []int64, []float64)) { cluster.slice(at, add) }); err != nil {
			b.Fatal(err)
		}
	}
	if err := server.Snapshot(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "bench: made the data in %s\n", time.Since(start).Round(time.Second))
}

const benchSlice = 30 * time.Minute

// benchCluster makes readings of all containers, slice by slice.
type benchCluster struct {
	series []benchSeries
	seed   uint64
}

type benchSeries struct {
	cpu, memory map[string]string
	seconds     float64 // the counter
	cores       float64 // on average
}

func newBenchCluster() *benchCluster {
	c := new(benchCluster)
	for d := range benchDeployments {
		for r := range benchReplicas {
			for k, container := range []string{"app", "proxy"} {
				labels := func(metric string) map[string]string {
					return map[string]string{
						"__name__": metric, "namespace": benchNamespace(d), "container": container,
						"pod":      fmt.Sprintf("%s-7d4b9c6f5d-%cbcdf", benchName(d), 'g'+rune(r)),
						"id":       fmt.Sprintf("/kubepods/pod%d/%d", d*benchReplicas+r, k),
						"instance": fmt.Sprintf("10.0.0.%d:10250", (d+r)%20), "job": "kubelet", "metrics_path": "/metrics/cadvisor",
					}
				}
				c.series = append(c.series, benchSeries{
					cpu: labels(cpuMetric), memory: labels(memoryMetric),
					seconds: 1e5, cores: 0.02 * math.Pow(1.03, float64(d%100)),
				})
			}
		}
	}
	return c
}

// noise is a number in [0, 1), the same in every run.
func (c *benchCluster) noise() float64 {
	c.seed = c.seed*6364136223846793005 + 1442695040888963407
	return float64(c.seed>>11) / (1 << 53)
}

func (c *benchCluster) slice(start time.Time, add func(map[string]string, []int64, []float64)) {
	n := int(benchSlice / benchScrape)
	times, cpu, memory := make([]int64, n), make([]float64, n), make([]float64, n)
	for i := range c.series {
		s := &c.series[i]
		for k := range n {
			at := start.Add(time.Duration(k+1) * benchScrape)
			daily := 1 + 0.5*math.Sin(2*math.Pi*float64(at.Unix()%daySeconds)/daySeconds)
			s.seconds += s.cores * daily * (0.5 + c.noise()) * benchScrape.Seconds()
			times[k], cpu[k] = at.Unix(), s.seconds
			memory[k] = math.Floor((0.5+s.cores)*daily*(1+0.1*c.noise())*256) * 4096 * 256
		}
		add(s.cpu, times, cpu)
		add(s.memory, times, memory)
	}
}
