package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// histories holds what every workload used: read once over the whole window, and
// from then on only what is new.
type histories struct {
	Options
	entries map[history.WorkloadKey]*entry
	// advance is called when something was read, or could not be; loading is true
	// until then.
	advance func()
	loading atomic.Bool
}

// entry is what is known of one workload.
type entry struct {
	terms terms
	usage history.Usage
	// to is the end of what was read whole, from where the next reading goes on;
	// zero where nothing was.
	to time.Time
	// asOf is the end of what usage holds, and the recommender's present; zero
	// where it holds nothing.
	asOf time.Time
	// faults are those of the last attempt, and since when there are any.
	faults []*history.Fault
	since  time.Time
	// retryAt is when a workload that could not be read is due again.
	retryAt  time.Time
	attempts int
	// counted is how many dropped samples the metrics know of.
	counted history.Dropped
	// runtimes are what the processes said that they are when they were last
	// asked, at askedAt.
	runtimes history.Runtimes
	askedAt  time.Time
}

// terms are what history is read by. Other terms need another reading.
type terms struct {
	source       string
	window, step time.Duration
	mask         time.Duration
	// trials are the terms of the estimators that watch the samples, by
	// container, as text.
	trials string
}

// patience is how long a source may give incomplete answers about what is new
// until they are taken as all there is. Until then the same stretch is asked
// for again.
const patience = time.Hour

// Waits after a workload could not be read: the first, and the longest.
const (
	firstRetry   = 30 * time.Second
	longestRetry = 20 * time.Minute
)

func newHistories(o Options, advance func()) *histories {
	return &histories{Options: o, entries: map[history.WorkloadKey]*entry{}, advance: advance}
}

// keep forgets all workloads but the given ones, and returns the forgotten.
func (h *histories) keep(wanted map[history.WorkloadKey]bool) []history.WorkloadKey {
	var forgotten []history.WorkloadKey
	for key := range h.entries {
		if !wanted[key] {
			delete(h.entries, key)
			forgotten = append(forgotten, key)
		}
	}
	return forgotten
}

// of is what is known of a workload; nil where it was never asked for.
func (h *histories) of(key history.WorkloadKey) *entry { return h.entries[key] }

// bytes is the memory that the histories hold.
func (h *histories) bytes() int {
	sum := 0
	for _, e := range h.entries {
		sum += e.usage.Bytes()
	}
	return sum
}

// span is a stretch of history that several workloads are read over at once.
type span struct {
	source   string
	step     time.Duration
	from, to time.Time
	// whole means that what was known before is replaced.
	whole bool
}

// refresh reads what is due of the subjects. Sources that fail leave what is
// known, and a fault on each workload.
func (h *histories) refresh(ctx context.Context, subjects []*subject, ceiling history.Ceiling) {
	due := map[span][]*subject{}
	for _, s := range subjects {
		if sp, ok := h.due(s); ok {
			due[sp] = append(due[sp], s)
		}
	}
	for sp, group := range due {
		if ctx.Err() != nil {
			return
		}
		h.loading.Store(true)
		h.load(ctx, sp, group, ceiling)
		h.loading.Store(false)
		h.advance()
	}
}

// due is the stretch that is to be read of a subject, if any.
func (h *histories) due(s *subject) (span, bool) {
	e := h.entries[s.Key()]
	if e == nil || e.terms != s.terms {
		kept := e // The old reading serves until there is a new one.
		e = &entry{terms: s.terms}
		if kept != nil {
			e.usage, e.asOf, e.runtimes = kept.usage, kept.asOf, kept.runtimes
		}
		h.entries[s.Key()] = e
	}
	now := h.Clock.Now()
	source, ok := h.Sources[s.terms.source]
	if !ok || now.Before(e.retryAt) {
		return span{}, false
	}
	sp := span{source: s.terms.source, step: s.terms.step, from: e.to, to: now.Add(-h.Settle).Truncate(s.terms.step)}
	if _, keeps := source.(history.Keeper); keeps {
		sp.to = now
	}
	start := sp.to.Add(-s.terms.window)
	if _, keeps := source.(history.Keeper); keeps || e.to.Before(start) {
		sp.from, sp.whole = start, true
		return sp, true
	}
	return sp, sp.to.After(sp.from)
}

