package history

import (
	"fmt"

	"gonum.org/v1/gonum/stat"
)

// Distribution is a weighted support: distinct values in ascending order, and
// how often each was seen.
type Distribution struct {
	Values, Weights []float64
	// Total is the sum of the weights.
	Total float64
	// Peak is the largest value; 0 where there is none.
	Peak float64
}

// Empty means that there is no sample.
func (d Distribution) Empty() bool { return d.Total == 0 }

// Quantile is the smallest value such that it and the smaller ones hold at
// least p of the weight (gonum's stat.Empirical). No samples give ErrNoData;
// p outside (0, 1] gives an error.
func (d Distribution) Quantile(p float64) (float64, error) {
	if d.Empty() {
		return 0, ErrNoData
	}
	if !(p > 0 && p <= 1) {
		return 0, fmt.Errorf("quantile %v is not in (0, 1]", p)
	}
	return stat.Quantile(p, stat.Empirical, d.Values, d.Weights), nil
}

// LoadAdjusted weighs each sample by its own size, so that a quantile says
// under which level p of the load was, instead of p of the time (Rzadca et
// al.: Autopilot, EuroSys 2020). Where all samples are zero, nothing changes.
func (d Distribution) LoadAdjusted() Distribution {
	load := Distribution{Values: d.Values, Weights: make([]float64, len(d.Weights)), Peak: d.Peak}
	for i, v := range d.Values {
		load.Weights[i] = d.Weights[i] * v
		load.Total += load.Weights[i]
	}
	if load.Total == 0 {
		return d
	}
	return load
}

// Above is how much weight lies above a value.
func (d Distribution) Above(value float64) float64 {
	above := 0.0
	for i := len(d.Values) - 1; i >= 0 && d.Values[i] > value; i-- {
		above += d.Weights[i]
	}
	return above
}
