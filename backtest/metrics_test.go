package backtest

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// figures are the metrics that a test names, by their keys in JSON.
func figures(m Metrics, keys map[string]float64) map[string]float64 {
	got := map[string]float64{}
	for _, c := range metricColumns {
		if _, ok := keys[c.key]; !ok {
			continue
		}
		if v := c.value(&m); v != nil {
			got[c.key] = math.Round(*v*1e9) / 1e9
		}
	}
	return got
}

func TestMetrics(t *testing.T) {
	const day = 288
	hours := func(values ...float64) []float64 { // one an hour
		var all []float64
		for _, v := range values {
			all = append(all, slices.Repeat([]float64{v}, 12)...)
		}
		return all
	}
	tests := map[string]struct {
		series    Series
		initial   Allocation
		options   func(*Options)
		decisions map[int64]Decision
		want      map[string]float64
	}{
		"half of what is asked for is used": {
			series:  five(hours(1, 1), hours(50, 50)),
			initial: memoryIsLimit.Of(2000, 100),
			want: map[string]float64{
				"cpuSlack": 0.5, "cpuWorkShort": 0, "cpuTimeShort": 0, "memorySlack": 0.5,
				"oomPer100Days": 0, "resizesPerDay": 0, "cpuSaving": 0, "memorySaving": 0,
			},
		},
		"slack counts what lies idle, and not what is short": {
			// 1 core: idle for an hour, then short of 3.
			series:  five(hours(0, 4), nil),
			initial: memoryIsLimit.Of(1000, 0),
			want:    map[string]float64{"cpuSlack": 0.5, "cpuWorkShort": 0.75, "cpuTimeShort": 0.5},
		},
		"a container that uses nothing is short of nothing": {
			series:  five(hours(0), nil),
			initial: memoryIsLimit.Of(1000, 0),
			want:    map[string]float64{"cpuSlack": 1, "cpuWorkShort": 0, "cpuTimeShort": 0},
		},
		"a change in the middle of an interval counts for its part": {
			series:    five([]float64{1, 1}, nil),
			initial:   memoryIsLimit.Of(1000, 0),
			options:   func(o *Options) { o.Delay = 150e9 },
			decisions: map[int64]Decision{300: to(memoryIsLimit, 3000, 0)},
			want:      map[string]float64{"cpuSlack": 0.333333333, "cpuSaving": -0.5},
		},
		"kills within an hour are one episode": {
			series:  five(nil, append(slices.Repeat([]float64{1}, day-14), append([]float64{300, 300}, slices.Concat(hours(1)[1:], []float64{300})...)...)),
			initial: memoryIsLimit.Of(0, 200),
			want:    map[string]float64{"oomPer100Days": 300, "oomEpisodesPer100Days": 200, "restartsPer100Days": 300, "days": 1, "daysWithoutOOM": 0},
		},
		"a patch that changes CPU and memory is one resize": {
			series:    five(hours(slices.Repeat([]float64{1}, 24)...), hours(slices.Repeat([]float64{1}, 24)...)),
			initial:   memoryIsLimit.Of(1000, 100),
			decisions: map[int64]Decision{300: to(memoryIsLimit, 2000, 200), 7200: to(memoryIsLimit, 2000, 300)},
			want:      map[string]float64{"resizesPerDay": 2, "reversalsPerDay": 0},
		},
		"what asks for the same is no resize": {
			series:    five(hours(1), nil),
			initial:   memoryIsLimit.Of(1000, 0),
			decisions: map[int64]Decision{300: to(memoryIsLimit, 1000, 0)},
			want:      map[string]float64{"resizesPerDay": 0},
		},
		"back within the hour is a reversal, later it is none": {
			series:  five(hours(slices.Repeat([]float64{1}, 24)...), nil),
			initial: memoryIsLimit.Of(1000, 0),
			decisions: map[int64]Decision{
				300: to(memoryIsLimit, 2000, 0), 3600: to(memoryIsLimit, 1500, 0),
				7200: to(memoryIsLimit, 2000, 0),
			},
			want: map[string]float64{"resizesPerDay": 3, "reversalsPerDay": 1},
		},
		"a refused decrease is no resize": {
			series:    five(nil, hours(slices.Repeat([]float64{50}, 24)...)),
			initial:   memoryIsLimit.Of(0, 100),
			decisions: map[int64]Decision{300: to(memoryIsLimit, 0, 40)},
			want:      map[string]float64{"resizesPerDay": 0, "rejectedPerDay": 1, "memorySlack": 0.5},
		},
		"a new pod is down for a minute, with nothing asked for": {
			series:    five([]float64{1, 1}, nil),
			initial:   memoryIsLimit.Of(1000, 0),
			decisions: map[int64]Decision{300: {Apply: true, Recreate: true, Target: memoryIsLimit.Of(1000, 0).with(500)}},
			// 60 s without anything, 240 s half short.
			want: map[string]float64{"cpuWorkShort": 180.0 / 600, "cpuTimeShort": 0.5, "restartsPer100Days": 100 * 86400 / 600.0},
		},
		"time to safe is how long a shortage lasts": {
			series:  five([]float64{2, 2, 1, 2, 1, 1}, nil),
			initial: memoryIsLimit.Of(1000, 0),
			want:    map[string]float64{"minutesToSafeP50": 5, "minutesToSafeP95": 10},
		},
		"without memory, nothing is said of it": {
			series:  five([]float64{1}, nil),
			initial: memoryIsLimit.Of(1000, 0),
			want:    map[string]float64{"cpuSlack": 0},
		},
		"Autopilot's slack is against the day's p95": {
			// Ten per cent of the day at 4 cores.
			series:  five(append(slices.Repeat([]float64{1}, 259), slices.Repeat([]float64{4}, 29)...), nil),
			initial: memoryIsLimit.Of(5000, 0),
			want:    map[string]float64{"dailyCPUSlack": 0.2},
		},
		"a gap is not scored": {
			series: func() Series {
				s := five([]float64{1, 1}, nil)
				s.Samples[1].Start += 86400
				s.Samples[1].End += 86400
				return s
			}(),
			initial: memoryIsLimit.Of(1000, 0),
			want:    map[string]float64{"days": math.Round(600.0/86400*1e9) / 1e9},
		},
		"replicas share a size, and each counts": {
			series: func() Series {
				s := five([]float64{1}, nil)
				second := s.Samples[0]
				second.Replica, second.CPUCores = 1, 3
				s.Samples = append(s.Samples, second)
				return s
			}(),
			initial:   memoryIsLimit.Of(1000, 0),
			decisions: map[int64]Decision{0: to(memoryIsLimit, 2000, 0)},
			want: map[string]float64{
				"cpuSlack": 0.25, "cpuWorkShort": 0.25, "cpuTimeShort": 0.5,
				"resizesPerDay": 288, "days": math.Round(600.0/86400*1e9) / 1e9,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.series.Provisioned = tc.initial
			o := atOnce()
			if tc.options != nil {
				tc.options(&o)
			}
			m := replayed(t, tc.series, &script{decisions: tc.decisions}, o).Metrics()
			if diff := cmp.Diff(tc.want, figures(m, tc.want)); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
			if tc.series.hasMemory() != (m.MemorySlack != nil) {
				t.Errorf("memory slack %v, though memory recorded is %v", m.MemorySlack, tc.series.hasMemory())
			}
		})
	}
}

// with is the allocation with another CPU request.
func (a Allocation) with(cpuMilli int64) Allocation {
	a.CPU.Request = cpuMilli
	return a
}

func TestPoolingWeighsBySizeAndTime(t *testing.T) {
	idle, busy := five([]float64{0, 0, 0, 0}, nil), five([]float64{9}, nil)
	idle.Provisioned, busy.Provisioned = memoryIsLimit.Of(1000, 0), memoryIsLimit.Of(12000, 0)
	outcome, err := Run(t.Context(), []Series{idle, busy}, []Strategy{Provisioned{}}, atOnce(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// 4 and 12 core intervals are asked for; 4 and 3 of them lie idle.
	if got := *outcome.Report().Strategies[0].Pooled.CPUSlack; got != 7.0/16 {
		t.Errorf("pooled slack %v, want 7/16", got)
	}
}
