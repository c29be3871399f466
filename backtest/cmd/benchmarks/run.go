package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
	"github.com/plimsoll-dev/plimsoll/history"
)

// part is the series of a set that are reported together.
type part struct {
	set   *set
	title string
	// tableOnly leaves plots and marks to the part that they are about.
	tableOnly bool
	series    []backtest.Series
}

// run replays all parts and writes what came of it.
func run(ctx context.Context, traces, out string) error {
	plots := filepath.Join(out, "benchmarks")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	var doc bytes.Buffer
	doc.WriteString(introduction)
	for i := range sets {
		s := &sets[i]
		parts, err := s.parts(ctx, traces)
		if err != nil {
			return err
		}
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n", s.title, strings.TrimSpace(s.caveats))
		for _, p := range parts {
			if err := p.report(ctx, &doc, plots); err != nil {
				return fmt.Errorf("%s, %s: %w", s.title, p.title, err)
			}
		}
	}
	doc.WriteString(limitations)
	return os.WriteFile(filepath.Join(out, "benchmarks.md"), doc.Bytes(), 0o644)
}

// parts reads a set, and splits it where parameters may be tuned on it.
func (s *set) parts(ctx context.Context, traces string) ([]part, error) {
	all, _, err := recorded.Read(ctx, traces, func(key history.WorkloadKey) bool { return key.Namespace == s.folder })
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no series of the set %s", traces, s.folder)
	}
	whole := part{set: s, title: "all series, none of them used for tuning"}
	report := part{set: s, title: "the half that was not used for tuning"}
	tune := part{set: s, title: "the half that may be used for tuning", tableOnly: true}
	for _, one := range all {
		switch {
		case !s.tunable:
			whole.series = append(whole.series, one.Series)
		case backtest.Tuning(one.Workload.Name):
			tune.series = append(tune.series, one.Series)
		default:
			report.series = append(report.series, one.Series)
		}
	}
	if s.replicas {
		joined := part{set: s, title: "the tasks of a job as replicas of one workload", tableOnly: true}
		for _, one := range recorded.AsReplicas(all) {
			joined.series = append(joined.series, one.Series)
		}
		return []part{whole, joined}, nil
	}
	if !s.tunable {
		return []part{whole}, nil
	}
	return []part{report, tune}, nil
}

// report replays a part, and writes its table and its plots.
func (p *part) report(ctx context.Context, doc *bytes.Buffer, plots string) error {
	outcome, err := backtest.Run(ctx, p.series, strategies, backtest.DefaultOptions(), progress(p.set.folder))
	if err != nil {
		return err
	}
	scored := len(outcome.Results[0])
	fmt.Fprintf(doc, "\n### %s: %s\n\n", p.set.title, p.title)
	fmt.Fprintf(doc, "%d of %d series are long enough to score", scored, len(p.series))
	fmt.Fprintf(doc, ", %.0f container-days.\n\n", backtest.Pool(outcome.Results[0]).Metrics().Days)
	writeTable(doc, outcome)
	if p.tableOnly {
		return nil
	}
	swept, err := p.sweep(ctx)
	if err != nil {
		return err
	}
	for _, risk := range []struct {
		of   backtest.Risk
		name string
	}{{backtest.RiskCPU, "cpu"}, {backtest.RiskMemory, "memory"}} {
		svg := backtest.ParetoSVG(p.set.title+", "+risk.name+": slack against risk, by margin", slices.Concat(curves(outcome), swept), risk.of)
		if svg == "" {
			continue
		}
		name := p.set.folder + "-" + risk.name + ".svg"
		if err := os.WriteFile(filepath.Join(plots, name), []byte(svg), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(doc, "\n![Slack against risk, %s](benchmarks/%s)\n", risk.name, name)
	}
	writeEqualRisk(doc, swept)
	writeMarks(doc, p.set.marks, compare(outcome, swept))
	return p.robustness(ctx, doc)
}

// robustness replays the default profile and the incumbent under other
// protocols, so that nothing rests on the one that was chosen.
func (p *part) robustness(ctx context.Context, doc *bytes.Buffer) error {
	doc.WriteString("\n| under another protocol | CPU slack % | CPU work short % | memory slack % | OOM / 100 d | resizes / d |\n|---|---|---|---|---|---|\n")
	for _, v := range variants {
		o := backtest.DefaultOptions()
		v.change(&o)
		outcome, err := backtest.Run(ctx, p.series, strategiesVaried, o, progress(p.set.folder+", "+v.name))
		if err != nil {
			return err
		}
		for i, name := range outcome.Strategies {
			m := backtest.Pool(outcome.Results[i]).Metrics()
			if v.memoryOnly && m.MemorySlack == nil {
				continue
			}
			fmt.Fprintf(doc, "| %s: %s | %s | %s | %s | %s | %.2f |\n", name, v.name,
				cell(m.CPUSlack, "%.1f", 100), cell(m.CPUWorkShort, "%.2f", 100), cell(m.MemorySlack, "%.1f", 100), cell(m.OOMPer100Days, "%.1f", 1), m.ResizesPerDay)
		}
	}
	return nil
}

// cell is a figure, or a dash where there is none.
func cell(v *float64, format string, scale float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v*scale)
}

