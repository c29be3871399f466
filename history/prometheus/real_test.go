package prometheus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// recorded is a day and a half of usage of one container.
type recorded struct {
	pod, container string
	cores, bytes   []float64
}

func record(pod, container string, seed uint64, n int) recorded {
	r := rand.New(rand.NewPCG(seed, 1))
	u := recorded{pod: pod, container: container}
	for range n {
		u.cores = append(u.cores, 0.05+r.ExpFloat64()*0.3)
		u.bytes = append(u.bytes, float64(int64((200+r.NormFloat64()*30)*mi)))
	}
	return u
}

func named(metric, pod, container string, more ...string) map[string]string {
	labels := ids(pod, container)
	labels["__name__"] = metric
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

// The same history through the real server and straight into a collector.
func TestRealServerGivesWhatWasRecorded(t *testing.T) {
	const step, every, n = 5 * time.Minute, time.Minute, 36 * 12
	scrapes := promserver.Scrapes{Start: now.Add(-n * step), Step: step, Every: every}
	q := query(n*step, step, deployment("web"), statefulSet("db"))
	want := history.NewCollector(q)
	var series []promserver.Series
	for i, u := range []recorded{
		record("web-7d4b9c6f5d-abcde", "app", 1, n),
		record("web-7d4b9c6f5d-fghij", "app", 2, n),
		record("web-7d4b9c6f5d-fghij", "proxy", 3, n),
		record("db-0", "db", 4, n),
	} {
		w := 0
		if u.pod == "db-0" {
			w = 1
		}
		var ends []int64
		for k := range n {
			ends = append(ends, scrapes.Start.Add(time.Duration(k+1)*step).Unix())
		}
		want.Add(w, u.pod, u.container, history.MetricCPU, ends, u.cores)
		want.Add(w, u.pod, u.container, history.MetricMemory, ends, u.bytes)
		series = append(series,
			scrapes.Counter(named(cpuMetric, u.pod, u.container, "id", fmt.Sprint("/c/", i)), u.cores),
			scrapes.Gauge(named(memoryMetric, u.pod, u.container, "id", fmt.Sprint("/c/", i)), u.bytes),
			// What the kubelet shows beside containers.
			scrapes.Gauge(named(memoryMetric, u.pod, ""), u.bytes),
			scrapes.Gauge(named(memoryMetric, u.pod, "POD"), u.bytes),
		)
	}
	want.EndChunk()
	server := promserver.Start(t, series)
	recorded := want.Usage()
	var plain int64
	for _, compress := range []bool{false, true} {
		// The interval of scrapes is found out.
		s, _ := newTestSource(t, server.URL, func(s *Settings) { s.ScrapeInterval, s.Compress = 0, compress })
		got, err := s.Load(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if s.scrape != every {
			t.Errorf("the scrape interval is found to be %s, want %s", s.scrape, every)
		}
		for i, want := range recorded {
			sameUsage(t, got[i], want)
		}
		if n := s.client.received.Load(); compress && n != plain {
			t.Errorf("compressed answers are %d bytes after unpacking, plain ones %d", n, plain)
		} else {
			plain = n
		}
	}
}

func sameUsage(t *testing.T, got, want history.Usage) {
	t.Helper()
	if len(got.Faults) > 0 || got.Pods != want.Pods || len(got.Containers) != len(want.Containers) {
		t.Errorf("%s: faults %v, pods %+v, containers %v; want none, %+v, %v", got.Workload, got.Faults, got.Pods, maps.Keys(got.Containers), want.Pods, maps.Keys(want.Containers))
	}
	for name, wc := range want.Containers {
		gc := got.Containers[name]
		if gc == nil {
			t.Errorf("%s: no container %s", got.Workload, name)
			continue
		}
		if gc.CPU.Count() != wc.CPU.Count() || gc.Memory.Count() != wc.Memory.Count() || gc.Dropped != wc.Dropped {
			t.Errorf("%s %s: %d, %d samples, dropped %+v; want %d, %d, %+v", got.Workload, name, gc.CPU.Count(), gc.Memory.Count(), gc.Dropped, wc.CPU.Count(), wc.Memory.Count(), wc.Dropped)
		}
		for _, p := range []float64{0.5, 0.9, 0.95, 0.99} {
			if g, w := quantile(t, &gc.CPU, p), quantile(t, &wc.CPU, p); !near(g, w) {
				t.Errorf("%s %s: CPU at %v is %v, want %v", got.Workload, name, p, g, w)
			}
			if g, w := quantile(t, &gc.Memory, p), quantile(t, &wc.Memory, p); g != w {
				t.Errorf("%s %s: memory at %v is %v, want %v", got.Workload, name, p, g, w)
			}
		}
		g, _ := gc.Memory.Peak()
		if w, _ := wc.Memory.Peak(); g != w {
			t.Errorf("%s %s: the memory peak is %v, want %v", got.Workload, name, g, w)
		}
	}
}
