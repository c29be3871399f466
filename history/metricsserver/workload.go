package metricsserver

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
)

// workload is what is kept of one workload.
type workload struct {
	usage history.Usage
	// open are the samples of the steps that are not folded yet.
	open map[containerID]*samples
	// since is when it was met.
	since time.Time
	// step, window and mask are those of the newest query.
	step, window, mask time.Duration
	// restored is up to when a checkpoint has samples, in seconds since 1970.
	restored int64
	// asked says that there was a query.
	asked bool
	// incomplete means that the last answer lacked some of a container's usage.
	incomplete bool
}

// samples are of one container, in order of time.
type samples struct {
	cpu, memory series
	// late is how long after its end the newest one was told, by our clock.
	late time.Duration
}

type series struct {
	ends   []int64
	values []float64
}

func (s *series) add(end int64, value float64) {
	s.ends, s.values = append(s.ends, end), append(s.values, value)
}

func (one *samples) append(later *samples) {
	one.cpu.append(later.cpu)
	one.memory.append(later.memory)
	one.late = later.late
}

func (s *series) append(later series) {
	s.ends, s.values = append(s.ends, later.ends...), append(s.values, later.values...)
}

func newWorkload(key history.WorkloadKey, now time.Time) *workload {
	return &workload{
		usage: history.Usage{Workload: key, Containers: map[string]*history.Container{}},
		open:  map[containerID]*samples{},
		since: now, step: defaultStep,
	}
}

// ask takes over what a query is about.
func (w *workload) ask(q history.Query, mask time.Duration) {
	w.step, w.window, w.mask, w.asked = q.Step, q.To.Sub(q.From), mask, true
}

// Of workloads that nobody asks about, since no policy targets them, a day is kept
// for a policy that comes: those of all Jobs of a week would be many. Whether
// somebody asks shows within a few hours of the start, since the controller asks
// about all of its workloads in every cycle.
const (
	unaskedFor  = 24 * time.Hour
	unknownTill = 6 * time.Hour
)

// keepFrom is from when on usage is kept.
func (w *workload) keepFrom(now time.Time) time.Time {
	switch {
	case w.asked:
		return now.Add(-w.window)
	case now.Sub(w.since) < unknownTill:
		return time.Unix(0, 0)
	}
	return now.Add(-unaskedFor)
}

// outlived says whether nothing is left to keep. What is cut off are whole days,
// and those who are gone are not asked about any more a day later.
func (w *workload) outlived(now time.Time) bool {
	from := w.keepFrom(now)
	return len(w.open) == 0 && (len(w.usage.Containers) == 0 || !w.asked && !newestSample(w.usage).After(from))
}

func (w *workload) empty() bool { return len(w.open)+len(w.usage.Containers) == 0 }

// Samples of a step come one after the other, the last some time after its end: as
// late as metrics-server's own round and ours, and by our clock as late as those
// before were. The clock of the container's node, by which samples are dated, may
// be behind.
const lateRounds = 2

// foldBy is how long samples wait for a first query, which brings step and
// ceiling. Longer would cost memory for workloads that nobody asks about.
const foldBy = 30 * time.Minute

// folding is what workloads have in common that are folded together.
type folding struct {
	step, mask time.Duration
	asked      bool
}

// until is the end of the last step to fold, where all samples up to the given
// time are there.
func (f folding) until(complete time.Time) time.Time {
	if !f.asked {
		complete = complete.Add(-foldBy)
	}
	return complete.Truncate(f.step)
}

// fold folds the steps that are over. The caller holds the lock.
func (s *Source) fold() {
	complete := s.settings.Clock.Now().Add(-lateRounds * s.settings.Every)
	groups := map[folding][]*workload{}
	for _, w := range s.workloads {
		f := folding{w.step, w.mask, w.asked}
		if w.due(f, complete) {
			groups[f] = append(groups[f], w)
		}
	}
	for f, group := range groups {
		s.foldGroup(f, group, complete)
	}
}

// due says whether there is a sample of a step that is over.
func (w *workload) due(f folding, complete time.Time) bool {
	for _, one := range w.open {
		if one.first() <= one.until(f, complete) {
			return true
		}
	}
	return false
}