// curves are the strategies that are not swept, a point each.
func curves(outcome *backtest.Outcome) []backtest.Curve {
	var all []backtest.Curve
	for i, name := range outcome.Strategies {
		if slices.Contains(plotted, name) {
			m := backtest.Pool(outcome.Results[i]).Metrics()
			all = append(all, backtest.Curve{Name: name, Points: []backtest.CurvePoint{{Metrics: m}}})
		}
	}
	return all
}

// sweep replays the strategies that have a margin at several.
func (p *part) sweep(ctx context.Context) ([]backtest.Curve, error) {
	var all []backtest.Curve
	for _, s := range swept {
		var strategies []backtest.Strategy
		margins := s.margins
		if !slices.Contains(margins, s.usual) {
			margins = append(slices.Clone(margins), s.usual)
			slices.Sort(margins)
		}
		for _, margin := range margins {
			strategies = append(strategies, s.at(margin))
		}
		outcome, err := backtest.Run(ctx, p.series, strategies, backtest.DefaultOptions(), progress(p.set.folder+" "+s.name))
		if err != nil {
			return nil, err
		}
		curve := backtest.Curve{Name: s.name}
		for i, margin := range margins {
			label := fmt.Sprintf("with %d%%", margin)
			if margin == s.usual {
				label = ""
			}
			curve.Points = append(curve.Points, backtest.CurvePoint{Label: label, Metrics: backtest.Pool(outcome.Results[i]).Metrics()})
		}
		all = append(all, curve)
	}
	return all, nil
}

// progress shows how far a run is.
func progress(what string) func(done, total int) {
	return func(done, total int) {
		if done == total {
			fmt.Fprintf(os.Stderr, "%s: %d replays\n", what, total)
		}
	}
}

// writeTable writes the pooled figures of all strategies with their intervals.
func writeTable(doc *bytes.Buffer, outcome *backtest.Outcome) {
	type column struct {
		title  string
		metric func(*backtest.Metrics) *float64
		format string
		scale  float64
	}
	columns := []column{
		{"CPU slack %", func(m *backtest.Metrics) *float64 { return m.CPUSlack }, "%.1f", 100},
		{"CPU work short %", func(m *backtest.Metrics) *float64 { return m.CPUWorkShort }, "%.2f", 100},
		{"CPU time short %", func(m *backtest.Metrics) *float64 { return m.CPUTimeShort }, "%.2f", 100},
		{"memory slack %", func(m *backtest.Metrics) *float64 { return m.MemorySlack }, "%.1f", 100},
		{"OOM / 100 d", func(m *backtest.Metrics) *float64 { return m.OOMPer100Days }, "%.1f", 1},
		{"resizes / d", func(m *backtest.Metrics) *float64 { return &m.ResizesPerDay }, "%.2f", 1},
	}
	doc.WriteString("| strategy |")
	var metrics []func(*backtest.Metrics) *float64
	for _, c := range columns {
		fmt.Fprintf(doc, " %s |", c.title)
		metrics = append(metrics, c.metric)
	}
	doc.WriteString(" median workload's resizes / d | reversals / d |\n|---|" + strings.Repeat("---|", len(columns)+2) + "\n")
	for i, name := range outcome.Strategies {
		m := backtest.Pool(outcome.Results[i]).Metrics()
		intervals := backtest.Bootstrap(outcome.Results[i], metrics...)
		fmt.Fprintf(doc, "| %s |", name)
		for k, c := range columns {
			doc.WriteString(" " + cell(c.metric(&m), c.format, c.scale))
			if iv := intervals[k]; iv != nil {
				fmt.Fprintf(doc, " <sub>"+c.format+"–"+c.format+"</sub>", iv.Low*c.scale, iv.High*c.scale)
			}
			doc.WriteString(" |")
		}
		fmt.Fprintf(doc, " %.2f | %.2f |\n", medianResizes(outcome.Results[i]), m.ReversalsPerDay)
	}
}

func medianResizes(results []backtest.Result) float64 {
	var all []float64
	for i := range results {
		all = append(all, results[i].Tally.Metrics().ResizesPerDay)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
