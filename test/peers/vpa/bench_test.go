package vpa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/history"
)

// minutes is eight days of one container at one sample a minute, each value
// five times, as VPA would read what is recorded every five minutes.
func minutes(seed uint64) []backtest.Sample {
	const days = 8
	r := rand.New(rand.NewPCG(seed, 1))
	level, leak := math.Exp(r.NormFloat64()), 1.0
	samples := make([]backtest.Sample, 0, days*1440)
	for i := range days * 288 {
		if leak += 0.0005; r.Float64() < 0.001 {
			leak = 1
		}
		daily := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/288)
		cores := level * daily * math.Exp(0.3*r.NormFloat64())
		bytes := level * 1e9 * leak * (1 + 0.1*daily + 0.05*r.NormFloat64())
		for m := range 5 {
			start := int64(1_700_000_000)/300*300 + int64(i*300+m*60)
			samples = append(samples, backtest.Sample{Start: start, End: start + 60, CPUCores: cores, MemoryBytes: bytes, Throttled: -1})
		}
	}
	return samples
}

func infoOf(samples []backtest.Sample) backtest.SeriesInfo {
	limits := backtest.Limits{MemoryPercent: 100}
	return backtest.SeriesInfo{
		Name: "bench", First: time.Unix(samples[0].Start, 0).UTC(), Step: time.Minute,
		HasCPU: true, HasMemory: true, Limits: limits, Initial: limits.OfUsage(2, 4e9),
	}
}

// A sample is one value of CPU or of memory.

// BenchmarkIngest takes eight days of samples of one container: into VPA's
// cluster model, as its feeder does, and into its histograms alone; into our
// history, and into all that the default profile keeps.
func BenchmarkIngest(b *testing.B) {
	samples := minutes(1)
	info := infoOf(samples)
	perSample := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*len(samples)), "ns/sample")
	}
	b.Run("vpa-cluster-state", func(b *testing.B) {
		s := New()
		for b.Loop() {
			d := s.start(info)
			for _, one := range samples {
				d.Observe(one)
			}
		}
		perSample(b)
	})
	b.Run("vpa-histograms", func(b *testing.B) {
		for b.Loop() {
			a := model.NewAggregateContainerState()
			for _, one := range samples {
				at := time.Unix(one.Start, 0).UTC()
				a.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: milliCores(one.CPUCores), Resource: model.ResourceCPU})
				a.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: model.ResourceAmount(one.MemoryBytes), Resource: model.ResourceMemory})
			}
		}
		perSample(b)
	})
	b.Run("plimsoll-history", func(b *testing.B) {
		for b.Loop() {
			c := history.NewContainer()
			for _, one := range samples {
				c.AddCPU(one.End, one.CPUCores, one.Throttled)
				c.Memory.Add(one.End, one.MemoryBytes)
			}
		}
		perSample(b)
	})
	b.Run("plimsoll-balanced", func(b *testing.B) {
		strategy := backtest.Profile(v1alpha1.ProfileBalanced)
		for b.Loop() {
			d := strategy.Start(info)
			for _, one := range samples {
				d.Observe(one)
			}
		}
		perSample(b)
	})
}

// BenchmarkRecommend is one look at a container with eight days of history,
// after one more sample: the recommendation, and what to do about it.
func BenchmarkRecommend(b *testing.B) {
	samples := minutes(1)
	info := infoOf(samples)
	// What is decided is done, so that most looks change nothing.
	decide := func(d backtest.Decider) func(now time.Time) {
		current := info.Initial
		return func(now time.Time) { current = d.Decide(now, current).Target }
	}
	look := func(b *testing.B, d backtest.Decider, decide func(now time.Time)) {
		for _, one := range samples {
			d.Observe(one)
		}
		next := samples[len(samples)-1]
		b.ReportAllocs()
		for b.Loop() {
			next.Start, next.End = next.End, next.End+60
			d.Observe(next)
			decide(time.Unix(next.End, 0).UTC())
		}
	}
	b.Run("vpa-recommender", func(b *testing.B) {
		d := New().start(info)
		look(b, d, func(time.Time) { d.recommend() })
	})
	b.Run("vpa-recommender-and-updater", func(b *testing.B) {
		d := New().start(info)
		look(b, d, decide(d))
	})
	b.Run("plimsoll-balanced", func(b *testing.B) {
		d := backtest.Profile(v1alpha1.ProfileBalanced).Start(info)
		look(b, d, decide(d))
	})
}

// BenchmarkRetained is the heap that a container's state takes after eight days,
// of many containers: what stays after a collection, less what there was.
func BenchmarkRetained(b *testing.B) {
	const containers = 200
	measure := func(b *testing.B, fill func() any) {
		for b.Loop() {
			before := heap()
			kept := fill()
			b.ReportMetric(float64(heap()-before)/containers, "bytes/container")
			runtime.KeepAlive(kept)
		}
	}
	b.Run("vpa-cluster-state", func(b *testing.B) {
		measure(b, func() any {
			cluster := model.NewClusterState(time.Hour)
			for i := range containers {
				fillVPA(b, cluster, i)
			}
			return cluster
		})
	})
	b.Run("plimsoll-history", func(b *testing.B) {
		measure(b, func() any {
			var all []*history.Container
			for i := range containers {
				c := history.NewContainer()
				for _, one := range minutes(uint64(i)) {
					c.AddCPU(one.End, one.CPUCores, one.Throttled)
					c.Memory.Add(one.End, one.MemoryBytes)
				}
				c.Compact()
				all = append(all, c)
			}
			return all
		})
	})
	b.Run("plimsoll-balanced", func(b *testing.B) {
		measure(b, func() any {
			var all []backtest.Decider
			for i := range containers {
				samples := minutes(uint64(i))
				d := backtest.Profile(v1alpha1.ProfileBalanced).Start(infoOf(samples))
				for _, one := range samples {
					d.Observe(one)
				}
				all = append(all, d)
			}
			return all
		})
	})
}

// fillVPA puts one container of a workload of its own into VPA's model.
func fillVPA(b *testing.B, cluster model.ClusterState, i int) {
	pod := model.PodID{Namespace: namespace, PodName: fmt.Sprintf("%s-%d", name, i)}
	container := model.ContainerID{PodID: pod, ContainerName: name}
	cluster.AddOrUpdatePod(pod, labels.Set{"app": strconv.Itoa(i)}, corev1.PodRunning)
	if err := cluster.AddOrUpdateContainer(container, nil); err != nil {
		b.Fatal(err)
	}
	for _, one := range minutes(uint64(i)) {
		for _, sample := range []model.ContainerUsageSample{
			{Usage: milliCores(one.CPUCores), Resource: model.ResourceCPU},
			{Usage: model.ResourceAmount(one.MemoryBytes), Resource: model.ResourceMemory},
		} {
			sample.MeasureStart = time.Unix(one.Start, 0).UTC()
			if err := cluster.AddSample(&model.ContainerUsageSampleWithKey{ContainerUsageSample: sample, Container: container}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// heap is the size of what is reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