// load reads one stretch of several workloads.
func (h *histories) load(ctx context.Context, sp span, group []*subject, ceiling history.Ceiling) {
	q := history.Query{From: sp.from, To: sp.to, Step: sp.step, Ceiling: ceiling, Watch: watchers(group)}
	for _, s := range group {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: s.Key(), MaskStartup: s.terms.mask})
	}
	if !sp.whole {
		q.Watch = history.NewTape
	}
	began := h.Clock.Now()
	usage, err := h.Sources[sp.source].Load(ctx, q)
	if ctx.Err() != nil {
		return
	}
	now := h.Clock.Now()
	if err != nil {
		h.Log.Error(err, "reading history", "source", sp.source, "workloads", len(group), "from", sp.from, "to", sp.to)
		fault := faultOf(err)
		h.Metrics.LoadFailed(sp.source, string(fault.Reason))
		for _, s := range group {
			h.entries[s.Key()].failed(now, []*history.Fault{fault})
		}
		return
	}
	h.Metrics.Loaded(sp.source, now.Sub(began).Seconds(), len(group))
	watch := watchers(group)
	for i, s := range group {
		h.take(s, sp, usage[i], watch)
	}
	h.askRuntimes(ctx, sp.source, sp.to, group)
}

// take adds what was read of one workload to what is known of it.
func (h *histories) take(s *subject, sp span, usage history.Usage, watch func(history.WorkloadKey, string) history.Watcher) {
	e, now := h.entries[s.Key()], h.Clock.Now()
	faults := usage.Faults
	if !sp.whole && !s.expectsSamples(now) {
		// Without pods there is nothing new to know.
		faults = slices.DeleteFunc(slices.Clone(faults), func(f *history.Fault) bool { return f.Reason == v1alpha1.ReasonNoSeries })
	}
	if refused(faults) && (sp.whole || !e.outOfPatience(now)) {
		if len(e.usage.Containers) == 0 && len(usage.Containers) > 0 {
			e.usage, e.asOf = usage, sp.to // Better than nothing, and read again.
		}
		e.failed(now, faults)
		return
	}
	switch {
	case !sp.whole:
		e.usage.Absorb(usage, watch)
	case len(usage.Containers) > 0 || len(e.usage.Containers) == 0:
		e.usage = usage
	}
	e.read(sp.to, now, faults)
	h.count(e)
	e.usage.Retain(sp.to.Add(-s.terms.window))
	e.usage.Compact()
}

// read notes that history up to there is known.
func (e *entry) read(to, now time.Time, faults []*history.Fault) {
	e.to, e.asOf, e.retryAt, e.attempts = to, to, time.Time{}, 0
	if e.faults = faults; len(faults) == 0 {
		e.since = time.Time{}
	} else if e.since.IsZero() {
		e.since = now
	}
}

func (e *entry) outOfPatience(now time.Time) bool {
	return !e.since.IsZero() && now.Sub(e.since) >= patience
}

// count tells the metrics of samples that were dropped since the last time.
func (h *histories) count(e *entry) {
	var sum history.Dropped
	for _, c := range e.usage.Containers {
		sum.Invalid += c.Dropped.Invalid
		sum.Implausible += c.Dropped.Implausible
	}
	h.Metrics.Dropped("Invalid", max(0, sum.Invalid-e.counted.Invalid))
	h.Metrics.Dropped("Implausible", max(0, sum.Implausible-e.counted.Implausible))
	e.counted = sum
}

// failed notes that a workload could not be read, and when it is due again.
func (e *entry) failed(now time.Time, faults []*history.Fault) {
	e.faults = faults
	if e.since.IsZero() {
		e.since = now
	}
	e.retryAt = now.Add(min(longestRetry, firstRetry<<min(e.attempts, 10)))
	e.attempts++
}

// refused says whether a part of what was asked for is missing. That the source
// knows of no series is an answer.
func refused(faults []*history.Fault) bool {
	return slices.ContainsFunc(faults, func(f *history.Fault) bool { return f.Reason != v1alpha1.ReasonNoSeries })
}

// faultOf is what a load failed of.
func faultOf(err error) *history.Fault {
	var f *history.Fault
	if errors.As(err, &f) {
		return f
	}
	return &history.Fault{Reason: v1alpha1.ReasonSourceFailed, Err: err}
}

// watchers start what watches the samples of a container, as its policy has it.
func watchers(group []*subject) func(history.WorkloadKey, string) history.Watcher {
	policies := make(map[history.WorkloadKey]*subject, len(group))
	for _, s := range group {
		policies[s.Key()] = s
	}
	return recommender.Watch(func(w history.WorkloadKey) effectivePolicy { return policies[w].policy })
}

// termsOf are the terms that a subject's history is read by.
func termsOf(s *subject, source string) terms {
	t := terms{source: source, window: s.policy.Window, step: s.policy.Step}
	if s.policy.Startup != nil {
		t.mask = s.policy.Startup.Max
	}
	for _, c := range s.containers {
		values := s.policy.Container(c.Name)
		if values.CPU.Estimator == v1alpha1.EstimatorAuto {
			t.trials += fmt.Sprintf("%s %v;", c.Name, recommender.TermsOf(values))
		}
	}
	return t
}
