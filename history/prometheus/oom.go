package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
)

// leastKillStep and mostKillStep bound how finely the pods are looked at that
// had an out-of-memory kill in a chunk: every scrape, so that the kills of a
// crash loop are told apart, and with these bounds at any scrape interval.
const (
	leastKillStep = 15 * time.Second
	mostKillStep  = time.Minute
)

// lateEnds is how long after the end of a container its state may be read: two
// scrapes, and some patience with a kubelet that reports late.
const lateEnds = 10 * time.Minute

// absurdBytes is where a memory limit cannot be meant: the kernel writes almost
// 2^63 for none.
const absurdBytes = 1 << 60

// Kills are looked for in two steps: one cheap query a chunk for who was killed
// at all, mostly nobody, then details of those pods.

// readOOMKills finds the kills of a chunk.
func (l *load) readOOMKills(ctx context.Context, g *gatherer, p piece) error {
	evidence := suspects{pods: map[podID]int{}}
	for _, ask := range []func(context.Context, *gatherer, piece, *suspects) error{l.readTerminated, l.readOOMEvents} {
		if err := ask(ctx, g, p, &evidence); err != nil {
			return err
		}
	}
	if len(evidence.pods) == 0 {
		return nil
	}
	d, err := l.readDetails(ctx, g, piece{evidence.batch(), l.fine(p.span)}, evidence)
	if err != nil {
		return err
	}
	g.addKills(d, p.span, l.scrape)
	return nil
}

// fine is the span at the step of details, from the start of the first interval
// on, so that what changes within that interval shows.
func (l *load) fine(s span) span {
	step := min(s.step, int64(l.killStep()/time.Second))
	return span{first: s.start(), step: step, n: int((s.last()-s.start())/step) + 1}
}

func (l *load) killStep() time.Duration {
	return max(leastKillStep, min(mostKillStep, l.scrape.Round(time.Second)))
}

// suspects are the pods with kills in a chunk, each with its workload.
type suspects struct {
	pods map[podID]int
	// terminated and events say which evidence there is.
	terminated, events bool
}

type podID struct{ namespace, pod string }

// batch holds one entry a pod rather than one a workload.
func (s suspects) batch() batch {
	var b batch
	for id, w := range s.pods {
		b.add(w, id.namespace, escape(id.pod))
	}
	return b
}

// readTerminated asks who was last terminated for want of memory.
func (l *load) readTerminated(ctx context.Context, g *gatherer, p piece, s *suspects) error {
	q := l.queries
	return l.readSuspects(ctx, g, p, suspectQuery{
		metric: q.metrics.LastTerminatedReason,
		labels: q.stateLabels,
		found:  &s.terminated,
		pods:   s.pods,
		text: func(b batch, s span) string {
			killed := largest(q.stateLabels, over("max_over_time", q.oomKilled(b), s.window())) + " > 0"
			if !l.present[q.metrics.LastTerminatedTimestamp] {
				return killed
			}
			// The reason stands until the next end, maybe for months.
			ended := largest(q.stateLabels, over("max_over_time", q.state(q.metrics.LastTerminatedTimestamp, b), s.window()))
			return fmt.Sprintf("(%s) unless (%s < %d)", killed, ended, s.start()-int64(lateEnds/time.Second))
		},
	})
}

// readOOMEvents asks in whose cgroup the kernel killed something.
func (l *load) readOOMEvents(ctx context.Context, g *gatherer, p piece, s *suspects) error {
	q := l.queries
	return l.readSuspects(ctx, g, p, suspectQuery{
		metric: q.metrics.OOMEvents,
		labels: q.usageLabels,
		found:  &s.events,
		pods:   s.pods,
		text: func(b batch, s span) string {
			return largest(q.usageLabels, over("increase", q.usage(q.metrics.OOMEvents, b), s.window())) + " > 0"
		},
	})
}

type suspectQuery struct {
	metric string
	labels Labels
	text   func(batch, span) string
	found  *bool
	pods   map[podID]int
}

func (l *load) readSuspects(ctx context.Context, g *gatherer, p piece, sq suspectQuery) error {
	if !l.present[sq.metric] {
		return nil
	}
	refused, err := l.sweep.over(ctx, sq.metric, p, func(ctx context.Context, p piece) error {
		answer, n, err := l.engine.query(ctx, sq.text(p.batch, p.span), p.span.last())
		if err != nil {
			return err
		}
		g.incomplete(p.batch, n)
		for _, row := range answer {
			if row == nil {
				continue
			}
			if id, w, ok := g.identify(row.Metric, sq.labels, p.batch); ok {
				sq.pods[podID{id.namespace, id.pod}], *sq.found = w, true
			}
		}
		return nil
	})
	g.refused(refused, false)
	return err
}

// oomKilled is 1 while the last termination of a container was for memory.
func (q queries) oomKilled(b batch) string {
	return q.state(q.metrics.LastTerminatedReason, b, `reason="OOMKilled"`)
}

