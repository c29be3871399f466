package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// churn is a hundred workloads of ten replicas whose pods live for half a minute.
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

func newChurn() *churn {
	c := &churn{
		now: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC), workloads: make([]Workload, 100),
		random: rand.New(rand.NewPCG(1, 2)),
	}
	c.usage = make([]Usage, len(c.workloads))
	for i := range c.workloads {
		c.workloads[i].WorkloadKey = WorkloadKey{"shop", "Deployment", fmt.Sprintf("web-%d", i)}
	}
	return c
}

// cycle reads what is new and forgets what left a window of four hours.
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
		u.Retain(c.now.Add(-4 * time.Hour))
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

func TestADayOfPodChurnLeavesMemoryAsItWas(t *testing.T) {
	c := newChurn()
	c.run(6 * time.Hour) // The day so far is all that the window holds, now and in a day.
	before := c.bytes()
	c.run(24 * time.Hour)
	after := c.bytes()
	t.Logf("%d pods of %d workloads came and went: %d bytes a workload, a day before %d", c.pods, len(c.workloads), after/len(c.usage), before/len(c.usage))
	if after > before*102/100 {
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
