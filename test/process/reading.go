package process

import dto "github.com/prometheus/client_model/go"

// Reading is all metrics of a controller at one moment, by name.
type Reading map[string]*dto.MetricFamily

// Series are those of a metric that have these labels; with is names and values
// by turns.
func (r Reading) Series(name string, with ...string) []*dto.Metric {
	var all []*dto.Metric
	for _, m := range r[name].GetMetric() {
		values := map[string]string{}
		for _, l := range m.GetLabel() {
			values[l.GetName()] = l.GetValue()
		}
		matches := true
		for i := 0; i < len(with); i += 2 {
			matches = matches && values[with[i]] == with[i+1]
		}
		if matches {
			all = append(all, m)
		}
	}
	return all
}

// Sum adds up the values of Series, of a histogram what it has observed in all.
// It is 0 where there are none.
func (r Reading) Sum(name string, with ...string) float64 {
	sum := 0.0
	for _, m := range r.Series(name, with...) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return sum
}

// Cycles is how many cycles the controller has done, however they ended.
func (r Reading) Cycles() float64 { return r.Sum("plimsoll_cycles_total") }
