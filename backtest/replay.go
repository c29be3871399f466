package backtest

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options are the protocol of a replay.
type Options struct {
	// Observe is how long a strategy watches before it may act; what comes
	// after is scored.
	Observe time.Duration
	// Least is how much there must be to score.
	Least time.Duration
	// Every is how often a strategy is asked.
	Every time.Duration
	// Delay is how long a resize takes in place, and Down how long a container
	// is down when it is killed or its pod recreated.
	Delay, Down time.Duration
	// Gap is from when on a hole in the recording ends what is scored
	// together.
	Gap time.Duration
	// Limits is how limits go with requests.
	Limits Limits
	// Timeline keeps what was used and asked for, for plots.
	Timeline bool
}

// DefaultOptions is the protocol of docs/benchmarks.md: a week is observed and
// two days at least are scored, the memory limit is the request, and CPU has
// none.
func DefaultOptions() Options {
	return Options{
		Observe: 7 * 24 * time.Hour,
		Least:   2 * 24 * time.Hour,
		Every:   5 * time.Minute,
		Delay:   2 * time.Second,
		Down:    time.Minute,
		Gap:     time.Hour,
		Limits:  Limits{MemoryPercent: 100},
	}
}

// ErrTooShort means that a series does not last long enough to be scored.
var ErrTooShort = errors.New("too short to score")

// Replay takes one strategy through one series. A series without enough to
// score gives ErrTooShort.
func Replay(s *Series, strategy Strategy, o Options) (Result, error) {
	if err := o.refuses(s); err != nil {
		return Result{}, fmt.Errorf("%s %w", s.Name, err)
	}
	r := newReplay(s, strategy, o)
	for left := s.Samples; len(left) > 0; {
		replicas := interval(left)
		r.window(replicas)
		left = left[len(replicas):]
	}
	return r.score.result(strategy.Name(), s), nil
}

// replay is a container under a simulated kubelet.
type replay struct {
	options Options
	series  *Series
	decider Decider
	score   score

	scoredFrom int64 // seconds since 1970
	next       int64 // when the strategy is asked next

	current Allocation
	// pending is in force from due on; due is 0 where nothing is under way.
	pending Allocation
	due     int64
	// downUntil is the end of a restart in which nothing is allocated.
	downUntil int64
	// used is the largest working set at the end of the last interval, as
	// shown.
	used float64
	// backlog is CPU work that a limit held back, in core seconds, by replica.
	backlog  []float64
	last     int64 // end of the last interval
	parts    []part
	replicas int // that run now
}

func newReplay(s *Series, strategy Strategy, o Options) *replay {
	first := s.Samples[0].Start
	info := SeriesInfo{
		Name: s.Name, First: time.Unix(first, 0).UTC(), Step: s.step(),
		HasCPU: s.hasCPU(), HasMemory: s.hasMemory(),
		Written: s.Written,
	}
	info.Initial, info.Limits = start(s, o.Limits)
	r := &replay{
		options: o, series: s,
		scoredFrom: first + int64(o.Observe/time.Second),
		current:    info.Initial,
		last:       first,
		backlog:    make([]float64, s.replicas()),
	}
	r.next = r.scoredFrom
	r.score.init(info.Initial, o, s.replicas())
	if seer, ok := strategy.(seer); ok {
		r.decider = seer.startSeeing(info, s, r.scoredFrom)
	} else {
		r.decider = strategy.Start(info)
	}
	return r
}

// start is what the container has at first, and how limits go with requests:
// as the template has it, or else as the protocol says. Where nobody knows what
// was asked for, it is twice the first hour's peak: what a careful person asks
// for after a look.
func start(s *Series, limits Limits) (Allocation, Limits) {
	const factor = 2
	first := s.Samples[0].Start
	cpu, memory := s.peak(first, first+3600)
	a := limits.OfUsage(max(factor*cpu, 0), max(factor*memory, 0))
	container, ok := s.Written.container()
	written := allocationOf(container.Resources)
	given := limits.Of(s.Provisioned.CPU.Request, s.Provisioned.Memory.Request)
	resource := func(has bool, a *Amount, written, given, least Amount, percent *int64) {
		switch {
		case !has:
			*a = Amount{}
		case ok && written.Request > 0:
			*a = written
			*percent = int64(math.Round(100 * float64(written.Limit) / float64(written.Request)))
		case ok: // The template asks for none of it, and has no limit either.
			*a, *percent = Amount{Request: a.Request}, 0
		case given.Request > 0:
			*a = given
		case a.Request == 0: // Nothing at all cannot be asked for.
			*a = least
		}
	}
	least := limits.Of(leastMilli, leastBytes)
	resource(s.hasCPU(), &a.CPU, written.CPU, given.CPU, least.CPU, &limits.CPUPercent)
	resource(s.hasMemory(), &a.Memory, written.Memory, given.Memory, least.Memory, &limits.MemoryPercent)
	return a, limits
}

const (
	milli         = 1000
	gibi          = 1 << 30
	secondsPerDay = 86400
)

// The least that a container can ask for here.
const (
	leastMilli = 1
	leastBytes = 1 << 20
)

