package history

import (
	"slices"
	"time"
	"unsafe"
)

// Container is what one container of a workload used, over all pods.
type Container struct {
	// CPU holds cores, one sample a pod and step.
	CPU Sketch
	// demand is CPU with the samples that a limit held down raised by the
	// share of periods in which it did; nil where no sample was.
	demand *Sketch
	// Watcher, where not nil, is shown every sample of CPU demand.
	Watcher Watcher
	// Memory holds bytes, one sample a step: the worst pod's peak.
	Memory Sketch
	// OOMKills are the out-of-memory kills in the window, each once, oldest first.
	OOMKills []OOMKill
	// Dropped counts the samples that were left out, by cause.
	Dropped Dropped
	// Throttling is how far a CPU limit held usage down.
	Throttling Throttling
	// Masked counts CPU samples left out because the container was starting.
	Masked int
	// MaskFailed means that samples were to be masked, and nothing says when
	// the containers became ready.
	MaskFailed bool
	// CPUPressure and MemoryPressure are the largest shares of time in a step
	// that some task waited (PSI "some"), 0 to 1; negative where unknown.
	CPUPressure, MemoryPressure float64
	// tallies are the counts above by day, so that they slide with the window.
	tallies tallies
}

// NewContainer is a container of which nothing is known. Memory is kept without
// its hours: it does not follow the time of day, since what a process let go of
// it may ask for again at once.
func NewContainer() *Container {
	return &Container{Memory: Sketch{plain: true}, CPUPressure: -1, MemoryPressure: -1}
}

// Watcher follows one container's CPU demand as it comes in.
type Watcher interface {
	// Sample takes what one pod would have used until the given end, in seconds
	// since 1970. The sketch holds what came before.
	Sample(end int64, cores float64, before *Sketch)
	// Bytes is the memory that the watcher holds.
	Bytes() int
}

// Dropped counts samples left out, by cause.
type Dropped struct {
	// Invalid: NaN, infinite or negative.
	Invalid int
	// Implausible: above the ceiling.
	Implausible int
}

// Total is the number of samples left out.
func (d Dropped) Total() int { return d.Invalid + d.Implausible }

// Throttling sums up CFS periods. Shares are weighted by sample.
type Throttling struct {
	// Samples is how many CPU samples had periods to count.
	Samples int
	// Censored is how many of them were throttled enough to be a lower bound.
	Censored int
	// ShareSum is the sum of the throttled shares of the censored samples.
	ShareSum float64
}

// count takes one sample's share, 0 to 1.
func (t *Throttling) count(share float64) {
	t.Samples++
	if share >= LeastThrottled {
		t.Censored++
		t.ShareSum += share
	}
}

// LeastThrottled is the throttled share from which a sample counts as a lower
// bound. Below it lie single periods at the edge of a burst, which the margin
// covers; above it a process waits noticeably.
const LeastThrottled = 0.05

// AddCPU counts a CPU sample, in cores, of which the given share of CFS periods
// was throttled; a negative share is unknown. Usage under a limit that bites
// is a lower bound on demand: it is raised by the share of periods that hit the
// limit, so that demand can double from one look to the next, and stops
// growing when the limit stops biting.
func (c *Container) AddCPU(end int64, cores, throttledShare float64) {
	demand := cores
	if throttledShare >= 0 {
		share := min(throttledShare, 1)
		c.Throttling.count(share)
		c.tallies.on(end).throttling.count(share)
	}
	if share := min(throttledShare, 1); share >= LeastThrottled {
		demand *= 1 + share
		if c.demand == nil {
			c.demand = c.CPU.clone()
		}
	}
	switch w := c.Watcher.(type) {
	case nil:
	case *Tape:
		w.samples = append(w.samples, taped{end, cores, throttledShare})
	default:
		w.Sample(end, demand, c.Demand())
	}
	c.CPU.Add(end, cores)
	if c.demand != nil {
		c.demand.Add(end, demand)
	}
}

// Demand is what the container would have used of CPU, as far as that can be
// told: usage, corrected for throttling.
func (c *Container) Demand() *Sketch {
	if c.demand != nil {
		return c.demand
	}
	return &c.CPU
}

// Retain drops what lies in days that ended at or before the given time.
func (c *Container) Retain(after time.Time) {
	c.CPU.Retain(after)
	c.Memory.Retain(after)
	if c.demand != nil {
		c.demand.Retain(after)
	}
	c.OOMKills = slices.DeleteFunc(c.OOMKills, func(k OOMKill) bool { return !k.At.After(after) })
	if c.tallies.retain(after) {
		c.countUp()
		if c.Throttling.Censored == 0 {
			c.demand = nil // It is CPU once more.
		}
	}
}

// Compact gives back memory that only loading needed.
func (c *Container) Compact() {
	c.CPU.Compact()
	c.Memory.Compact()
	if c.demand != nil {
		c.demand.Compact()
	}
	c.OOMKills = slices.Clip(c.OOMKills)
	c.tallies = slices.Clip(c.tallies)
}

// Bytes is the memory that the container's history holds.
func (c *Container) Bytes() int {
	size := int(unsafe.Sizeof(*c)) + c.CPU.bytes() + c.Memory.bytes() + cap(c.OOMKills)*int(unsafe.Sizeof(OOMKill{})) +
		cap(c.tallies)*int(unsafe.Sizeof(tally{}))
	if c.demand != nil {
		size += int(unsafe.Sizeof(Sketch{})) + c.demand.bytes()
	}
	if c.Watcher != nil {
		size += c.Watcher.Bytes()
	}
	return size
}

// clone is an independent copy, without a Watcher.
func (c *Container) clone() *Container {
	k := *c
	k.Watcher = nil
	k.CPU, k.Memory = *c.CPU.clone(), *c.Memory.clone()
	if c.demand != nil {
		k.demand = c.demand.clone()
	}
	k.OOMKills, k.tallies = slices.Clone(c.OOMKills), slices.Clone(c.tallies)
	return &k
}
