package prometheus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/history"
)

const (
	// runtimeWindow is how far back owners of running pods are looked for: as
	// far as servers look for an instant's sample.
	runtimeWindow = 5 * time.Minute
	// settledFor is how long a limit must not have changed to be compared with
	// what a process made of it, since the two are scraped at different times.
	settledFor = 10 * time.Minute
	// maxThreads and maxHeapBytes are what no machine has.
	maxThreads   = 1 << 16
	maxHeapBytes = 1 << 50
)

var _ history.Witness = (*Source)(nil)

// Runtimes implements history.Witness, by instant queries for what processes
// export. Which of the metrics there are is asked first, once for all workloads.
//
// Of workloads for which the server refuses something, or answers what it calls
// incomplete, nothing is known: what is missing may be the oldest version. It
// returns a *history.Fault where the server cannot be asked at all.
func (s *Source) Runtimes(ctx context.Context, at time.Time, workloads []history.WorkloadKey) ([]history.Runtimes, error) {
	if len(workloads) == 0 {
		return nil, nil
	}
	q := history.Query{From: at.Add(-runtimeWindow), To: at, Step: runtimeWindow}
	for _, w := range workloads {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: w})
	}
	l := newLoad(s, q)
	l.chunks = []span{{first: at.Unix(), step: int64(runtimeWindow / time.Second), n: 1}}
	l.queries = s.settings.queries(s.knownScrape(), runtimeWindow)
	all, err := l.runtimes(ctx)
	if err != nil {
		return nil, faultOr(err, "reading the runtimes of processes")
	}
	return all, nil
}

