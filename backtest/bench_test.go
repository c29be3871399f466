package backtest

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// monthOf is 30 days at five minutes of a load with a daily rhythm.
func monthOf(seed uint64) Series {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Series{Name: "generated-" + strconv.Itoa(int(seed))}
	level := math.Exp(r.NormFloat64())
	for i := range int64(30 * 288) {
		daily := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/288)
		start := 1_700_000_000/300*300 + i*300
		s.Samples = append(s.Samples, Sample{
			Start: start, End: start + 300, Throttled: -1,
			CPUCores:    level * daily * math.Exp(0.3*r.NormFloat64()),
			MemoryBytes: level * 1e9 * (1 + 0.1*daily + 0.02*r.NormFloat64()),
		})
	}
	return s
}

func BenchmarkReplay(b *testing.B) {
	s := monthOf(1)
	for _, strategy := range []Strategy{Profile("Balanced"), NewVPA()} {
		b.Run(strategy.Name(), func(b *testing.B) {
			b.ReportAllocs()
			decisions := 23 * 288
			for b.Loop() {
				if _, err := Replay(&s, strategy, DefaultOptions()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*decisions), "µs/decision")
		})
	}
}

// BenchmarkRun is the promise made for a month of a hundred workloads: under
// ten seconds on two cores.
func BenchmarkRun(b *testing.B) {
	var series []Series
	for seed := range uint64(100) {
		series = append(series, monthOf(seed))
	}
	for b.Loop() {
		if _, err := Run(b.Context(), series, []Strategy{Profile("Balanced"), NewVPA(), Provisioned{}}, DefaultOptions(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
