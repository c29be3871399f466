package backtest

import (
	"encoding/json"
	"io"
	"time"
)

// Version and kind of the JSON form.
const (
	APIVersion = "plimsoll.dev/v1"
	KindReport = "BacktestReport"
)

// Report is what a program reads of an outcome.
type Report struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Protocol   Protocol         `json:"protocol"`
	Strategies []StrategyReport `json:"strategies"`
	// Skipped are the series that were not scored.
	Skipped []Skipped `json:"skipped"`
}

// Protocol is how the replay was done.
type Protocol struct {
	ObserveSeconds     int64 `json:"observeSeconds"`
	DecideEverySeconds int64 `json:"decideEverySeconds"`
	ResizeDelaySeconds int64 `json:"resizeDelaySeconds"`
	RestartSeconds     int64 `json:"restartSeconds"`
	// CPULimitPercent and MemoryLimitPercent are of the request; 0 is no limit.
	CPULimitPercent    int64 `json:"cpuLimitPercent"`
	MemoryLimitPercent int64 `json:"memoryLimitPercent"`
}

// StrategyReport is one strategy's metrics, over all series and of each.
type StrategyReport struct {
	Name   string         `json:"name"`
	Pooled Metrics        `json:"pooled"`
	Series []SeriesReport `json:"series"`
}

// SeriesReport is the metrics of one series.
type SeriesReport struct {
	Name string `json:"name"`
	Metrics
}

// Report works the metrics out.
func (o *Outcome) Report() Report {
	r := Report{
		APIVersion: APIVersion, Kind: KindReport,
		Protocol:   o.Options.protocol(),
		Strategies: []StrategyReport{}, Skipped: o.Skipped,
	}
	if r.Skipped == nil {
		r.Skipped = []Skipped{}
	}
	for i, name := range o.Strategies {
		s := StrategyReport{Name: name, Pooled: Pool(o.Results[i]).Metrics(), Series: []SeriesReport{}}
		for _, result := range o.Results[i] {
			s.Series = append(s.Series, SeriesReport{Name: result.Series, Metrics: result.Tally.Metrics()})
		}
		r.Strategies = append(r.Strategies, s)
	}
	return r
}

// Pool adds up what results tally.
func Pool(results []Result) Tally {
	var sum Tally
	for i := range results {
		sum.add(&results[i].Tally)
	}
	return sum
}

func (o Options) protocol() Protocol {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	return Protocol{
		ObserveSeconds: seconds(o.Observe), DecideEverySeconds: seconds(o.Every),
		ResizeDelaySeconds: seconds(o.Delay), RestartSeconds: seconds(o.Down),
		CPULimitPercent: o.Limits.CPUPercent, MemoryLimitPercent: o.Limits.MemoryPercent,
	}
}

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
