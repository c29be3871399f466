package prometheus

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// load is one call of Load.
type load struct {
	source   *Source
	engine   engine
	query    history.Query
	batches  []batch
	chunks   []span
	sweep    *sweep
	progress *progress

	// What follows is found out before usage is read.
	queries queries
	scrape  time.Duration
	// present are the names of optional metrics that there are.
	present map[string]bool
	// recorded says which of the chunks are read from recorded series.
	recorded []bool
	owners   *history.Owners
	// pods is how many pods a batch has on one day, by the batch's first workload.
	pods map[int]int
	// ownerFaults are what could not be learnt of owners, by workload.
	ownerFaults map[int]*history.Fault
}

func newLoad(s *Source, q history.Query) *load {
	l := &load{
		source:      s,
		engine:      s.engine,
		query:       q,
		batches:     batches(q.Workloads, s.settings.BatchWorkloads),
		sweep:       newSweep(s.limits),
		pods:        map[int]int{},
		ownerFaults: map[int]*history.Fault{},
		progress:    newProgress(nil, 0),
	}
	for _, day := range instants(q.From, q.To, q.Step).days() {
		l.chunks = append(l.chunks, day.cut(s.settings.MaxPoints)...)
	}
	return l
}

func (l *load) run(ctx context.Context) ([]history.Usage, error) {
	if err := l.findOut(ctx); err != nil {
		return nil, err
	}
	if err := l.readOwners(ctx); err != nil {
		return nil, err
	}
	usage := make([]history.Usage, len(l.query.Workloads))
	err := l.eachBatch(ctx, func(ctx context.Context, b batch) error {
		got, err := l.readBatch(ctx, b)
		for i, u := range got {
			usage[b.workloads[i]] = u
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if f := l.sweep.nothing(); f != nil {
		return nil, f
	}
	return usage, nil
}

// eachBatch does something for every batch, as many at once as queries may be
// in flight, so that memory is bounded too.
func (l *load) eachBatch(ctx context.Context, do func(context.Context, batch) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.source.settings.MaxInFlight)
	for _, b := range l.batches {
		group.Go(func() error { return do(ctx, b) })
	}
	return group.Wait()
}

// readBatch reads the usage of a batch, in its order of workloads.
func (l *load) readBatch(ctx context.Context, b batch) ([]history.Usage, error) {
	usage, err := l.readBatchFrom(ctx, b, l.recorded, l.progress.step)
	if err != nil || !slices.Contains(l.recorded, true) {
		return usage, err
	}
	// Rules may record a part of the cluster only.
	missing := b.only(func(w int) bool { return len(usage[slices.Index(b.workloads, w)].Containers) == 0 })
	if len(missing.workloads) == 0 {
		return usage, nil
	}
	raw, err := l.readBatchFrom(ctx, missing, make([]bool, len(l.chunks)), func() {})
	for i, u := range raw {
		usage[slices.Index(b.workloads, missing.workloads[i])] = u
	}
	return usage, err
}

// readBatchFrom reads those chunks from recorded series that recorded says, and
// tells when one is done.
func (l *load) readBatchFrom(ctx context.Context, b batch, recorded []bool, done func()) ([]history.Usage, error) {
	g := newGatherer(l, b)
	for i, day := range l.chunks {
		for _, chunk := range day.cut(l.chunkInstants(b)) {
			if err := l.readChunk(ctx, g, piece{b, chunk}, recorded[i]); err != nil {
				return nil, err
			}
			g.collector.EndChunk()
		}
		done()
	}
	return g.collector.Usage(), nil
}

// chunkCells is how many pods times instants of a batch are held at once, with
// some 100 bytes each. A day at five minutes of 1,700 pods is one chunk; only
// DaemonSets of large clusters are cut further.
const chunkCells = 500_000

// chunkInstants bounds the chunks of a batch by how many pods it has, as far as
// that is known.
func (l *load) chunkInstants(b batch) int {
	return max(1, chunkCells/max(1, l.pods[b.workloads[0]]))
}

func (l *load) readChunk(ctx context.Context, g *gatherer, p piece, recorded bool) error {
	group, ctx := errgroup.WithContext(ctx)
	from := l.usageEngine(recorded)
	for _, uq := range l.queries.usageQueries() {
		if recorded {
			uq = l.queries.recorded(uq)
		}
		asked := piece{l.askedFor(uq, p.batch), p.span}
		if len(asked.batch.workloads) > 0 {
			group.Go(func() error { return l.readUsage(ctx, g, from, uq, asked) })
		}
	}
	group.Go(func() error { return l.readOOMKills(ctx, g, p) })
	return group.Wait()
}

// askedFor is the part of a batch that a query is asked for.
func (l *load) askedFor(uq usageQuery, b batch) batch {
	for _, name := range uq.needs {
		if !l.present[name] {
			return batch{}
		}
	}
	if !uq.startup {
		return b
	}
	return b.only(func(w int) bool { return l.query.Workloads[w].MaskStartup > 0 })
}

// readUsage asks one query and gathers the answer.
func (l *load) readUsage(ctx context.Context, g *gatherer, from engine, uq usageQuery, p piece) error {
	refused, err := l.sweep.over(ctx, "usage "+uq.record, p, func(ctx context.Context, p piece) error {
		answer, n, err := from.rangeQuery(ctx, uq.text(p.batch), p.span)
		if err != nil {
			return err
		}
		g.add(uq, p, answer)
		g.incomplete(p.batch, n)
		return nil
	})
	g.refused(refused, uq.required)
	return err
}

// gatherer puts answers into a batch's collector. It is safe for concurrent use.
type gatherer struct {
	owners *history.Owners
	// local is the index in the collector's query of each workload.
	local map[int]int

	mu        sync.Mutex
	collector *history.Collector
	// said are the faults that a workload has already.
	said  map[saidKey]bool
	kills *killLog
}

type saidKey struct {
	workload int
	reason   v1alpha1.Reason
}

func newGatherer(l *load, b batch) *gatherer {
	sub := l.query
	sub.Workloads = make([]history.Workload, len(b.workloads))
	g := &gatherer{owners: l.owners, local: map[int]int{}, said: map[saidKey]bool{}, kills: newKillLog()}
	for i, w := range b.workloads {
		sub.Workloads[i] = l.query.Workloads[w]
		g.local[w] = i
	}
	g.collector = history.NewCollector(sub)
	for _, w := range b.workloads {
		if f := l.ownerFaults[w]; f != nil {
			g.fault(w, f)
		}
	}
	return g
}

// add takes the answer to a usage query. Rows that were not asked for are left
// out, whatever the server returns: another time, another workload's pod,
// and the cgroups that are no containers.
func (g *gatherer) add(uq usageQuery, p piece, answer []series) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, row := range answer {
		id, w, ok := g.identify(row.metric, uq.labels, p.batch)
		if !ok {
			continue
		}
		row = row.within(p.span)
		g.collector.Add(g.local[w], id.pod, id.container, uq.metric, row.ends, row.values)
	}
}

// containerID is a container of a pod.
type containerID struct{ namespace, pod, container string }

// identify returns the container that a row is about, and the workload of the
// batch that it belongs to.
func (g *gatherer) identify(row model.Metric, l Labels, b batch) (id containerID, workload int, ok bool) {
	id = containerID{
		namespace: string(row[model.LabelName(l.Namespace)]),
		pod:       string(row[model.LabelName(l.Pod)]),
		container: string(row[model.LabelName(l.Container)]),
	}
	if id.pod == "" || id.container == "" || id.container == "POD" {
		return id, 0, false
	}
	w, ok := g.owners.Of(id.namespace, id.pod)
	return id, w, ok && slices.Contains(b.workloads, w)
}

// incomplete marks the workloads of an answer that came with a note.
func (g *gatherer) incomplete(b batch, n note) {
	if len(n) == 0 {
		return
	}
	err := fmt.Errorf("reading usage: the answer is incomplete: %s", firstLine(strings.Join(n, "; ")))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range b.workloads {
		g.fault(w, &history.Fault{Reason: v1alpha1.ReasonPartialHistory, Err: err})
	}
}

// refused marks the workloads that something could not be had of. Without what
// stands beside usage a need may be too low, so history is partial.
func (g *gatherer) refused(refused []refusal, required bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range refused {
		f := r.why.fault()
		if !required {
			f = &history.Fault{Reason: v1alpha1.ReasonPartialHistory, Err: r.why}
		}
		for _, w := range r.piece.batch.workloads {
			g.fault(w, f)
		}
	}
}

// fault adds the first fault of each reason. The caller holds the lock.
func (g *gatherer) fault(w int, f *history.Fault) {
	key := saidKey{w, f.Reason}
	if g.said[key] {
		return
	}
	g.said[key] = true
	g.collector.AddFault(g.local[w], f)
}

// progress tells how much of a load is done.
type progress struct {
	mu          sync.Mutex
	tell        func(done, total int)
	done, total int
}

func newProgress(tell func(done, total int), total int) *progress {
	p := &progress{tell: tell, total: total}
	if tell != nil {
		tell(0, total)
	}
	return p
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.tell != nil {
		p.tell(p.done, p.total)
	}
}

// positive reports whether v is a number above zero.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
