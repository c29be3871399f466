package history

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// churn is workloads of ten replicas whose pods live for half a minute.
type churn struct {
	now       time.Time
	workloads []Workload
	usage     []Usage
	random    *rand.Rand
	pods      int
}

const (
	churnStep     = 30 * time.Second
	churnCycle    = 10 * time.Minute
	churnReplicas = 10
)

func newChurn(workloads int) *churn {
	c := &churn{
		now: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC), workloads: make([]Workload, workloads),
		random: rand.New(rand.NewPCG(1, 2)),
	}
	c.usage = make([]Usage, len(c.workloads))
	for i := range c.workloads {
		c.workloads[i].WorkloadKey = WorkloadKey{"shop", "Deployment", fmt.Sprintf("web-%d", i)}
	}
	return c
}

// cycle reads what is new and forgets what left the window.
func (c *churn) cycle() {
	from := c.now
	c.now = c.now.Add(churnCycle)
	collector := NewCollector(Query{Workloads: c.workloads, From: from, To: c.now, Step: churnStep, Watch: NewTape})
	for at := from.Add(churnStep); !at.After(c.now); at = at.Add(churnStep) {
		ends := []int64{at.Unix()}
		for w := range c.workloads {
			for range churnReplicas {
				c.pods++
				pod := fmt.Sprintf("web-%d-%x", w, c.pods)
				collector.Add(w, pod, "app", MetricCPU, ends, []float64{c.random.ExpFloat64()})
				collector.Add(w, pod, "app", MetricMemory, ends, []float64{float64(1<<28) * (1 + c.random.Float64())})
				collector.Add(w, pod, "app", MetricThrottled, ends, []float64{c.random.Float64() / 10})
				if c.pods%97 == 0 {
					collector.AddOOMKill(w, "app", OOMKill{At: at, Pod: pod, LimitBytes: c.random.Float64()})
				}
			}
		}
	}
	collector.EndChunk()
	for i, later := range collector.Usage() {
		u := &c.usage[i]
		u.Absorb(later, nil)
		u.Retain(c.now.Add(-churnWindow))
		u.Compact()
	}
}

func (c *churn) run(length time.Duration) {
	for end := c.now.Add(length); c.now.Before(end); {
		c.cycle()
	}
}

func (c *churn) bytes() int {
	sum := 0
	for i := range c.usage {
		sum += c.usage[i].Bytes()
	}
	return sum
}

// churnWindow is filled in six hours: the day so far is all that it holds, then
// and a day later.
const (
	churnWindow = 4 * time.Hour
	churnFill   = 6 * time.Hour
)

func TestADayOfPodChurnLeavesMemoryAsItWas(t *testing.T) {
	c := newChurn(10) // No workload knows of another; the benchmark has more.
	c.run(churnFill)
	before := c.bytes()
	c.run(24 * time.Hour)
	if after := c.bytes(); after > before*102/100 {
		t.Errorf("a day of churn took %d bytes to %d", before, after)
	}
	for _, u := range c.usage {
		// A pod is live until two steps after its last sample.
		if want := 2 * churnReplicas; u.Pods.Live != want || len(u.log.seen) != want {
			t.Fatalf("%s has %d live pods and remembers %d, want %d", u.Workload, u.Pods.Live, len(u.log.seen), want)
		}
		if n := len(u.Containers["app"].OOMKills); n > maxOOMKills || len(u.log.ended) > 2 {
			t.Fatalf("%s remembers %d kills, and pods of %d days", u.Workload, n, len(u.log.ended))
		}
	}
}

// BenchmarkDayOfPodChurn is a day of a hundred workloads, and what it did to the
// memory that they hold and to the heap.
func BenchmarkDayOfPodChurn(b *testing.B) {
	for b.Loop() {
		c := newChurn(100)
		c.run(churnFill)
		bytes, heap := c.bytes(), liveHeap()
		c.run(24 * time.Hour)
		b.ReportMetric(float64(c.bytes())/float64(bytes), "held-after/before")
		b.ReportMetric(liveHeap()/heap, "heap-after/before")
		b.ReportMetric(float64(c.bytes())/float64(len(c.usage)), "bytes/workload")
		b.ReportMetric(float64(c.pods), "pods")
	}
}

// liveHeap is what the heap holds that is in use, in bytes.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
