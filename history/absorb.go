package history

import (
	"slices"
	"time"
	"unsafe"
)

// Tape is a Watcher that keeps the samples of one load in order, for Absorb to
// show to the Watcher of the container that it is absorbed into.
type Tape struct {
	samples []taped
}

// taped is one CPU sample as AddCPU was given it.
type taped struct {
	end            int64
	cores          float64
	throttledShare float64
}

// NewTape is for the Watch of a Query whose answer is to be absorbed: it gives
// every container a tape.
func NewTape(WorkloadKey, string) Watcher { return &Tape{} }

// Sample takes what was used without throttling. A container gives its own tape
// more than that.
func (t *Tape) Sample(end int64, cores float64, _ *Sketch) {
	t.samples = append(t.samples, taped{end, cores, -1})
}

// Bytes is the memory that the tape holds.
func (t *Tape) Bytes() int {
	return int(unsafe.Sizeof(*t)) + cap(t.samples)*int(unsafe.Sizeof(taped{}))
}

// Keepable is a Watcher that a Keeper can hold on to while others read a copy.
type Keepable interface {
	Watcher
	// Copy is an independent copy.
	Copy() Watcher
	// Like says whether the other one watches for the same, so that it would
	// know what this one knows had it watched as long.
	Like(other Watcher) bool
}

// Absorb adds what a later load gave. later holds samples of (end of c, end of
// later]; nothing in it is counted twice. The result is that of one load over
// both intervals. later stays as it is.
//
// Where later was loaded with a Tape, c's Watcher is shown its samples; without
// one, c's Watcher misses them.
func (c *Container) Absorb(later *Container) {
	counts := slices.Clone(later.tallies)
	if tape, ok := later.Watcher.(*Tape); ok && len(tape.samples) == later.CPU.Count() {
		for i := range counts {
			counts[i].throttling = Throttling{} // The samples bring it.
		}
		for _, s := range tape.samples {
			c.AddCPU(s.end, s.cores, s.throttledShare)
		}
	} else {
		c.absorbCPU(later)
	}
	c.Memory.absorb(&later.Memory)
	for _, k := range later.OOMKills {
		c.AddOOMKill(k)
	}
	c.tallies.add(counts)
	c.countUp()
}

// absorbCPU adds CPU and demand as sketches.
func (c *Container) absorbCPU(later *Container) {
	if c.demand == nil && later.demand != nil {
		c.demand = c.CPU.clone()
	}
	if c.demand != nil {
		c.demand.absorb(later.Demand())
	}
	c.CPU.absorb(&later.CPU)
}

// absorb adds the samples of another sketch, which stays as it is.
func (s *Sketch) absorb(later *Sketch) {
	if len(later.days) == 0 {
		return
	}
	s.last = max(s.last, later.last)
	if s.first == 0 || later.first < s.first {
		s.first = later.first
	}
	offset := 0
	for _, day := range later.days {
		head := s.head(day.day)
		head.count += day.count
		head.peak = max(head.peak, day.peak)
		if day.size > 0 {
			s.merge(day.day, later.encoded[offset:offset+int(day.size)], nil)
			offset += int(day.size)
		}
	}
	if !s.plain {
		for i, peak := range later.hours.peaks {
			if peak > 0 {
				s.hours.add(later.hours.base+int32(i), peak-1)
			}
		}
	}
	for _, cell := range later.recent.cells {
		s.count(later.recent.base+int32(cell.slot), cell.bucket, cell.count)
	}
}

// Absorb adds what a later load of the same workload gave, see
// Container.Absorb: counts of pods and containers become those of both loads,
// faults those of the later one. Containers of which no CPU was known get the
// Watcher that watch gives, which may be nil, as a Query has it: what is known of
// one may be a kill, which no load told of. later stays as it is.
//
// A pod whose samples have a gap of more than two steps may count as a past and
// as a live one.
func (u *Usage) Absorb(later Usage, watch func(w WorkloadKey, container string) Watcher) {
	if u.Containers == nil {
		u.Containers = map[string]*Container{}
	}
	for name, l := range later.Containers {
		c := u.Containers[name]
		if c == nil {
			c = NewContainer()
			u.Containers[name] = c
		}
		if c.Watcher == nil && c.CPU.Count() == 0 && watch != nil {
			c.Watcher = watch(later.Workload, name)
		}
		c.Absorb(l)
	}
	u.log.absorb(later.log)
	u.Pods = u.log.count()
	u.Faults = later.Faults
}

// Retain drops what lies in days that ended at or before the given time, and
// the containers of which nothing is left.
func (u *Usage) Retain(after time.Time) {
	for name, c := range u.Containers {
		c.Retain(after)
		if c.empty() {
			delete(u.Containers, name)
		}
	}
	u.log.retain(after)
	u.Pods = u.log.count()
}

// empty means that nothing is known of the container.
func (c *Container) empty() bool {
	return c.CPU.Count() == 0 && c.Memory.Count() == 0 && len(c.OOMKills) == 0 && len(c.tallies) == 0
}

// Compact gives back memory that only loading needed: to be called when no
// samples are expected for a while.
func (u *Usage) Compact() {
	for _, c := range u.Containers {
		c.Compact()
	}
	u.log.settle()
	u.Pods = u.log.count()
}

// End is the end of the newest load that is in here, zero where there is none.
func (u *Usage) End() time.Time { return unixOrZero(u.log.to) }

// Clone is an independent copy, without Watchers; faults are shared.
func (u *Usage) Clone() Usage {
	k := *u
	k.Containers = make(map[string]*Container, len(u.Containers))
	for name, c := range u.Containers {
		k.Containers[name] = c.clone()
	}
	k.Faults = slices.Clone(u.Faults)
	k.log.seen, k.log.ended = slices.Clone(u.log.seen), slices.Clone(u.log.ended)
	return k
}

// Bytes is the memory that the workload's history holds.
func (u *Usage) Bytes() int {
	size := int(unsafe.Sizeof(*u)) + u.log.bytes()
	for name, c := range u.Containers {
		size += len(name) + c.Bytes()
	}
	return size
}