// until is the end of the last step of which the container's samples are all
// there, where those that are told at once are there up to the given time.
func (one *samples) until(f folding, complete time.Time) int64 {
	return f.until(complete.Add(-one.late)).Unix()
}

func (one *samples) first() int64 {
	switch {
	case len(one.cpu.ends) == 0:
		return one.memory.ends[0]
	case len(one.memory.ends) == 0:
		return one.cpu.ends[0]
	}
	return min(one.cpu.ends[0], one.memory.ends[0])
}

// foldGroup folds the steps of the workloads that are over.
func (s *Source) foldGroup(f folding, group []*workload, complete time.Time) {
	end := f.until(complete)
	c := history.NewCollector(f.query(s.ceiling, end, group...))
	for i, w := range group {
		for id, one := range w.open {
			addTo(c, i, id, one.take(one.until(f, complete)))
			if one.empty() {
				delete(w.open, id)
			}
		}
	}
	c.EndChunk()
	now := s.settings.Clock.Now()
	for i, later := range c.Usage() {
		w := group[i]
		later.Faults = nil
		w.usage.Absorb(later, nil)
		w.usage.Retain(w.keepFrom(now))
		w.usage.Compact()
	}
}

// query is what the samples of workloads are collected for.
func (f folding) query(ceiling history.Ceiling, end time.Time, group ...*workload) history.Query {
	q := history.Query{From: time.Unix(0, 0), To: end, Step: f.step, Ceiling: ceiling, Watch: history.NewTape}
	for _, w := range group {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: w.usage.Workload, MaskStartup: f.mask})
	}
	return q
}

func addTo(c *history.Collector, w int, id containerID, s samples) {
	c.AddFine(w, id.pod, id.container, history.MetricCPU, s.cpu.ends, s.cpu.values)
	c.AddFine(w, id.pod, id.container, history.MetricMemory, s.memory.ends, s.memory.values)
}

// now is a copy of what is known, the open steps included as far as they are.
func (w *workload) now(ceiling history.Ceiling) history.Usage {
	u := w.usage.Clone()
	if len(w.open) == 0 || !w.asked {
		return u
	}
	end := int64(0)
	for _, one := range w.open {
		end = max(end, one.last())
	}
	f := folding{w.step, w.mask, w.asked}
	c := history.NewCollector(f.query(ceiling, time.Unix(end, 0), w))
	for id, one := range w.open {
		addTo(c, 0, id, *one)
	}
	c.EndChunk()
	later := c.Usage()[0]
	later.Faults = nil
	u.Absorb(later, nil)
	return u
}

func (one *samples) empty() bool { return len(one.cpu.ends)+len(one.memory.ends) == 0 }

func (one *samples) last() int64 {
	last := int64(0)
	for _, s := range []series{one.cpu, one.memory} {
		if n := len(s.ends); n > 0 {
			last = max(last, s.ends[n-1])
		}
	}
	return last
}

// take takes out the samples up to the given end.
func (one *samples) take(end int64) samples {
	return samples{cpu: one.cpu.take(end), memory: one.memory.take(end)}
}

func (s *series) take(end int64) series {
	n := 0
	for n < len(s.ends) && s.ends[n] <= end {
		n++
	}
	taken := series{s.ends[:n:n], s.values[:n:n]}
	s.ends, s.values = s.ends[n:], s.values[n:]
	return taken
}

// watch gives a copy of a container the Watcher that the query asks for: a copy of
// the one that is kept, which begins with the first query that asks for it.
func (w *workload) watch(q history.Query, name string, copied *history.Container) {
	kept := w.usage.Containers[name]
	if q.Watch == nil || kept == nil {
		return
	}
	wanted, ok := q.Watch(w.usage.Workload, name).(history.Keepable)
	if !ok {
		kept.Watcher = nil
		return
	}
	if have, ok := kept.Watcher.(history.Keepable); !ok || !have.Like(wanted) {
		kept.Watcher = wanted
	}
	copied.Watcher = kept.Watcher.(history.Keepable).Copy()
}