// whileOOMKilled is a series of kube-state-metrics while the last termination
// was for memory. Both come of one scrape, so they are of one termination.
func (q queries) whileOOMKilled(metric string) func(batch) string {
	l := q.stateLabels
	return func(b batch) string {
		return largest(l, fmt.Sprintf("%s and on (%s, %s, %s) (%s == 1)", q.state(metric, b), l.Namespace, l.Pod, l.Container, q.oomKilled(b)))
	}
}

// details are the series of suspected pods, by container, in order of time.
type details struct {
	// terminatedAt holds when the container ended, in seconds since 1970;
	// restarts its count of restarts, and killed a 1. All only while its last
	// end was for memory.
	terminatedAt, restarts, killed detail
	// events counts the kernel's kills.
	events detail
	// stateLimit and specLimit are memory limits, used the working set.
	stateLimit, specLimit, used detail

	workloads map[containerID]int
	// step is how far apart moments are, in seconds.
	step int64
}

type detail map[containerID][]moment

type moment struct {
	at    int64
	value float64
}

// readDetails reads what is needed to tell when kills were and at what limit.
func (l *load) readDetails(ctx context.Context, g *gatherer, p piece, s suspects) (*details, error) {
	q, m := l.queries, l.queries.metrics
	d := &details{workloads: map[containerID]int{}, step: p.span.step}
	reads := []detailQuery{
		{into: &d.stateLimit, metric: m.ResourceLimits, labels: q.stateLabels, text: func(b batch) string {
			return largest(q.stateLabels, q.state(m.ResourceLimits, b, `resource="memory"`))
		}},
		{into: &d.specLimit, metric: m.SpecMemoryLimit, labels: q.usageLabels, text: func(b batch) string {
			return largest(q.usageLabels, q.usage(m.SpecMemoryLimit, b))
		}},
		{into: &d.used, labels: q.usageLabels, text: func(b batch) string {
			return largest(q.usageLabels, over("max_over_time", q.usage(m.MemoryWorkingSet, b), max(l.killStep(), l.scrape)))
		}},
	}
	if s.terminated {
		reads = append(reads,
			detailQuery{into: &d.terminatedAt, metric: m.LastTerminatedTimestamp, labels: q.stateLabels, text: q.whileOOMKilled(m.LastTerminatedTimestamp)},
			detailQuery{into: &d.restarts, metric: m.Restarts, labels: q.stateLabels, text: q.whileOOMKilled(m.Restarts)},
			detailQuery{into: &d.killed, metric: m.LastTerminatedReason, labels: q.stateLabels, text: func(b batch) string {
				return largest(q.stateLabels, q.oomKilled(b)+" == 1")
			}},
		)
	}
	if s.events {
		reads = append(reads, detailQuery{into: &d.events, metric: m.OOMEvents, labels: q.usageLabels, text: func(b batch) string {
			return largest(q.usageLabels, q.usage(m.OOMEvents, b))
		}})
	}
	for _, read := range reads {
		if err := l.readDetail(ctx, g, p, read, d.workloads); err != nil {
			return nil, err
		}
	}
	return d, nil
}

type detailQuery struct {
	into *detail
	// metric is asked for only where it is present; empty always.
	metric string
	labels Labels
	text   func(batch) string
}

func (l *load) readDetail(ctx context.Context, g *gatherer, p piece, dq detailQuery, workloads map[containerID]int) error {
	*dq.into = detail{}
	if dq.metric != "" && !l.present[dq.metric] {
		return nil
	}
	refused, err := l.sweep.over(ctx, "kills "+dq.metric, p, func(ctx context.Context, p piece) error {
		answer, n, err := l.engine.rangeQuery(ctx, dq.text(p.batch), p.span)
		if err != nil {
			return err
		}
		g.incomplete(p.batch, n)
		for _, row := range answer {
			if id, w, ok := g.identify(row.metric, dq.labels, p.batch); ok {
				workloads[id] = w
				(*dq.into)[id] = appendMoments((*dq.into)[id], row.within(p.span))
			}
		}
		return nil
	})
	g.refused(refused, false)
	return err
}

func appendMoments(to []moment, s series) []moment {
	for i, end := range s.ends {
		to = append(to, moment{end, s.values[i]})
	}
	return to
}

// killLog remembers from chunk to chunk what tells a new kill from one that is
// already known.
type killLog struct {
	// terminations are the times of ends that are known, by container.
	terminations map[containerID][]int64
	// restarts, killed and events are the last moments of these series.
	restarts, killed, events map[containerID]moment
}

func newKillLog() *killLog {
	return &killLog{
		terminations: map[containerID][]int64{},
		restarts:     map[containerID]moment{},
		killed:       map[containerID]moment{},
		events:       map[containerID]moment{},
	}
}

