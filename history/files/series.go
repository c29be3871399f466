package files

import (
	"slices"
	"sort"

	"github.com/plimsoll-dev/plimsoll/history"
)

const (
	// defaultStep is the interval of a file with one row, in seconds, where no
	// query says another.
	defaultStep = 300
	// maxSteps is how many median steps an interval can last. Beyond it lies a
	// gap, of which a row says nothing; below it a sample that came late.
	maxSteps = 3
)

// series is the usage of one container of a pod.
type series struct {
	pod, container string
	cpu, memory    samples
}

// samples have the ends of their intervals, strictly increasing.
type samples struct {
	ends   []int64
	values []float64
}

// ends returns where the interval of each row ends. A single row lasts as long
// as the given step, in seconds.
func (t *table) ends(step int64) []int64 {
	n := len(t.starts)
	if n == 0 {
		return nil
	}
	steps := make([]int64, n-1)
	for i := range steps {
		steps[i] = t.starts[i+1] - t.starts[i]
	}
	if len(steps) > 0 {
		sorted := slices.Clone(steps)
		slices.Sort(sorted)
		step = sorted[len(sorted)/2]
	}
	ends := make([]int64, n)
	for i, start := range t.starts {
		ends[i] = start + step
		if i < len(steps) {
			ends[i] = start + min(steps[i], maxSteps*step)
		}
	}
	return ends
}

// within returns the column's samples whose intervals end in (from, to].
func (c column) within(ends []int64, from, to int64) samples {
	first := sort.Search(len(c.rows), func(i int) bool { return ends[c.rows[i]] > from })
	last := sort.Search(len(c.rows), func(i int) bool { return ends[c.rows[i]] > to })
	last = max(first, last)
	s := samples{ends: make([]int64, 0, last-first), values: slices.Clone(c.values[first:last])}
	for _, row := range c.rows[first:last] {
		s.ends = append(s.ends, ends[row])
	}
	return s
}

// until cuts off the samples that end up to the given time.
func (s *samples) until(to int64) samples {
	i := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > to })
	head := samples{s.ends[:i], s.values[:i]}
	s.ends, s.values = s.ends[i:], s.values[i:]
	return head
}

// maxChunk is how many samples are handed over at a time. The collector keeps
// a copy of each until the chunk ends; this one costs 16 MB.
const maxChunk = 1 << 20

// feed hands all series over to the collector of one workload, about as many
// samples at a time as given.
func feed(c *history.Collector, all []series, from, to int64, chunk int) {
	count := 0
	for _, s := range all {
		count += len(s.cpu.ends) + len(s.memory.ends)
	}
	span := to - from
	if count > chunk {
		span = max(1, span/int64(count/chunk+1))
	}
	for end := from; end < to; {
		end = min(to, end+span)
		for i := range all {
			s := &all[i]
			add(c, s, history.MetricCPU, s.cpu.until(end))
			add(c, s, history.MetricMemory, s.memory.until(end))
		}
		c.EndChunk()
	}
}

// add leaves out what is empty, so that no container appears of which there is
// nothing.
func add(c *history.Collector, s *series, m history.Metric, part samples) {
	if len(part.ends) > 0 {
		c.Add(0, s.pod, s.container, m, part.ends, part.values)
	}
}
