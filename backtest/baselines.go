package backtest

import (
	"time"
)

// Provisioned keeps what was asked for at the start.
type Provisioned struct{}

// Name implements Strategy.
func (Provisioned) Name() string { return "provisioned" }

// Start implements Strategy.
func (Provisioned) Start(SeriesInfo) Decider { return fixed{} }

// fixed sets an allocation once, where it has one, and leaves it.
type fixed struct{ allocation *Allocation }

func (fixed) Observe(Sample)                       {}
func (fixed) OOM(int, time.Time, float64, float64) {}

func (f fixed) Decide(_ time.Time, current Allocation) Decision {
	if f.allocation == nil {
		return Keep(current)
	}
	return Decision{Apply: true, Target: *f.allocation}
}

// HindsightMax asks for what turned out to be the peak, all the time: the least
// that a fixed size without any shortage can ask for. It sees the future.
type HindsightMax struct{}

// Name implements Strategy.
func (HindsightMax) Name() string { return "hindsight-max" }

// Start implements Strategy.
func (HindsightMax) Start(SeriesInfo) Decider { return fixed{} }

func (HindsightMax) startSeeing(info SeriesInfo, s *Series, scoredFrom int64) Decider {
	cpu, memory := s.peak(scoredFrom, s.Samples[len(s.Samples)-1].End)
	a := info.Limits.OfUsage(max(cpu, 0), max(memory, 0))
	return fixed{&a}
}

// Clairvoyant asks each hour for what turns out to be its peak: close to the
// least that any strategy without shortage can ask for at so few changes. It
// sees the future.
type Clairvoyant struct{}

// Name implements Strategy.
func (Clairvoyant) Name() string { return "clairvoyant" }

// Start implements Strategy.
func (Clairvoyant) Start(SeriesInfo) Decider { return fixed{} }

func (Clairvoyant) startSeeing(info SeriesInfo, s *Series, _ int64) Decider {
	return &clairvoyant{fixed: fixed{}, info: info, series: s}
}

type clairvoyant struct {
	fixed
	info   SeriesInfo
	series *Series
	until  time.Time
}

func (c *clairvoyant) Decide(now time.Time, current Allocation) Decision {
	if now.Before(c.until) {
		return Keep(current)
	}
	c.until = now.Add(time.Hour)
	// The next change takes a moment, and until then this one must do.
	cpu, memory := c.series.peak(now.Unix(), c.until.Add(c.info.Step).Unix())
	return Decision{Apply: true, Target: c.info.Limits.OfUsage(max(cpu, 0), max(memory, 0))}
}

// WatchedMax asks for the peak of the time in which it watched and 15% more,
// once: what a careful person does.
type WatchedMax struct{}

// Name implements Strategy.
func (WatchedMax) Name() string { return "watched-max" }

// Start implements Strategy.
func (WatchedMax) Start(info SeriesInfo) Decider { return &watchedMax{info: info} }

type watchedMax struct {
	info        SeriesInfo
	cpu, memory float64
	done        bool
}

func (w *watchedMax) Observe(s Sample) {
	w.cpu, w.memory = max(w.cpu, s.CPUCores), max(w.memory, s.MemoryBytes)
}

func (*watchedMax) OOM(int, time.Time, float64, float64) {}

func (w *watchedMax) Decide(_ time.Time, current Allocation) Decision {
	if w.done {
		return Keep(current)
	}
	const margin = 1.15
	w.done = true
	return Decision{Apply: true, Target: w.info.Limits.OfUsage(w.cpu*margin, w.memory*margin)}
}