// addKills finds the kills in the details of a chunk.
func (g *gatherer) addKills(d *details, chunk span, scrape time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Sorted, so that a bounded list keeps the same kills in every run.
	ids := make([]containerID, 0, len(d.workloads))
	for id := range d.workloads {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b containerID) int {
		return cmp.Or(
			strings.Compare(a.namespace, b.namespace), strings.Compare(a.pod, b.pod), strings.Compare(a.container, b.container))
	})
	for _, id := range ids {
		ends := g.kills.ends(id, d, chunk.start())
		// The kernel's count is the same kills over again, seen within a scrape
		// or two, and those of child processes beside them.
		ends = append(ends, g.kills.counted(id, d.events[id], int64(2*scrape/time.Second)+d.step)...)
		for _, end := range ends {
			g.collector.AddOOMKill(g.local[d.workloads[id]], id.container, history.OOMKill{
				At:         time.Unix(end, 0),
				Pod:        id.pod,
				LimitBytes: d.limit(id, end),
				UsedBytes:  d.usedBefore(id, end),
			})
		}
	}
}

// ends returns the ends of a container that are new, by the best evidence there
// is. opens is when the chunk's first interval begins.
func (k *killLog) ends(id containerID, d *details, opens int64) []int64 {
	switch {
	case len(d.terminatedAt[id]) > 0:
		return k.terminated(id, d.terminatedAt[id])
	case len(d.restarts[id]) > 0:
		return k.restarted(id, d.restarts[id], opens)
	}
	return k.appeared(id, d.killed[id], opens, d.step)
}

// terminated returns the ends that are new: a restarted container's last end
// stands in the series until its next.
func (k *killLog) terminated(id containerID, series []moment) []int64 {
	var fresh []int64
	for _, m := range series {
		if end := int64(m.value); positive(m.value) && !slices.Contains(k.terminations[id], end) {
			k.terminations[id] = append(k.terminations[id], end)
			fresh = append(fresh, end)
		}
	}
	return fresh
}

// restarted returns the instants at which the count of restarts shows a kill:
// the series appears, or rises. What stands there when the window opens may be
// older than the window and is no kill in it.
func (k *killLog) restarted(id containerID, series []moment, opens int64) []int64 {
	return k.fresh(k.restarts, id, series, func(last, m moment, known bool) bool {
		return (known && m.value > last.value) || (!known && m.at > opens)
	})
}

// appeared returns the instants at which a container begins to be one that was
// killed, for want of anything that tells more.
func (k *killLog) appeared(id containerID, series []moment, opens, step int64) []int64 {
	return k.fresh(k.killed, id, series, func(last, m moment, known bool) bool {
		return (known && m.at-last.at > step) || (!known && m.at > opens)
	})
}

// fresh returns the moments that are kills by the given rule, which compares
// each with the one before; known is false where there is none.
func (k *killLog) fresh(log map[containerID]moment, id containerID, series []moment, kill func(last, m moment, known bool) bool) []int64 {
	var fresh []int64
	for _, m := range series {
		last, known := log[id]
		if known && m.at <= last.at {
			continue // Chunks share their boundary.
		}
		if kill(last, m, known) {
			fresh = append(fresh, m.at)
		}
		log[id] = m
	}
	k.terminations[id] = append(k.terminations[id], fresh...)
	return fresh
}

// counted returns the instants at which the kernel's count rises, without those
// that follow a known end within the slack.
func (k *killLog) counted(id containerID, series []moment, slackSeconds int64) []int64 {
	known := k.terminations[id]
	return k.fresh(k.events, id, series, func(last, m moment, seen bool) bool {
		same := func(end int64) bool { return m.at-end >= -slackSeconds && m.at-end <= slackSeconds }
		return seen && m.value > last.value && !slices.ContainsFunc(known, same)
	})
}

// limit is the memory limit in force at a kill, or 0 where unknown. The pod's
// spec counts before the cgroup's, which a restart may have replaced already.
func (d *details) limit(id containerID, end int64) float64 {
	for _, series := range [][]moment{d.stateLimit[id], d.specLimit[id]} {
		if v, ok := before(series, end); ok && positive(v) && v < absurdBytes {
			return v
		}
	}
	return 0
}

// before is the value at the last moment up to t, or else at the first: a limit
// that was read a little after the kill is that of the same pod.
func before(series []moment, t int64) (float64, bool) {
	if len(series) == 0 {
		return 0, false
	}
	value := series[0].value
	for _, m := range series {
		if m.at > t {
			break
		}
		value = m.value
	}
	return value, true
}

// usedBefore is the working set last seen before a kill, or 0. A moment holds
// the peak since the one before it, so the first one after the kill counts too.
func (d *details) usedBefore(id containerID, end int64) float64 {
	most := 0.0
	for _, m := range d.used[id] {
		if m.at > end-d.step && m.at < end+d.step && positive(m.value) {
			most = max(most, m.value)
		}
	}
	return most
}
