package backtest

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Series is the recorded usage of one workload: of one container in each of its
// replicas, which share one allocation.
type Series struct {
	// Name tells the series apart in reports, and orders them.
	Name string
	// Group is what series that are not independent share, such as replicas of
	// one job; empty is a group of its own.
	Group string
	// Samples are in order of time. Samples of the same interval are of
	// different replicas; other intervals do not overlap.
	Samples []Sample
	// Provisioned is what a person asked for; a zero request is unknown.
	Provisioned Allocation
	// Written is what manifests say of the workload.
	Written Written
}

// Written is what manifests say of a workload. The zero value says nothing.
type Written struct {
	// Template is the pod as a person wrote it, and Container the name of the
	// container that the series is of; nil is a pod of this container alone.
	// What it has of requests and limits is then what was provisioned.
	Template  *corev1.PodSpec
	Container string
	// Replicas share the quotas; 0 counts as one.
	Replicas int64
	// LimitRanges, Quotas and Node bound what may be asked for.
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	Node        sizing.Capacity
}

// container is the one that the series is of; false where there is none.
func (w *Written) container() (corev1.Container, bool) {
	if w.Template == nil {
		return corev1.Container{}, false
	}
	for _, list := range [][]corev1.Container{w.Template.Containers, w.Template.InitContainers} {
		for _, c := range list {
			if c.Name == w.Container {
				return c, true
			}
		}
	}
	return corev1.Container{}, false
}

// Sample is what was used in one interval.
type Sample struct {
	// Replica tells replicas apart; they count from 0.
	Replica int
	// Start and End bound the interval, in seconds since 1970.
	Start, End int64
	// CPUCores is the mean CPU use, in cores; negative is no sample.
	CPUCores float64
	// MemoryBytes is the peak working set, in bytes; negative is no sample.
	MemoryBytes float64
	// Throttled is the share of CFS periods that were throttled, 0 to 1;
	// negative is unknown.
	Throttled float64
}

// HasCPU says whether there is a sample of CPU.
func (s Sample) HasCPU() bool { return s.CPUCores >= 0 }

// HasMemory says whether there is a sample of memory.
func (s Sample) HasMemory() bool { return s.MemoryBytes >= 0 }

// seconds is the length of the interval.
func (s Sample) seconds() float64 { return float64(s.End - s.Start) }

// hasCPU and hasMemory say whether the series has any sample.
func (s *Series) hasCPU() bool    { return slices.ContainsFunc(s.Samples, Sample.HasCPU) }
func (s *Series) hasMemory() bool { return slices.ContainsFunc(s.Samples, Sample.HasMemory) }

// replicas is how many there are at most.
func (s *Series) replicas() int {
	n := 0
	for i := range s.Samples {
		n = max(n, s.Samples[i].Replica+1)
	}
	return n
}

// interval is the samples that share the interval of the first one.
func interval(samples []Sample) []Sample {
	n := 1
	for n < len(samples) && samples[n].Start == samples[0].Start && samples[n].End == samples[0].End {
		n++
	}
	return samples[:n]
}

// span is the time from the first sample to the last, gaps included.
func (s *Series) span() time.Duration {
	if len(s.Samples) == 0 {
		return 0
	}
	return time.Duration(s.Samples[len(s.Samples)-1].End-s.Samples[0].Start) * time.Second
}

// step is the usual length of an interval; 0 where there is none.
func (s *Series) step() time.Duration {
	if len(s.Samples) == 0 {
		return 0
	}
	lengths := make([]int64, len(s.Samples))
	for i, sample := range s.Samples {
		lengths[i] = sample.End - sample.Start
	}
	slices.Sort(lengths)
	return time.Duration(lengths[len(lengths)/2]) * time.Second
}

// peak is the largest sample that ends after one time and starts before
// another, in cores and bytes; negative where there is none.
func (s *Series) peak(after, before int64) (cpu, memory float64) {
	cpu, memory = -1, -1
	first, _ := slices.BinarySearchFunc(s.Samples, after, func(s Sample, t int64) int {
		if s.End > t {
			return 1
		}
		return -1
	})
	for _, sample := range s.Samples[first:] {
		if sample.Start >= before {
			break
		}
		cpu, memory = max(cpu, sample.CPUCores), max(memory, sample.MemoryBytes)
	}
	return cpu, memory
}

// allocationOf reads what a container writes. As for the API server, a limit
// alone is the request as well.
func allocationOf(r corev1.ResourceRequirements) Allocation {
	a := Allocation{
		CPU:    Amount{r.Requests.Cpu().MilliValue(), r.Limits.Cpu().MilliValue()},
		Memory: Amount{r.Requests.Memory().Value(), r.Limits.Memory().Value()},
	}
	for _, amount := range []*Amount{&a.CPU, &a.Memory} {
		if amount.Request == 0 {
			amount.Request = amount.Limit
		}
	}
	return a
}
