package backtest

import (
	"testing"
	"time"
)

// The figures are those of VPA's own packages (release 1.7.1), fed with one
// sample a minute; test/peers compares many more.
func TestVPARecommendsAsItsOwnCodeDoes(t *testing.T) {
	minutes := func(cores func(minute int64) float64, count int64) *vpaDecider {
		d := NewVPA().Start(SeriesInfo{HasCPU: true}).(*vpaDecider)
		for m := range count {
			start := 1_700_000_000 + 60*m
			d.Observe(Sample{Start: start, End: start + 60, CPUCores: cores(m), MemoryBytes: -1})
		}
		return d
	}
	flat := func(int64) float64 { return 1 }
	const day = 24 * 60
	tests := map[string]struct {
		decider *vpaDecider
		want    VPABand
	}{
		"an hour of one core": {minutes(flat, 61), VPABand{1113, 1168, 29202}},
		"a day of one core":   {minutes(flat, day+1), VPABand{1165, 1168, 2336}},
		"8 days of one core":  {minutes(flat, 8*day+1), VPABand{1167, 1168, 1314}},
		"nothing":             {minutes(flat, 0), VPABand{25, 25, 25}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.decider.band(tc.decider.cpu, milli, vpaLeastCPU)
			if got.Lower != tc.want.Lower || got.Target != tc.want.Target || got.Upper/10 != tc.want.Upper/10 {
				t.Errorf("band %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestVPAForgetsWithinDays(t *testing.T) {
	tests := map[string]struct {
		ended time.Duration // before now
		want  int64
	}{
		"eight hours at 4 cores that ended a day ago":    {24 * time.Hour, 4742},
		"eight hours at 4 cores that ended two days ago": {48 * time.Hour, 587},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := NewVPA().Start(SeriesInfo{HasCPU: true}).(*vpaDecider)
			now := int64(1_700_000_000)
			busyFrom, busyTo := now-int64((tc.ended+8*time.Hour)/time.Second), now-int64(tc.ended/time.Second)
			for start := now - 8*secondsPerDay; start < now; start += 300 {
				cores := 0.5
				if start >= busyFrom && start < busyTo {
					cores = 4
				}
				d.Observe(Sample{Start: start, End: start + 300, CPUCores: cores, MemoryBytes: -1})
			}
			if got := d.band(d.cpu, milli, vpaLeastCPU).Target; got != tc.want {
				t.Errorf("target %dm, want %dm", got, tc.want)
			}
		})
	}
}

func TestVPAHistogramHasItsBuckets(t *testing.T) {
	cpu, memory := newVPAHistogram(vpaCPUFirstBucket, vpaCPUMax), newVPAHistogram(vpaMemoryFirstBucket, vpaMemoryMax)
	if len(cpu.weights) != 176 || len(memory.weights) != 176 {
		t.Errorf("%d and %d buckets, want 176", len(cpu.weights), len(memory.weights))
	}
}
