package backtest

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// metricColumn is one metric in tables and CSV.
type metricColumn struct {
	key   string // as in JSON
	title string // empty is left out of tables
	wide  bool   // only in wide tables
	value func(*Metrics) *float64
	text  func(float64) string
}

func plain(value func(*Metrics) float64) func(*Metrics) *float64 {
	return func(m *Metrics) *float64 {
		v := value(m)
		return &v
	}
}

func percent(v float64) string  { return strconv.FormatFloat(100*v, 'f', 1, 64) + "%" }
func percent2(v float64) string { return strconv.FormatFloat(100*v, 'f', 2, 64) + "%" }
func number1(v float64) string  { return strconv.FormatFloat(v, 'f', 1, 64) }
func number2(v float64) string  { return strconv.FormatFloat(v, 'f', 2, 64) }

// metricColumns are all metrics, in the order in which they are shown.
var metricColumns = []metricColumn{
	{"cpuSlack", "CPU SLACK", false, func(m *Metrics) *float64 { return m.CPUSlack }, percent},
	{"cpuWorkShort", "CPU SHORT", false, func(m *Metrics) *float64 { return m.CPUWorkShort }, percent2},
	{"cpuTimeShort", "CPU TIME SHORT", true, func(m *Metrics) *float64 { return m.CPUTimeShort }, percent2},
	{"memorySlack", "MEMORY SLACK", false, func(m *Metrics) *float64 { return m.MemorySlack }, percent},
	{"oomPer100Days", "OOM/100 D", false, func(m *Metrics) *float64 { return m.OOMPer100Days }, number1},
	{"oomEpisodesPer100Days", "OOM EPISODES/100 D", true, func(m *Metrics) *float64 { return m.OOMEpisodesPer100Days }, number1},
	{"resizesPerDay", "RESIZES/D", false, plain(func(m *Metrics) float64 { return m.ResizesPerDay }), number2},
	{"reversalsPerDay", "REVERSALS/D", true, plain(func(m *Metrics) float64 { return m.ReversalsPerDay }), number2},
	{"rejectedPerDay", "REJECTED/D", true, plain(func(m *Metrics) float64 { return m.RejectedPerDay }), number2},
	{"restartsPer100Days", "RESTARTS/100 D", true, plain(func(m *Metrics) float64 { return m.RestartsPer100Days }), number1},
	{"minutesToSafeP50", "", false, func(m *Metrics) *float64 { return m.MinutesToSafeP50 }, number1},
	{"minutesToSafeP95", "SAFE IN (P95)", true, func(m *Metrics) *float64 { return m.MinutesToSafeP95 }, func(v float64) string { return number1(v) + " min" }},
	{"dailyCPUSlack", "", false, func(m *Metrics) *float64 { return m.DailyCPUSlack }, percent},
	{"dailyMemorySlack", "", false, func(m *Metrics) *float64 { return m.DailyMemorySlack }, percent},
	{"daysWithoutResize", "QUIET DAYS", true, func(m *Metrics) *float64 { return m.DaysWithoutResize }, percent},
	{"daysWithoutOOM", "", false, func(m *Metrics) *float64 { return m.DaysWithoutOOM }, percent},
	{"cpuCoreDays", "", false, func(m *Metrics) *float64 { return m.CPUCoreDays }, number2},
	{"memoryGiBDays", "", false, func(m *Metrics) *float64 { return m.MemoryGiBDays }, number2},
	{"cpuSaving", "CPU SAVED", false, func(m *Metrics) *float64 { return m.CPUSaving }, percent},
	{"memorySaving", "MEMORY SAVED", false, func(m *Metrics) *float64 { return m.MemorySaving }, percent},
	{"days", "DAYS", false, plain(func(m *Metrics) float64 { return m.Days }), number1},
}

// WriteTable writes the pooled metrics of all strategies, and those of each
// series for the strategies that are asked for by name. A wide table has more
// metrics.
func (r Report) WriteTable(w io.Writer, wide bool, detailed ...string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head(t, "STRATEGY", wide)
	for i := range r.Strategies {
		row(t, r.Strategies[i].Name, wide, &r.Strategies[i].Pooled)
	}
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if !slices.Contains(detailed, s.Name) {
			continue
		}
		fmt.Fprintf(t, "\n")
		if err := t.Flush(); err != nil {
			return err
		}
		head(t, s.Name+": WORKLOAD", wide)
		for j := range s.Series {
			row(t, s.Series[j].Name, wide, &s.Series[j].Metrics)
		}
	}
	return t.Flush()
}

// shown says whether a column is in a table.
func (c *metricColumn) shown(wide bool) bool { return c.title != "" && (wide || !c.wide) }

func head(w io.Writer, first string, wide bool) {
	fmt.Fprint(w, first)
	for _, c := range metricColumns {
		if c.shown(wide) {
			fmt.Fprint(w, "\t", c.title)
		}
	}
	fmt.Fprintln(w)
}

func row(w io.Writer, name string, wide bool, m *Metrics) {
	fmt.Fprint(w, name)
	for _, c := range metricColumns {
		if !c.shown(wide) {
			continue
		}
		text := "-"
		if v := c.value(m); v != nil {
			text = c.text(*v)
		}
		fmt.Fprint(w, "\t", text)
	}
	fmt.Fprintln(w)
}

// WriteCSV writes one row a strategy for what is pooled, with an empty series,
// and one for each series. What is not known is empty.
func (r Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	cells := []string{"strategy", "series"}
	for _, c := range metricColumns {
		cells = append(cells, c.key)
	}
	write := func(strategy, series string, m *Metrics) {
		cells = append(cells[:0], strategy, series)
		for _, c := range metricColumns {
			text := ""
			if v := c.value(m); v != nil {
				text = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			cells = append(cells, text)
		}
		_ = out.Write(cells) // The error is kept until Flush.
	}
	_ = out.Write(cells)
	for i := range r.Strategies {
		s := &r.Strategies[i]
		write(s.Name, "", &s.Pooled)
		for j := range s.Series {
			write(s.Name, s.Series[j].Name, &s.Series[j].Metrics)
		}
	}
	out.Flush()
	return out.Error()
}
