package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Collector folds samples into the usage of the workloads of a query, chunk of
// time by chunk of time, so that memory is bounded by the chunk and not by the
// window. Every source goes through it, so that bad data has one treatment:
// NaN, infinite, negative and implausible samples are dropped and counted,
// duplicate series of one container are merged, and what lies outside the
// query's interval is ignored.
//
// A Collector is not safe for concurrent use.
type Collector struct {
	query     Query
	workloads []collected
}

// collected is what is known of one workload so far.
type collected struct {
	containers map[string]*Container
	chunks     map[string]*chunk // by container
	podEnds    map[string]int64  // the newest sample of each pod
	faults     []*Fault
	spacing    int64 // seconds between samples, as last seen
}

// chunk is what was added for one container since the last EndChunk.
type chunk struct {
	pods map[string]*[metricCount]series
	// dropped counts here, since a container may turn out to have nothing else.
	dropped tallies
}

// series holds samples of one metric in order of time.
type series struct {
	ends   []int64
	values []float64
}

// NewCollector collects for the workloads of q, in (q.From, q.To].
func NewCollector(q Query) *Collector {
	c := &Collector{query: q, workloads: make([]collected, len(q.Workloads))}
	for i := range c.workloads {
		c.workloads[i] = collected{
			containers: map[string]*Container{},
			chunks:     map[string]*chunk{},
			podEnds:    map[string]int64{},
		}
	}
	return c
}

// Add takes samples of one series of a pod's container: ends[i], in seconds
// since 1970, is the end of the interval that values[i] covers. w is an index
// into the query's workloads. Each series comes in order of time; series come
// in any order, and where several are of one pod, container and metric, the
// larger value counts. Add copies what it keeps.
func (c *Collector) Add(w int, pod, container string, m Metric, ends []int64, values []float64) {
	ch := c.workloads[w].chunk(container)
	c.add(w, ch, pod, container, m, c.clean(m, ends, values, &ch.dropped))
}

// AddFine is Add for samples that are closer together than the query's step: what
// can be true of each step is folded to one sample at the end of the step, CPU to
// the mean and all else to the largest. A series has all samples of a step in one
// call.
func (c *Collector) AddFine(w int, pod, container string, m Metric, ends []int64, values []float64) {
	ch := c.workloads[w].chunk(container)
	fine := c.clean(m, ends, values, &ch.dropped)
	c.add(w, ch, pod, container, m, fine.foldTo(int64(c.query.Step/time.Second), m))
}

// foldTo makes one sample of each step.
func (s series) foldTo(step int64, m Metric) series {
	var folded series
	for i := 0; i < len(s.ends); {
		end := (s.ends[i] + step - 1) / step * step
		sum, most, n := 0.0, 0.0, 0
		for ; i < len(s.ends) && s.ends[i] <= end; i++ {
			sum, most, n = sum+s.values[i], max(most, s.values[i]), n+1
		}
		value := most
		if m == MetricCPU {
			value = sum / float64(n)
		}
		folded.ends, folded.values = append(folded.ends, end), append(folded.values, value)
	}
	return folded
}

func (c *Collector) add(w int, ch *chunk, pod, container string, m Metric, added series) {
	wl := &c.workloads[w]
	if len(added.ends) == 0 {
		return
	}
	if record := c.query.Record; record != nil {
		record(c.query.Workloads[w].WorkloadKey, pod, container, m, added.ends, added.values)
	}
	metrics := ch.pods[pod]
	if metrics == nil {
		metrics = new([metricCount]series)
		ch.pods[pod] = metrics
	}
	metrics[m] = mergeSeries(metrics[m], added)
	if m == MetricCPU || m == MetricMemory {
		wl.podEnds[pod] = max(wl.podEnds[pod], added.ends[len(added.ends)-1])
	}
}

func (wl *collected) chunk(container string) *chunk {
	ch := wl.chunks[container]
	if ch == nil {
		ch = &chunk{pods: map[string]*[metricCount]series{}}
		wl.chunks[container] = ch
	}
	return ch
}

// noMachine is the ceiling where none is known: more than any machine has, and
// less than what a counter that went backwards is taken for.
var noMachine = Ceiling{CPUCores: 10_000, MemoryBytes: 1 << 50}

