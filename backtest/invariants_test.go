package backtest

import (
	"encoding/json"
	"math"
	"testing"
)

// FuzzReplay holds every strategy to what must be true whatever is replayed.
func FuzzReplay(f *testing.F) {
	f.Add([]byte{10, 200, 30, 40, 50, 60, 255, 0}, uint16(5), false)
	f.Add([]byte{0, 0, 0, 0}, uint16(2), true)
	f.Add([]byte{255, 1, 255, 1, 128, 128}, uint16(400), true)
	f.Fuzz(func(t *testing.T, shape []byte, stretch uint16, limited bool) {
		s := shaped(shape, int64(stretch))
		o := DefaultOptions()
		o.Observe, o.Least = s.span()/3, 1
		if limited {
			o.Limits.CPUPercent = 100
		}
		for _, strategy := range append(deployable(), HindsightMax{}, Clairvoyant{}) {
			r, err := Replay(&s, strategy, o)
			if err != nil {
				return // Too short.
			}
			checkTally(t, strategy, r.Tally)
			checkMetrics(t, strategy, r.Tally.Metrics())
		}
	})
}

// shaped is a series of the given shape: two bytes a level of CPU and memory,
// each held for a while, with a gap where both are 255.
func shaped(shape []byte, stretch int64) Series {
	s := Series{Name: "shaped"}
	at := int64(1_700_000_000)
	for i := 0; i+1 < len(shape) && len(s.Samples) < 300; i += 2 {
		if shape[i] == 255 && shape[i+1] == 255 {
			at += 86400
			continue
		}
		for range 1 + stretch%100 {
			s.Samples = append(s.Samples, Sample{
				Start: at, End: at + 300, Throttled: -1,
				CPUCores:    math.Exp2(float64(shape[i])/16) - 1,
				MemoryBytes: math.Exp2(float64(shape[i+1])/8) - 1,
			})
			at += 300
		}
	}
	return s
}

func checkTally(t *testing.T, strategy Strategy, tally Tally) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1) }
	// What is asked for is used or idle; what is used was asked for or short.
	if !near(tally.CPUAllocated+tally.CPUShort, tally.CPUUsed+tally.CPUIdle) {
		t.Errorf("%s: of %v core seconds, %v idle; of %v used, %v short", strategy.Name(), tally.CPUAllocated, tally.CPUIdle, tally.CPUUsed, tally.CPUShort)
	}
	if tally.OOMEpisodes > tally.OOMKills || tally.OOMKills > tally.Restarts {
		t.Errorf("%s: %d episodes, %d kills, %d restarts", strategy.Name(), tally.OOMEpisodes, tally.OOMKills, tally.Restarts)
	}
	if moves := tally.CPUIncreases + tally.CPUDecreases + tally.MemoryIncreases + tally.MemoryDecreases; moves < tally.Resizes || moves > 2*tally.Resizes {
		t.Errorf("%s: %d resizes of %d resources", strategy.Name(), tally.Resizes, moves)
	}
}

func checkMetrics(t *testing.T, strategy Strategy, m Metrics) {
	t.Helper()
	shares := map[string]bool{
		"cpuSlack": true, "cpuWorkShort": true, "cpuTimeShort": true, "memorySlack": true,
		"daysWithoutResize": true, "daysWithoutOOM": true, "dailyCPUSlack": true, "dailyMemorySlack": true,
	}
	for _, c := range metricColumns {
		v := c.value(&m)
		if v == nil || c.key == "cpuSaving" || c.key == "memorySaving" {
			continue
		}
		if !(*v >= 0) || math.IsInf(*v, 0) || shares[c.key] && *v > 1+1e-9 {
			t.Errorf("%s: %s is %v", strategy.Name(), c.key, *v)
		}
	}
	if _, err := json.Marshal(m); err != nil {
		t.Errorf("%s: %v", strategy.Name(), err)
	}
}
