package backtest

import (
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	sets := loadTraces(t)
	for _, strategy := range []Strategy{NewVPA(), Profile("Balanced"), VPA{Margin: 0.15, Recreate: true}} {
		begin := time.Now()
		for set, series := range sets {
			var sum Tally
			n := 0
			for i := range series {
				r, err := Replay(&series[i], strategy, DefaultOptions())
				if err != nil {
					continue
				}
				n++
				sum.add(&r.Tally)
			}
			m := sum.Metrics()
			t.Logf("%s %s n=%d cpuSlack %.1f%% work %.2f%% time %.2f%% mem %.1f%% oom %.1f resizes %.2f days %.0f", strategy.Name(), set, n, 100*orZero(m.CPUSlack), 100*orZero(m.CPUWorkShort), 100*orZero(m.CPUTimeShort), 100*orZero(m.MemorySlack), orZero(m.OOMPer100Days), m.ResizesPerDay, m.Days)
		}
		t.Log(time.Since(begin))
	}
}
