package recorded

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
)

// Load reads the usage of the query's workloads from any source, at the query's
// step. Notes are what a reader of the result should know.
func Load(ctx context.Context, source history.Source, q history.Query) (all []Series, notes []string, err error) {
	r := recorder{pods: map[podKey]*metrics{}}
	q.Record = r.record
	usage, err := source.Load(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range usage {
		for _, f := range u.Faults {
			notes = append(notes, fmt.Sprintf("%s: %v", f.Reason, f.Err))
		}
	}
	slices.Sort(notes)
	return r.series(int64(q.Step / time.Second)), slices.Compact(notes), nil
}

// recorder keeps what a source folds. Sources fold from several goroutines.
type recorder struct {
	mu   sync.Mutex
	pods map[podKey]*metrics
}

type podKey struct {
	workload       history.WorkloadKey
	container, pod string
}

func (k podKey) compare(o podKey) int {
	return cmp.Or(
		cmp.Compare(k.workload.Namespace, o.workload.Namespace), cmp.Compare(k.workload.Name, o.workload.Name),
		cmp.Compare(k.workload.Kind, o.workload.Kind), cmp.Compare(k.container, o.container), cmp.Compare(k.pod, o.pod),
	)
}

// metrics are the samples of a pod.
type metrics struct {
	cpu, memory, throttled points
}

// points are samples of one metric, in the order in which they came.
type points []point

type point struct {
	end   int64
	value float64
}

// settle brings points into order; of several with one end, as duplicate series
// have them, the largest is kept.
func (p points) settle() points {
	slices.SortFunc(p, func(a, b point) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(b.value, a.value)) })
	return slices.CompactFunc(p, func(a, b point) bool { return a.end == b.end })
}

// take removes the first point where it ends at the given time, and gives its
// value, or -1.
func (p *points) take(end int64) float64 {
	if len(*p) == 0 || (*p)[0].end != end {
		return -1
	}
	v := (*p)[0].value
	*p = (*p)[1:]
	return v
}

func (r *recorder) record(w history.WorkloadKey, podName, container string, m history.Metric, ends []int64, values []float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := podKey{w, container, podName}
	p := r.pods[key]
	if p == nil {
		p = &metrics{}
		r.pods[key] = p
	}
	var to *points
	switch m {
	case history.MetricCPU:
		to = &p.cpu
	case history.MetricMemory:
		to = &p.memory
	case history.MetricThrottled:
		to = &p.throttled
	default:
		return
	}
	for i, end := range ends {
		*to = append(*to, point{end, values[i]})
	}
}

// series are the recorded containers, in order of namespace, name and container.
func (r *recorder) series(step int64) []Series {
	var all []Series
	keys := slices.SortedFunc(maps.Keys(r.pods), podKey.compare)
	for len(keys) > 0 {
		first, n := keys[0], 1
		for n < len(keys) && keys[n].workload == first.workload && keys[n].container == first.container {
			n++
		}
		var pods []pod
		for _, key := range keys[:n] {
			pods = append(pods, r.pods[key].pod(step))
		}
		one, _ := newSeries(first.workload, first.container, pods) // The source left out what cannot be true.
		if len(one.Samples) > 0 {
			all = append(all, one)
		}
		keys = keys[n:]
	}
	return all
}

// pod is the metrics side by side.
func (m *metrics) pod(step int64) pod {
	var p pod
	cpu, memory, throttled := m.cpu.settle(), m.memory.settle(), m.throttled.settle()
	for len(cpu)+len(memory) > 0 {
		end := int64(math.MaxInt64)
		for _, next := range []points{cpu, memory} {
			if len(next) > 0 {
				end = min(end, next[0].end)
			}
		}
		for len(throttled) > 0 && throttled[0].end < end {
			throttled = throttled[1:]
		}
		p.starts, p.ends = append(p.starts, end-step), append(p.ends, end)
		p.cpu, p.memory = append(p.cpu, cpu.take(end)), append(p.memory, memory.take(end))
		p.throttled = append(p.throttled, throttled.take(end))
	}
	return p
}
