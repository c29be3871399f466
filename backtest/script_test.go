package backtest

import (
	"fmt"
	"time"
)

// A script is a strategy for tests: it decides what is written, by seconds
// since the start of the first interval, and keeps a log of what it was told.
type script struct {
	decisions map[int64]Decision
	log       []string
	seen      []Sample
	asked     []int64
	first     int64
	limits    Limits
}

func (*script) Name() string { return "script" }

func (s *script) Start(info SeriesInfo) Decider {
	s.first, s.limits = info.First.Unix(), info.Limits
	return s
}

func (s *script) Observe(sample Sample) { s.seen = append(s.seen, sample) }

func (s *script) OOM(replica int, at time.Time, limit, used float64) {
	s.log = append(s.log, fmt.Sprintf("%ds: replica %d killed at %.0f, using %.0f", at.Unix()-s.first, replica, limit, used))
}

func (s *script) Decide(now time.Time, current Allocation) Decision {
	at := now.Unix() - s.first
	s.asked = append(s.asked, at)
	s.log = append(s.log, fmt.Sprintf("%ds: has cpu %d, memory %d", at, current.CPU.Request, current.Memory.Request))
	if d, ok := s.decisions[at]; ok {
		return d
	}
	return Keep(current)
}

// to is the decision to ask for this much, in place.
func to(l Limits, cpuMilli, memoryBytes int64) Decision {
	return Decision{Apply: true, Target: l.Of(cpuMilli, memoryBytes)}
}

// five is a series with a sample every five minutes, from CPU in cores and
// memory in bytes; nil is none.
func five(cpu, memory []float64) Series {
	const start = 1_700_006_400 // Midnight.
	s := Series{Name: "web"}
	for i := range max(len(cpu), len(memory)) {
		sample := Sample{Start: start + int64(i)*300, End: start + int64(i+1)*300, CPUCores: -1, MemoryBytes: -1, Throttled: -1}
		if cpu != nil {
			sample.CPUCores = cpu[i]
		}
		if memory != nil {
			sample.MemoryBytes = memory[i]
		}
		s.Samples = append(s.Samples, sample)
	}
	return s
}

// atOnce scores from the first sample on, and puts changes into force at once,
// so that figures can be worked out by hand.
func atOnce() Options {
	o := DefaultOptions()
	o.Observe, o.Least, o.Delay = 0, 0, 0
	return o
}
