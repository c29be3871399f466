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
	"github.com/plimsoll-dev/plimsoll/workload"
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
	// to is the end of what was read, from where the next reading goes on; zero
	// where nothing was.
	to time.Time
	// asOf is the end of what usage holds, and the recommender's present; zero
	// where it holds nothing.
	asOf time.Time
	// faults are those of the last attempt, or of the gap, and since when there are
	// any.
	faults []*history.Fault
	since  time.Time
	// gap is the end of the newest stretch that was taken although the source
	// called it incomplete, for gapFaults; zero where there is none in the window.
	gap       time.Time
	gapFaults []*history.Fault
	// nothing means that the source knew nothing of the whole window. Where it
	// knows something later, there may be more.
	nothing bool
	// again is when the whole window is to be read once more, since what is known
	// of it may not be all; zero is not. rereads counts how often it was.
	again   time.Time
	rereads int
	// loading means that the source does not know yet what it has.
	loading bool
	// retryAt is when a workload that could not be read is due again.
	retryAt  time.Time
	attempts int
	// covered is the most that was known of each container since the start, in
	// percent of a week or the window, as recommendations have it.
	covered map[string]int32
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
// until they are taken for what there is at the moment. Until then the same
// stretch is asked for again.
const patience = time.Hour

// Waits after a workload could not be read: the first, and the longest. A window
// of which something is known is read again less and less often.
const (
	firstRetry    = 30 * time.Second
	longestRetry  = 20 * time.Minute
	longestReread = 6 * time.Hour
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
	now := h.Clock.Now()
	e := h.entry(s, now)
	source, ok := h.Sources[s.terms.source]
	if !ok || now.Before(e.retryAt) {
		return span{}, false
	}
	sp := span{source: s.terms.source, step: s.terms.step, from: e.to, to: now.Add(-h.settle(s.terms.source)).Truncate(s.terms.step)}
	_, keeps := source.(history.Keeper)
	if keeps {
		sp.to = now
	}
	start := s.begins(sp.to)
	if keeps || e.to.Before(start) || !e.again.IsZero() && !now.Before(e.again) {
		sp.from, sp.whole = start, true
		return sp, true
	}
	return sp, sp.to.After(sp.from)
}

// settle is how long a source is given to have a step's last samples.
func (h *histories) settle(source string) time.Duration {
	if d, ok := h.Delays[source]; ok {
		return d
	}
	return h.Settle
}

// entry is what is known of the workload, begun anew where it was read by other
// terms, or by a clock that has been put back since.
func (h *histories) entry(s *subject, now time.Time) *entry {
	e := h.entries[s.Key()]
	if e != nil && e.terms == s.terms && !e.to.After(now) && !e.retryAt.After(now.Add(longestRetry)) {
		return e
	}
	anew := &entry{terms: s.terms}
	if e != nil { // The old reading serves until there is a new one.
		anew.usage, anew.asOf, anew.runtimes, anew.covered, anew.counted = e.usage, e.asOf, e.runtimes, e.covered, e.counted
	}
	h.entries[s.Key()] = anew
	return anew
}

// begins is where the history of a window that ends there begins. Pods of their
// own and Jobs are new under each name, and nothing is older than they are. The
// time is coarse, so that many of them are read at once.
func (s *subject) begins(end time.Time) time.Time {
	start := end.Add(-s.terms.window)
	created := s.target.Created
	if kind := s.target.Kind; kind != workload.KindPod && kind != workload.KindJob || created.IsZero() {
		return start
	}
	coarse := time.Hour
	if end.Sub(created) > 24*time.Hour {
		coarse = 24 * time.Hour
	}
	begun := created.Add(-s.terms.step).Truncate(coarse)
	if last := end.Add(-s.terms.step); begun.After(last) {
		begun = last // Nothing of it is due yet.
	}
	if begun.Before(start) {
		return start
	}
	return begun
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
			h.notRead(h.entries[s.Key()], sp, fault, now)
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
	if e.loading = has(usage.Faults, v1alpha1.ReasonHistoryLoading); e.loading {
		return
	}
	faults := usage.Faults
	_, keeps := h.Sources[sp.source].(history.Keeper)
	switch {
	case keeps:
		e.takeKept(sp, usage, now)
	case sp.whole:
		e.takeWhole(sp, usage, now)
	default:
		if !s.expectsSamples(now) {
			// Without pods there is nothing new to know.
			faults = without(faults, v1alpha1.ReasonNoSeries)
		}
		e.takeNew(sp, usage, faults, watch, now)
	}
	h.count(e)
	e.usage.Retain(sp.to.Add(-s.terms.window))
	e.usage.Compact()
}

