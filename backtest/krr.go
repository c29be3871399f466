package backtest

import (
	"slices"
	"time"
)

// KRR is the formula of robusta's KRR, strategy simple: the 95th percentile of
// CPU and the memory peak with 15% more, over 14 days; run once a day, and
// applied. It has no answer to a kill but the next day's peak.
type KRR struct{}

// Name implements Strategy.
func (KRR) Name() string { return "krr" }

const (
	krrWindow       = 14 * 24 * time.Hour
	krrEvery        = 24 * time.Hour
	krrCPU          = 0.95
	krrMemoryMargin = 1.15
	krrLeastCPU     = 0.01
	krrLeastMemory  = 100e6
	krrLeastPoints  = 100
)

// Start implements Strategy.
func (KRR) Start(info SeriesInfo) Decider { return &krrDecider{info: info} }

type krrDecider struct {
	info    SeriesInfo
	samples []Sample
	next    time.Time
	sorted  []float64
}

// Observe implements Decider.
func (d *krrDecider) Observe(s Sample) { d.samples = append(d.samples, s) }

// OOM implements Decider.
func (*krrDecider) OOM(int, time.Time, float64, float64) {}

// Decide implements Decider.
func (d *krrDecider) Decide(now time.Time, current Allocation) Decision {
	if now.Before(d.next) {
		return Keep(current)
	}
	d.next = now.Add(krrEvery)
	from := now.Add(-krrWindow).Unix()
	old := 0
	for old < len(d.samples) && d.samples[old].End <= from {
		old++
	}
	d.samples = d.samples[old:]

	target, memory, points := current, 0.0, 0
	d.sorted = d.sorted[:0]
	for _, s := range d.samples {
		if s.HasCPU() {
			d.sorted = append(d.sorted, s.CPUCores)
		}
		if s.HasMemory() {
			memory = max(memory, s.MemoryBytes)
			points++
		}
	}
	slices.Sort(d.sorted)
	if len(d.sorted) >= krrLeastPoints {
		target.CPU = d.info.Limits.OfUsage(max(quantileSorted(d.sorted, krrCPU), krrLeastCPU), 0).CPU
	}
	if points >= krrLeastPoints {
		target.Memory = d.info.Limits.OfUsage(0, max(memory*krrMemoryMargin, krrLeastMemory)).Memory
	}
	return Decision{Apply: target != current, Target: target}
}
