package promserver

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Series is one time series as the server stores it.
type Series struct {
	// Labels hold the metric's name as __name__.
	Labels map[string]string
	// Times are in seconds since 1970, ascending; Values are what a scrape at
	// each of them read.
	Times  []int64
	Values []float64
}

// Scrapes says how readings come out of values that hold for intervals: value i
// for (Start + i·Step, Start + (i+1)·Step].
type Scrapes struct {
	Start time.Time
	Step  time.Duration
	// Every is how far apart the scrapes are; it divides Step.
	Every time.Duration
}

// Gauge returns a series whose readings are the value of the interval that they
// are in. NaN values are gaps.
func (s Scrapes) Gauge(labels map[string]string, values []float64) Series {
	out := Series{Labels: maps.Clone(labels)}
	s.each(values, func(at int64, value, _ float64) {
		out.Times, out.Values = append(out.Times, at), append(out.Values, value)
	})
	return out
}

// counterBase is where counters begin. One that begins at zero is taken by the
// server for one that began late, and its first rate comes out lower.
const counterBase = 1e6

// Counter returns a counter that rises in each interval by the value a second,
// evenly. It reads its base at Start. NaN values are gaps.
func (s Scrapes) Counter(labels map[string]string, perSecond []float64) Series {
	out := Series{Labels: maps.Clone(labels), Times: []int64{s.Start.Unix()}, Values: []float64{counterBase}}
	s.each(perSecond, func(at int64, _, integral float64) {
		out.Times, out.Values = append(out.Times, at), append(out.Values, counterBase+integral)
	})
	return out
}

// each calls do for every scrape with the interval's value and the integral of
// the values since the start.
func (s Scrapes) each(values []float64, do func(at int64, value, integral float64)) {
	every := int64(s.Every / time.Second)
	perStep := int64(s.Step / s.Every)
	at, integral := s.Start.Unix(), 0.0
	for _, v := range values {
		for range perStep {
			at += every
			if v == v { // NaN differs from itself.
				integral += v * float64(every)
				do(at, v, integral)
			}
		}
	}
}

// sortedLabels are a series' labels in the order that the server wants.
func sortedLabels(labels map[string]string) []label {
	sorted := make([]label, 0, len(labels))
	for name, value := range labels {
		sorted = append(sorted, label{name, value})
	}
	slices.SortFunc(sorted, func(a, b label) int { return cmp.Compare(a.name, b.name) })
	return sorted
}

type label struct{ name, value string }