// clean copies the samples that can be true and lie in the query's interval.
// Usage that is left out is counted.
func (c *Collector) clean(m Metric, ends []int64, values []float64, dropped *tallies) series {
	ceiling := math.MaxFloat64
	switch m {
	case MetricCPU:
		ceiling = cmp.Or(c.query.Ceiling.CPUCores, noMachine.CPUCores)
	case MetricMemory:
		ceiling = cmp.Or(c.query.Ceiling.MemoryBytes, noMachine.MemoryBytes)
	}
	var discard tallies
	if m != MetricCPU && m != MetricMemory {
		dropped = &discard
	}
	from, to := c.query.From.Unix(), c.query.To.Unix()
	s := series{ends: make([]int64, 0, len(ends)), values: make([]float64, 0, len(ends))}
	for i, end := range ends {
		v := values[i]
		switch {
		case end <= from || end > to:
		case !(v >= 0) || math.IsInf(v, 0):
			dropped.on(end).dropped.Invalid++
		case v > ceiling:
			dropped.on(end).dropped.Implausible++
		default:
			s.ends, s.values = append(s.ends, end), append(s.values, v)
		}
	}
	return s
}

// mergeSeries unites two series; where both have a sample, the larger counts.
func mergeSeries(a, b series) series {
	if len(a.ends) == 0 {
		return b
	}
	m := series{ends: make([]int64, 0, len(a.ends)+len(b.ends)), values: make([]float64, 0, len(a.ends)+len(b.ends))}
	for i, j := 0, 0; i < len(a.ends) || j < len(b.ends); {
		switch {
		case j == len(b.ends) || (i < len(a.ends) && a.ends[i] < b.ends[j]):
			m.ends, m.values = append(m.ends, a.ends[i]), append(m.values, a.values[i])
			i++
		case i == len(a.ends) || b.ends[j] < a.ends[i]:
			m.ends, m.values = append(m.ends, b.ends[j]), append(m.values, b.values[j])
			j++
		default:
			m.ends, m.values = append(m.ends, a.ends[i]), append(m.values, max(a.values[i], b.values[j]))
			i, j = i+1, j+1
		}
	}
	return m
}

// AddOOMKill takes one kill of a container. The same kill (pod and time) added
// again changes nothing but what was unknown; kills outside the query's
// interval are ignored.
func (c *Collector) AddOOMKill(w int, container string, k OOMKill) {
	if !k.At.After(c.query.From) || k.At.After(c.query.To) {
		return
	}
	c.workloads[w].container(container).AddOOMKill(k)
}

func (wl *collected) container(name string) *Container {
	c := wl.containers[name]
	if c == nil {
		c = NewContainer()
		wl.containers[name] = c
	}
	return c
}

// AddFault notes something that could not be learnt about a workload.
func (c *Collector) AddFault(w int, f *Fault) {
	c.workloads[w].faults = append(c.workloads[w].faults, f)
}

// EndChunk folds what was added since the last call. Chunks come in order of
// time, each with all the series of its interval.
func (c *Collector) EndChunk() {
	for i := range c.workloads {
		wl := &c.workloads[i]
		for name, ch := range wl.chunks {
			to := wl.container(name)
			if c.query.Watch != nil && to.Watcher == nil {
				to.Watcher = c.query.Watch(c.query.Workloads[i].WorkloadKey, name)
			}
			c.fold(i, to, ch)
		}
		clear(wl.chunks)
	}
}

func (c *Collector) fold(w int, to *Container, ch *chunk) {
	to.tallies.add(ch.dropped)
	var cpuRuns, memoryRuns [][]point                        // by pod, each in order of time
	for _, name := range slices.Sorted(maps.Keys(ch.pods)) { // So that every run gives a watcher the same.
		pod := ch.pods[name]
		c.workloads[w].spacing = max(c.workloads[w].spacing, medianSpacing(pod[MetricCPU].ends), medianSpacing(pod[MetricMemory].ends))
		cpuRuns = append(cpuRuns, c.cpuPoints(w, to, pod))
		memoryRuns = append(memoryRuns, points(pod[MetricMemory]))
		to.addPressure(pod[MetricCPUPressure], pod[MetricMemoryPressure])
	}
	for _, p := range mergeRuns(cpuRuns) {
		to.AddCPU(p.end, p.value, p.throttled)
	}
	memory := mergeRuns(memoryRuns)
	if len(memoryRuns) > 1 {
		memory = worstAtEachInstant(memory, c.instantWidth(w))
	}
	for _, p := range memory {
		to.Memory.Add(p.end, p.value)
	}
	to.countUp()
}

func (c *Container) addPressure(cpu, memory series) {
	for i, end := range cpu.ends {
		t := c.tallies.on(end)
		t.cpuPressure = max(t.cpuPressure, cpu.values[i])
	}
	for i, end := range memory.ends {
		t := c.tallies.on(end)
		t.memoryPressure = max(t.memoryPressure, memory.values[i])
	}
}

// point is one sample; throttled is negative where unknown or without meaning.
type point struct {
	end       int64
	value     float64
	throttled float64
}

