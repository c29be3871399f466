package backtest

import (
	"hash/fnv"
	"slices"
)

// Interval is where a metric lies with a certainty of 95%, as far as the series
// speak for others like them.
type Interval struct{ Low, High float64 }

// bootstrapDraws is enough for the second digit of an interval's ends.
const bootstrapDraws = 1000

// Bootstrap is the interval of pooled metrics, each over samples of the series
// drawn with replacement. The draws are the same in every run. Fewer than three
// series give none.
func Bootstrap(results []Result, metrics ...func(*Metrics) *float64) []*Interval {
	intervals := make([]*Interval, len(metrics))
	if len(results) < 3 {
		return intervals
	}
	tallies := make([]Tally, len(results))
	for i := range results {
		tallies[i] = results[i].Tally
		tallies[i].Days, tallies[i].Shortages = nil, nil // Of no use to sums, and long.
	}
	drawn := make([][]float64, len(metrics))
	random := splitMix(1)
	for range bootstrapDraws {
		var sum Tally
		for range tallies {
			sum.add(&tallies[random.below(len(tallies))])
		}
		m := sum.Metrics()
		for i, metric := range metrics {
			if v := metric(&m); v != nil {
				drawn[i] = append(drawn[i], *v)
			}
		}
	}
	for i, values := range drawn {
		if len(values) > 0 {
			slices.Sort(values)
			intervals[i] = &Interval{quantileSorted(values, 0.025), quantileSorted(values, 0.975)}
		}
	}
	return intervals
}

// splitMix is a small generator of random numbers (Steele, Lea, Flood 2014),
// with which a report is the same each time.
type splitMix uint64

func (s *splitMix) below(n int) int {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

// Tuning says whether a series belongs to the half on which parameters may be
// tuned: where the hash (FNV-1a, 32 bits) of its name, without namespace, lies
// in the lower half of its range. The other half is for reports. The last bit
// would not do: it is no more than the parity of the letters.
func Tuning(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // Never fails.
	return h.Sum32() < 1<<31
}