// window plays one interval of all replicas: the decisions in it, what was in
// force, and then what a monitor shows of it.
func (r *replay) window(samples []Sample) {
	start, end := samples[0].Start, samples[0].End
	if gap := start - r.last; gap > int64(r.options.Gap/time.Second) {
		r.afterGap()
	}
	r.replicas = len(samples)
	every := int64(r.options.Every / time.Second)
	for r.next < start { // Nobody asks for what is not running.
		r.next += every
	}
	w := span{samples: samples, scored: start >= r.scoredFrom, parts: r.parts[:0]}
	for at := start; at < end; {
		if at == r.next {
			r.decide(at)
			r.next += every
		}
		if r.due > 0 && r.due <= at {
			r.complete()
		}
		to := min(end, r.next)
		if r.due > 0 {
			to = min(to, r.due)
		}
		if r.downUntil > at {
			to = min(to, r.downUntil)
		}
		w.add(at, to, r.current, r.downUntil > at)
		at = to
	}
	r.show(&w)
	if w.scored {
		r.score.window(&w)
	}
	r.parts, r.last = w.parts, end
}

// afterGap forgets what happened before a hole in the recording: a resize is
// long done, and the next change is compared with none before.
func (r *replay) afterGap() {
	if r.due > 0 {
		r.complete()
	}
	clear(r.backlog)
	r.downUntil = 0
	r.score.afterGap()
}

// decide asks the strategy.
func (r *replay) decide(at int64) {
	inForce := r.current
	if r.due > 0 {
		inForce = r.pending
	}
	d := r.decider.Decide(time.Unix(at, 0).UTC(), inForce)
	if !d.Apply {
		return
	}
	target := r.accepted(d, inForce)
	if target == inForce {
		return
	}
	r.score.change(at, inForce, target, d.Recreate, r.replicas)
	if r.due > 0 {
		r.current = r.pending // The one before is overtaken.
	}
	r.pending = target
	if d.Recreate {
		r.downUntil = at + int64(r.options.Down/time.Second)
		r.due = r.downUntil
		return
	}
	r.due = at + max(int64(r.options.Delay/time.Second), 0)
	if r.due == at {
		r.complete()
	}
}

// accepted is what of a target the kubelet takes: not a memory limit below
// what is in use, unless the pod is a new one.
func (r *replay) accepted(d Decision, inForce Allocation) Allocation {
	target := d.Target
	limit := target.Memory.Limit
	if d.Recreate || limit == 0 || inForce.Memory.Limit != 0 && limit >= inForce.Memory.Limit {
		return target
	}
	if float64(limit) < r.used {
		r.score.reject()
		target.Memory = inForce.Memory
	}
	return target
}

func (r *replay) complete() {
	r.current = r.pending
	r.due = 0
}

// show gives the strategy what a monitor would show of the interval.
func (r *replay) show(w *span) {
	r.used = 0
	for i := range w.samples {
		s := &w.samples[i]
		shown := *s
		if s.HasCPU() {
			r.throttle(w, &shown)
		}
		if limit := float64(w.longest.Memory.Limit); w.kills(s) {
			shown.MemoryBytes = limit
			r.decider.OOM(s.Replica, time.Unix(s.End, 0).UTC(), limit, limit)
		} else { // What was killed starts anew, with next to nothing.
			r.used = max(r.used, shown.MemoryBytes)
		}
		r.decider.Observe(shown)
	}
}

// throttle holds CPU to the limit: what does not fit is done later, and a
// saturated container is throttled in every period.
func (r *replay) throttle(w *span, shown *Sample) {
	backlog := &r.backlog[shown.Replica]
	if !w.scored || !w.limited {
		*backlog = 0
		return
	}
	work := shown.CPUCores*shown.seconds() + *backlog
	served := min(work, w.capacity)
	*backlog = work - served
	shown.CPUCores = served / shown.seconds()
	shown.Throttled = 0
	if *backlog > 0 {
		shown.Throttled = 1
	}
}

// span is one interval and what was in force in it.
type span struct {
	samples []Sample // of the replicas
	scored  bool
	parts   []part
	// longest is what was in force for most of the time: a peak is held
	// against it, since nobody knows when in the interval it was.
	longest     Allocation
	longestTime float64
	// capacity is the CPU limit over the interval, in core seconds.
	capacity float64
	limited  bool
}

// kills says whether a replica was out of memory in the interval.
func (w *span) kills(s *Sample) bool {
	limit := w.longest.Memory.Limit
	return w.scored && limit > 0 && s.MemoryBytes > float64(limit)
}

// part is a time in which one allocation was in force.
type part struct {
	seconds    float64
	allocation Allocation
	down       bool
}

func (w *span) add(from, to int64, a Allocation, down bool) {
	length := to - from
	if a.CPU.Limit > 0 {
		w.limited = true
		w.capacity += float64(a.CPU.Limit) / milli * float64(length)
	}
	n := len(w.parts)
	if n == 0 || w.parts[n-1].allocation != a || w.parts[n-1].down != down {
		w.parts = append(w.parts, part{allocation: a, down: down})
		n++
	}
	p := &w.parts[n-1]
	p.seconds += float64(length)
	if p.seconds > w.longestTime {
		w.longest, w.longestTime = a, p.seconds
	}
}
