package recorded

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-dev/plimsoll/backtest"
)

// pod is what was recorded of a container in one pod. Values are -1 where there
// is no sample; throttled is nil where nothing is known of it.
type pod struct {
	starts, ends           []int64
	cpu, memory, throttled []float64
}

// merged is the samples of all pods as one series' samples, and counts the ones
// that cannot be true.
func merged(pods []pod) (samples []backtest.Sample, bad int) {
	replicas := slots(pods)
	step := int64(0)
	if len(pods) > 1 {
		step = usualStep(pods)
	}
	for i, p := range pods {
		for j, start := range p.starts {
			sample := backtest.Sample{
				Replica: replicas[i], Start: start, End: p.ends[j],
				CPUCores: truth(p.cpu[j], &bad), MemoryBytes: truth(p.memory[j], &bad), Throttled: -1,
			}
			if p.throttled != nil {
				sample.Throttled = p.throttled[j]
			}
			if step > 0 { // Replicas share one grid.
				sample.Start = start / step * step
				sample.End = sample.Start + step
			}
			if sample.HasCPU() || sample.HasMemory() {
				samples = append(samples, sample)
			}
		}
	}
	if len(pods) > 1 {
		samples = oneEach(samples)
	}
	return samples, bad
}

// truth is a value that can be true, or -1. An empty cell is no fault.
func truth(v float64, bad *int) float64 {
	if v >= 0 && !math.IsInf(v, 0) {
		return v
	}
	if v != -1 {
		*bad++
	}
	return -1
}

// slots gives each pod the number of a replica: a pod takes the place of one
// that was gone before it came.
func slots(pods []pod) []int {
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	first := func(i int) int64 {
		if len(pods[i].starts) == 0 {
			return math.MaxInt64
		}
		return pods[i].starts[0]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first(a), first(b)) })
	replica := make([]int, len(pods))
	var free []int64 // the end of the last pod in each slot
	for _, i := range order {
		slot := slices.IndexFunc(free, func(end int64) bool { return end <= first(i) })
		if slot < 0 {
			slot = len(free)
			free = append(free, 0)
		}
		replica[i] = slot
		if n := len(pods[i].ends); n > 0 {
			free[slot] = pods[i].ends[n-1]
		}
	}
	return replica
}

// usualStep is the median length of all intervals; 0 where there is none.
func usualStep(pods []pod) int64 {
	var lengths []int64
	for _, p := range pods {
		for i := range p.starts {
			lengths = append(lengths, p.ends[i]-p.starts[i])
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// oneEach brings samples on a grid into order; of two of a replica in one
// interval, the larger values count.
func oneEach(samples []backtest.Sample) []backtest.Sample {
	slices.SortFunc(samples, func(a, b backtest.Sample) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Replica, b.Replica))
	})
	kept := samples[:0]
	for _, s := range samples {
		if n := len(kept); n > 0 && kept[n-1].Start == s.Start && kept[n-1].Replica == s.Replica {
			last := &kept[n-1]
			last.CPUCores, last.MemoryBytes = max(last.CPUCores, s.CPUCores), max(last.MemoryBytes, s.MemoryBytes)
			last.Throttled = max(last.Throttled, s.Throttled)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// AsReplicas makes one workload of series that share a group: their containers
// become its replicas, and what each had at first, the largest of it, what all
// have. Series without a group, or alone in it, stay as they are.
func AsReplicas(all []Series) []Series {
	groups := map[string][]Series{}
	var order []string
	for _, s := range all {
		key := s.Group
		if key == "" {
			key = s.Name
		}
		if len(groups[key]) == 0 {
			order = append(order, key)
		}
		groups[key] = append(groups[key], s)
	}
	var joined []Series
	for _, key := range order {
		group := groups[key]
		if len(group) == 1 {
			joined = append(joined, group[0])
			continue
		}
		one := group[0]
		one.Name = one.Workload.Namespace + "/" + key
		var pods []pod
		for _, s := range group {
			pods = append(pods, podOf(s.Samples))
			one.Provisioned.CPU.Request = max(one.Provisioned.CPU.Request, s.Provisioned.CPU.Request)
			one.Provisioned.Memory.Request = max(one.Provisioned.Memory.Request, s.Provisioned.Memory.Request)
		}
		one.Samples, _ = merged(pods)
		joined = append(joined, one)
	}
	return joined
}

func podOf(samples []backtest.Sample) pod {
	var p pod
	for _, s := range samples {
		p.starts, p.ends = append(p.starts, s.Start), append(p.ends, s.End)
		p.cpu, p.memory = append(p.cpu, s.CPUCores), append(p.memory, s.MemoryBytes)
		p.throttled = append(p.throttled, s.Throttled)
	}
	return p
}