func points(s series) []point {
	run := make([]point, len(s.ends))
	for i, end := range s.ends {
		run[i] = point{end, s.values[i], -1}
	}
	return run
}

// mergeRuns puts runs that are each in order of time into one, by pairs, since
// sorting would not know that they are. Samples of one time stay in the order of
// the runs.
func mergeRuns(runs [][]point) []point {
	for len(runs) > 1 {
		merged := runs[:0:len(runs)]
		for i := 0; i < len(runs); i += 2 {
			if i+1 == len(runs) {
				merged = append(merged, runs[i])
			} else {
				merged = append(merged, mergePair(runs[i], runs[i+1]))
			}
		}
		runs = merged
	}
	if len(runs) == 0 {
		return nil
	}
	return runs[0]
}

func mergePair(a, b []point) []point {
	merged := make([]point, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].end <= b[0].end {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

// cpuPoints are a pod's CPU samples, each with its throttled share, without the
// ones that a start-up boost serves.
func (c *Collector) cpuPoints(w int, to *Container, pod *[metricCount]series) []point {
	cpu := pod[MetricCPU]
	run := make([]point, 0, len(cpu.ends))
	throttled, notReady, started := cursor{s: pod[MetricThrottled]}, cursor{s: pod[MetricNotReady]}, cursor{s: pod[MetricStarted]}
	mask := c.query.Workloads[w].MaskStartup
	if mask > 0 && len(cpu.ends) > 0 && len(notReady.s.ends) == 0 {
		to.tallies.on(cpu.ends[0]).maskFailed = true
	}
	for i, end := range cpu.ends {
		if mask > 0 {
			unready, known := notReady.at(end)
			start, startKnown := started.at(end)
			age := time.Duration(float64(end)-start) * time.Second
			if known && unready >= 1 && startKnown && age <= mask+c.query.Step {
				to.tallies.on(end).masked++
				continue
			}
		}
		share, ok := throttled.at(end)
		if !ok {
			share = -1
		}
		run = append(run, point{end, cpu.values[i], share})
	}
	return run
}

// cursor reads a series at ascending times.
type cursor struct {
	s series
	i int
}

func (c *cursor) at(end int64) (value float64, ok bool) {
	for c.i < len(c.s.ends) && c.s.ends[c.i] < end {
		c.i++
	}
	if c.i < len(c.s.ends) && c.s.ends[c.i] == end {
		return c.s.values[c.i], true
	}
	return 0, false
}

// medianSpacing is the usual distance of a series' samples, in seconds; 0 of
// fewer than two samples.
func medianSpacing(ends []int64) int64 {
	const enough = 65
	if len(ends) > enough {
		ends = ends[:enough]
	}
	var gaps []int64
	for i := 1; i < len(ends); i++ {
		gaps = append(gaps, ends[i]-ends[i-1])
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// instantWidth is how far apart the samples of different pods may end and
// still be of one instant.
func (c *Collector) instantWidth(w int) int64 {
	step := int64(c.query.Step / time.Second)
	if spacing := c.workloads[w].spacing; spacing > 0 {
		step = min(step, spacing)
	}
	return max(step, 1)
}

// worstAtEachInstant keeps the largest of the samples of each instant. The
// points are in order of time, and so is the result.
func worstAtEachInstant(points []point, width int64) []point {
	worst := points[:0]
	start := int64(math.MinInt64 / 2)
	for _, p := range points {
		if p.end-start >= width {
			start = p.end
			worst = append(worst, p)
			continue
		}
		last := &worst[len(worst)-1]
		last.end, last.value = p.end, max(last.value, p.value)
	}
	return worst
}

// Usage is what was folded, in the order of the query's workloads. A workload
// of which nothing is known has a fault that says so.
func (c *Collector) Usage() []Usage {
	usage := make([]Usage, len(c.workloads))
	for i := range c.workloads {
		wl := &c.workloads[i]
		for _, container := range wl.containers {
			container.Compact()
		}
		key := c.query.Workloads[i].WorkloadKey
		if len(wl.containers) == 0 && len(wl.faults) == 0 {
			wl.faults = append(wl.faults, &Fault{
				Reason: v1alpha1.ReasonNoSeries,
				Err:    fmt.Errorf("reading usage of %s: %w", key, ErrNoData),
			})
		}
		slack := 2 * max(int64(c.query.Step/time.Second), wl.spacing)
		log := newPodLog(wl.podEnds, c.query.To.Unix(), slack)
		usage[i] = Usage{Workload: key, Containers: wl.containers, Pods: log.count(), Faults: wl.faults, log: log}
	}
	return usage
}