// takeKept takes what a source has kept itself. The newest is the best that there
// is, with faults or without.
func (e *entry) takeKept(sp span, usage history.Usage, now time.Time) {
	if len(usage.Containers) > 0 || len(e.usage.Containers) == 0 {
		e.usage = usage
	}
	if refused(without(usage.Faults, v1alpha1.ReasonPartialHistory)) {
		e.faults, e.asOf = usage.Faults, sp.to // It has heard nothing new.
		return
	}
	e.read(sp.to, now, usage.Faults)
}

// takeWhole takes a reading of the whole window in place of what is known.
func (e *entry) takeWhole(sp span, usage history.Usage, now time.Time) {
	if refused(usage.Faults) {
		e.takePart(sp, usage, now)
		return
	}
	if sampled(usage) || !sampled(e.usage) {
		e.usage = usage
	}
	e.nothing, e.again, e.gap, e.gapFaults = !sampled(usage), time.Time{}, time.Time{}, nil
	e.read(sp.to, now, usage.Faults)
}

// takePart takes a reading of the window that the source calls incomplete, where
// it is the first or has more than is known. The window is read again later.
func (e *entry) takePart(sp span, usage history.Usage, now time.Time) {
	first := e.to.IsZero() || e.to.Before(sp.from)
	switch {
	case first && !sampled(usage):
		e.failed(now, usage.Faults)
		return
	case first || samples(usage) > samples(e.usage):
		e.usage, e.nothing = usage, false
		if first || e.gap.IsZero() {
			e.gap, e.gapFaults = sp.to, usage.Faults
		}
		e.read(sp.to, now, usage.Faults)
	}
	e.again = time.Time{}
	e.readAgain(now)
}

// takeNew adds what is new. What is incomplete is asked for again, until patience
// ends.
func (e *entry) takeNew(sp span, usage history.Usage, faults []*history.Fault, watch func(history.WorkloadKey, string) history.Watcher, now time.Time) {
	incomplete := refused(faults)
	switch {
	case incomplete && !e.outOfPatience(now):
		e.failed(now, faults)
		return
	case e.nothing && sampled(usage):
		// The source had nothing to say before, and may have more than this now.
		if e.again.IsZero() {
			e.again = now
		}
		e.read(sp.to, now, e.faults)
		return
	case incomplete:
		e.gap, e.gapFaults = sp.to, faults
		e.readAgain(now)
	}
	e.usage.Absorb(usage, watch)
	e.read(sp.to, now, faults)
}

// read notes that history up to there is known.
func (e *entry) read(to, now time.Time, faults []*history.Fault) {
	e.to, e.asOf, e.retryAt, e.attempts = to, to, time.Time{}, 0
	if e.gap.Before(to.Add(-e.terms.window)) {
		e.gap, e.gapFaults = time.Time{}, nil
	}
	if e.faults = faults; len(faults) == 0 {
		e.faults = e.gapFaults
	}
	if len(e.faults) == 0 {
		e.since = time.Time{}
	} else if e.since.IsZero() {
		e.since = now
	}
}

func (e *entry) outOfPatience(now time.Time) bool {
	return !e.since.IsZero() && now.Sub(e.since) >= patience
}

// readAgain has the whole window read once more after a while, where that is not
// planned already.
func (e *entry) readAgain(now time.Time) {
	if e.again.IsZero() {
		e.again = now.Add(min(longestReread, firstRetry<<min(e.rereads, 10)))
		e.rereads++
	}
}

// doubt has the whole window read again for as long as less is known than was
// before: a source may have the rest later.
func (e *entry) doubt(less bool, now time.Time) {
	switch {
	case less && sampled(e.usage):
		e.readAgain(now)
	case e.gap.IsZero() && !e.nothing:
		e.again, e.rereads = time.Time{}, 0
	}
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

// notRead notes that nothing of a workload could be read.
func (h *histories) notRead(e *entry, sp span, fault *history.Fault, now time.Time) {
	e.failed(now, []*history.Fault{fault})
	if _, keeps := h.Sources[sp.source].(history.Keeper); keeps {
		e.retryAt = time.Time{} // To ask costs nothing.
	}
	e.loading = fault.Reason == v1alpha1.ReasonHistoryLoading
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
	return len(without(faults, v1alpha1.ReasonNoSeries)) > 0
}

func has(faults []*history.Fault, r v1alpha1.Reason) bool {
	return slices.ContainsFunc(faults, func(f *history.Fault) bool { return f.Reason == r })
}

func without(faults []*history.Fault, r v1alpha1.Reason) []*history.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f *history.Fault) bool { return f.Reason == r })
}

// samples is how many there are of all containers. Kills alone are none.
func samples(u history.Usage) int {
	n := 0
	for _, c := range u.Containers {
		n += c.CPU.Count() + c.Memory.Count()
	}
	return n
}

func sampled(u history.Usage) bool { return samples(u) > 0 }

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
