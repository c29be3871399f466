package backtest

import (
	"math"
	"time"
)

// Strategy is one way to size containers. It is safe for concurrent use; what
// it learns of one series is kept in that series' Decider.
type Strategy interface {
	// Name tells strategies apart in reports.
	Name() string
	// Start begins with a series of which nothing is known yet but s.
	Start(s SeriesInfo) Decider
}

// Decider sizes the container of one series. Calls come in order of time.
type Decider interface {
	// Observe takes a sample once its interval is over. Usage is as a monitor
	// shows it: memory never above the limit, and CPU neither where there is
	// one.
	Observe(s Sample)
	// OOM takes an out-of-memory kill in a replica, before the sample in whose
	// interval it was: the limit then, and the working set last seen before it,
	// in bytes.
	OOM(replica int, at time.Time, limitBytes, usedBytes float64)
	// Decide is asked every few minutes, with the allocation in force. A
	// change that is still under way counts as in force.
	Decide(now time.Time, current Allocation) Decision
}

// Decision is what to do now.
type Decision struct {
	// Apply means that Target is to be put into force; what Target leaves as
	// it is does not count as a change.
	Apply bool
	// Recreate puts it into force by a new pod instead of in place.
	Recreate bool
	// Target is what the container should have.
	Target Allocation
}

// Keep is the decision to change nothing.
func Keep(current Allocation) Decision { return Decision{Target: current} }

// SeriesInfo is what a strategy may know of a series from the start.
type SeriesInfo struct {
	Name string
	// First is the start of the first interval, and Step the usual length.
	First time.Time
	Step  time.Duration
	// HasCPU and HasMemory say which resources the series has.
	HasCPU, HasMemory bool
	// Written is what manifests say of the workload.
	Written Written
	// Initial is the allocation in force at the start.
	Initial Allocation
	// Limits is how limits go with requests.
	Limits Limits
}

// Limits is how limits go with requests, in per cent of the request; 0 is no
// limit.
type Limits struct {
	CPUPercent, MemoryPercent int64
}

// Allocation is what a container asks for. A resource that the series does not
// have is zero.
type Allocation struct {
	CPU, Memory Amount
}

// Amount is a request and a limit, in milli-CPU or bytes; a limit of 0 is none.
type Amount struct {
	Request, Limit int64
}

// Of is the allocation with these requests, in milli-CPU and bytes.
func (l Limits) Of(cpuMilli, memoryBytes int64) Allocation {
	return Allocation{
		CPU:    Amount{cpuMilli, percentOf(cpuMilli, l.CPUPercent)},
		Memory: Amount{memoryBytes, percentOf(memoryBytes, l.MemoryPercent)},
	}
}

// OfUsage is the allocation with these requests, in cores and bytes, rounded
// up to whole milli-CPU and bytes.
func (l Limits) OfUsage(cores, bytes float64) Allocation {
	return l.Of(int64(math.Ceil(cores*1000-1e-9)), int64(math.Ceil(bytes)))
}

// seer is a strategy that looks at the recording itself: a bound for what can
// be done, and nothing that could be deployed.
type seer interface {
	startSeeing(info SeriesInfo, s *Series, scoredFrom int64) Decider
}

func percentOf(value, percent int64) int64 {
	return int64(math.Ceil(float64(value) * float64(percent) / 100))
}
