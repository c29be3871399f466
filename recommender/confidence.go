package recommender

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// FullConfidence is how much history makes a recommendation as sure as it
// gets: a week has every weekday once. A shorter window is as sure as it can
// be when all of it was seen.
const FullConfidence = 7 * 24 * time.Hour

// coverSlack is how much of the window may be missing before it is said: a
// source seldom starts at the very minute. What runs now and then is given a
// day, since its first run in the window can be that late.
const (
	coverSlack       = time.Hour
	coverSlackSparse = 24 * time.Hour
)

// history judges how much was seen of each resource, and sets confidence and
// bounds.
func (w *work) history(h *history.Container) {
	cpu, memory := w.seen(&h.CPU), w.seen(&h.Memory)
	seen := max(cpu, memory)
	w.need.Confidence = w.confidence(seen)
	slack := coverSlack
	if samples := max(h.CPU.Count(), h.Memory.Count()); time.Duration(samples)*w.in.Step < seen/2 {
		slack = coverSlackSparse
	}
	if seen > 0 && seen < w.in.Window-slack {
		w.reason(v1alpha1.ReasonWindowNotCovered)
	}
	if shorter(cpu, memory) < w.in.Minimum {
		w.reason(v1alpha1.ReasonShortHistory)
	}
	w.trust(&w.need.CPU, cpu, w.in.Policy.CPU.MarginPercent)
	w.trust(&w.need.Memory, memory, w.in.Policy.Memory.MarginPercent)
	w.headroom(&w.need.Memory)
	if w.trial != nil {
		w.trialBounds()
	}
}

// shorter is the lesser of two times; a resource that was not seen at all is none
// that is known too briefly.
func shorter(cpu, memory time.Duration) time.Duration {
	if cpu == 0 || memory == 0 {
		return max(cpu, memory)
	}
	return min(cpu, memory)
}

// confidence is how sure a time of history makes, from 0 to 1.
func (w *work) confidence(seen time.Duration) float64 {
	full := min(w.in.Window, FullConfidence)
	if full <= 0 {
		return 0
	}
	return min(1, float64(seen)/float64(full))
}

// seen is how much time a sketch covers: from its first to its last sample,
// but no more than the days in which there was any, so that a gap of days
// counts for nothing.
func (w *work) seen(s *history.Sketch) time.Duration {
	if s.Count() == 0 {
		return 0
	}
	span := s.Last().Sub(s.First()) + w.in.Step
	return min(span, time.Duration(s.Days())*24*time.Hour)
}

// leastConfidence keeps the bounds of a container that was just met finite.
const leastConfidence = 0.05

// trust says whether a resource may be lowered, and sets the band around its
// target within which a present size is good enough: the margin to either side,
// or the least change where that is more, and the wider the less is known. With
// full confidence, the lower bound is the need without its margin.
func (w *work) trust(e *Estimate, seen time.Duration, marginPercent int) {
	e.Decreasable = len(w.in.Faults) == 0 && seen >= w.in.Minimum
	if !e.Known {
		return
	}
	half := float64(max(marginPercent, w.in.MinChangePercent)) / 100 / max(w.confidence(seen), leastConfidence)
	e.Lower, e.Upper = e.Target/(1+half), e.Target*(1+half)
}

// sourceFaults turns what a source could not give into reasons.
func (w *work) sourceFaults() {
	for _, f := range w.in.Faults {
		w.reason(f.Reason)
	}
	if w.in.History == nil && len(w.in.Faults) == 0 {
		w.reason(v1alpha1.ReasonNoSeries)
	}
}

// trialBounds is what a trial knows beyond the window: that a workload was seen
// for days before a gap, and that load is load however short the history.
func (w *work) trialBounds() {
	cpu := &w.need.CPU
	half := 1 + float64(max(w.in.Policy.CPU.MarginPercent, w.in.MinChangePercent))/100
	if w.trial.tight {
		cpu.Lower = max(cpu.Lower, cpu.Target/half)
	}
	if cpu.Proven = len(w.in.Faults) == 0 && w.trial.seen >= w.in.Minimum; cpu.Proven {
		cpu.Upper = min(cpu.Upper, cpu.Target*half)
	}
}

// headroom keeps half of memory's margin free: what passes CPU's need waits, and
// what passes a memory limit is killed.
func (w *work) headroom(e *Estimate) {
	if margin := float64(w.in.Policy.Memory.MarginPercent) / 100; e.Known {
		e.Lower = max(e.Lower, e.Target*(1+margin/2)/(1+margin))
	}
}