func (l *load) runtimes(ctx context.Context) ([]history.Runtimes, error) {
	m, all := l.queries.metrics, make([]history.Runtimes, len(l.query.Workloads))
	names := m.runtimes()
	beside := written(m.PodOwner, m.ReplicaSetOwner, m.JobOwner, m.ResourceLimits)
	if err := l.findNames(ctx, slices.Concat(names, beside), nil); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(names, func(name string) bool { return l.present[name] }) {
		for w := range all {
			all[w] = history.Runtimes{}
		}
		return all, nil
	}
	if err := l.readOwners(ctx); err != nil {
		return nil, err
	}
	err := l.eachBatch(ctx, func(ctx context.Context, b batch) error {
		said, err := l.readRuntimes(ctx, b)
		for _, w := range b.workloads {
			all[w] = said.of(w)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if f := l.sweep.nothing(); f != nil {
		return nil, f
	}
	return all, nil
}

// readRuntimes asks all there is about a batch.
func (l *load) readRuntimes(ctx context.Context, b batch) (*hearing, error) {
	h := newHearing(l)
	group, ctx := errgroup.WithContext(ctx)
	for _, rq := range l.queries.runtimeQueries() {
		if l.present[rq.metric] {
			group.Go(func() error { return l.readRuntime(ctx, rq, piece{b, l.chunks[0]}, h) })
		}
	}
	return h, group.Wait()
}

func (l *load) readRuntime(ctx context.Context, rq runtimeQuery, p piece, h *hearing) error {
	refused, err := l.sweep.over(ctx, "runtime "+rq.metric, p, func(ctx context.Context, p piece) error {
		answer, n, err := l.engine.query(ctx, rq.text(p.batch), p.span.last())
		if err != nil {
			return err
		}
		h.hear(rq, p.batch, answer)
		if len(n) > 0 {
			h.unsure(p.batch)
		}
		return nil
	})
	for _, r := range refused {
		h.unsure(r.piece.batch)
	}
	return err
}

// runtimeQuery reads one metric.
type runtimeQuery struct {
	metric string
	labels Labels
	text   func(batch) string
	// note takes down a row. The value is above zero.
	note func(s *statement, row model.Metric, value float64)
}

// statement is what is known of one container of one pod.
type statement struct {
	history.Runtime
	// cpuMilli and memoryBytes are its limits, where they have not changed lately.
	cpuMilli, memoryBytes int64
}

func (q queries) runtimeQueries() []runtimeQuery {
	m := q.metrics
	says := func(metric, label string, note func(version string) history.Runtime) runtimeQuery {
		return runtimeQuery{
			metric: metric, labels: q.usageLabels,
			text: func(b batch) string { return q.largestBy(q.exported(metric, b), label) },
			note: func(s *statement, row model.Metric, _ float64) {
				one := note(string(row[model.LabelName(label)]))
				one.From = metric
				s.Runtime = s.And(one)
			},
		}
	}
	return []runtimeQuery{
		says(m.GoInfo, "version", func(v string) history.Runtime { return history.Runtime{Go: true, GoVersion: v} }),
		says(m.JVMInfo, "version", func(v string) history.Runtime { return history.Runtime{JVM: true, JVMVersion: v} }),
		says(m.NodeInfo, "version", func(v string) history.Runtime { return history.Runtime{NodeVersion: v} }),
		says(m.OTelGo, "", func(string) history.Runtime { return history.Runtime{Go: true} }),
		q.otelInfo(),
		{metric: m.GoMaxProcs, labels: q.usageLabels, note: noteThreads(m.GoMaxProcs), text: func(b batch) string {
			return q.largestBy(q.exported(m.GoMaxProcs, b))
		}},
		{metric: m.JVMMemoryMax, labels: q.usageLabels, note: noteHeap(m.JVMMemoryMax), text: q.heap(m.JVMMemoryMax, "area")},
		{metric: m.OTelJVMMemoryLimit, labels: q.usageLabels, note: noteHeap(m.OTelJVMMemoryLimit), text: q.heap(m.OTelJVMMemoryLimit, "type")},
		{metric: m.ResourceLimits, labels: q.stateLabels, note: noteLimit, text: q.settledLimits},
	}
}

// ofItself leaves out what a pod relays for others, as a push gateway or a
// collector does: the server then moves the series' own job out of the way.
const ofItself = `exported_job=""`

// exported is a metric of the batch's pods, with or without a container.
func (q queries) exported(metric string, b batch, more ...string) string {
	l := q.usageLabels
	matchers := slices.Concat([]string{b.namespaceMatcher(l), l.Pod + "=~" + strconv.Quote(anyOf(b.patterns)), ofItself}, more, q.matchers)
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

// largestBy reduces an expression to one series a container and value of the
// labels.
func (q queries) largestBy(expr string, more ...string) string {
	l := q.usageLabels
	by := append([]string{l.Namespace, l.Pod, l.Container}, written(more...)...)
	return fmt.Sprintf("max by (%s) (%s)", strings.Join(by, ", "), expr)
}

// heap adds up the pools of a heap, each once however often it was scraped. A
// pool without a bound of its own says -1.
func (q queries) heap(metric, area string) func(batch) string {
	return func(b batch) string {
		l := q.usageLabels
		pools := q.largestBy(q.exported(metric, b, area+`="heap"`)+" > 0", "id", "pool")
		return fmt.Sprintf("sum by (%s, %s, %s) (%s)", l.Namespace, l.Pod, l.Container, pools)
	}
}

// settledLimits are the limits that have not changed lately.
func (q queries) settledLimits(b batch) string {
	limits := q.state(q.metrics.ResourceLimits, b, `resource=~"cpu|memory"`)
	l := q.stateLabels
	return fmt.Sprintf("max by (%s, %s, %s, resource) (%s == %s)", l.Namespace, l.Pod, l.Container,
		over("max_over_time", limits, settledFor), over("min_over_time", limits, settledFor))
}

// otelInfo reads OpenTelemetry's resource, unless it is another pod's that a
// collector relays.
func (q queries) otelInfo() runtimeQuery {
	const name, version, about = "process_runtime_name", "process_runtime_version", "k8s_pod_name"
	pod := model.LabelName(q.usageLabels.Pod)
	metric := q.metrics.OTelInfo
	return runtimeQuery{
		metric: metric, labels: q.usageLabels,
		text: func(b batch) string { return q.largestBy(q.exported(metric, b, name+`!=""`), name, version, about) },
		note: func(s *statement, row model.Metric, _ float64) {
			one := otelRuntime(string(row[name]), string(row[version]))
			if of := row[about]; one != (history.Runtime{}) && (of == "" || of == row[pod]) {
				one.From = metric
				s.Runtime = s.And(one)
			}
		},
	}
}

// otelRuntime is the runtime that OpenTelemetry's SDKs call by that name; those
// of a JVM give the name of its Java runtime environment.
func otelRuntime(name, version string) history.Runtime {
	switch name = strings.ToLower(name); {
	case name == "go", name == "gc":
		return history.Runtime{Go: true, GoVersion: version}
	case name == "nodejs":
		return history.Runtime{NodeVersion: version}
	case strings.Contains(name, "runtime environment"), strings.Contains(name, "jdk"), strings.Contains(name, "graalvm"):
		return history.Runtime{JVM: true, JVMVersion: version}
	}
	return history.Runtime{}
}

func noteThreads(metric string) func(*statement, model.Metric, float64) {
	return func(s *statement, _ model.Metric, value float64) {
		if value <= maxThreads {
			s.Runtime = s.And(history.Runtime{Go: true, GoMaxProcs: int(value), From: metric})
		}
	}
}

func noteHeap(metric string) func(*statement, model.Metric, float64) {
	return func(s *statement, _ model.Metric, value float64) {
		one := history.Runtime{JVM: true, From: metric}
		if value <= maxHeapBytes {
			one.HeapBytes = int64(value)
		}
		s.Runtime = s.And(one)
	}
}

func noteLimit(s *statement, row model.Metric, value float64) {
	switch {
	case value > maxHeapBytes:
	case row["resource"] == "cpu":
		s.cpuMilli = int64(value*1000 + 0.5)
	case row["resource"] == "memory":
		s.memoryBytes = int64(value)
	}
}

// hearing takes down what is said of the workloads of a batch. It is safe for
// concurrent use.
type hearing struct {
	owners *history.Owners

	mu   sync.Mutex
	said map[int]map[history.ContainerOfPod]*statement // by workload
	// doubtful are workloads of which something may be missing.
	doubtful map[int]bool
}

func newHearing(l *load) *hearing {
	return &hearing{owners: l.owners, said: map[int]map[history.ContainerOfPod]*statement{}, doubtful: map[int]bool{}}
}

func (h *hearing) unsure(b batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range b.workloads {
		h.doubtful[w] = true
	}
}

// hear takes down an answer. What belongs to no pod of the batch is left out.
func (h *hearing) hear(rq runtimeQuery, b batch, answer model.Vector) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, row := range answer {
		if row == nil || !positive(float64(row.Value)) {
			continue
		}
		id := history.ContainerOfPod{
			Pod:       string(row.Metric[model.LabelName(rq.labels.Pod)]),
			Container: string(row.Metric[model.LabelName(rq.labels.Container)]),
		}
		w, ok := h.owners.Of(string(row.Metric[model.LabelName(rq.labels.Namespace)]), id.Pod)
		if !ok || !slices.Contains(b.workloads, w) {
			continue
		}
		if h.said[w] == nil {
			h.said[w] = map[history.ContainerOfPod]*statement{}
		}
		if h.said[w][id] == nil {
			h.said[w][id] = new(statement)
		}
		rq.note(h.said[w][id], row.Metric, float64(row.Value))
	}
}

// of is what the pods of a workload say together; nil where something may be
// missing.
func (h *hearing) of(w int) history.Runtimes {
	if h.doubtful[w] {
		return nil
	}
	all := history.Runtimes{}
	for id, s := range h.said[w] {
		if s.Runtime == (history.Runtime{}) {
			continue // Limits alone.
		}
		all[id.Container] = all[id.Container].And(h.withLimits(w, id, *s))
	}
	return all
}

// withLimits is what is said with the limits that it goes with. Threads say
// nothing without one: the template's may not be in force.
func (h *hearing) withLimits(w int, id history.ContainerOfPod, s statement) history.Runtime {
	r, limits := s.Runtime, s
	if id.Container == "" {
		limits = h.sole(w, id.Pod)
	}
	r.CPULimitMilli, r.MemoryLimitBytes = limits.cpuMilli, limits.memoryBytes
	if r.CPULimitMilli == 0 {
		r.GoMaxProcs = 0
	}
	return r
}

// sole holds the limits of a pod's only container that has any.
func (h *hearing) sole(w int, pod string) statement {
	var limits statement
	for id, s := range h.said[w] {
		if id.Pod != pod || s.cpuMilli == 0 && s.memoryBytes == 0 {
			continue
		}
		if limits != (statement{}) {
			return statement{}
		}
		limits = *s
	}
	return limits
}
