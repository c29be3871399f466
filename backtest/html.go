package backtest

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/plimsoll-dev/plimsoll/report/chart"
)

// WriteHTML writes one file that needs no other: the pooled figures, slack
// against risk, and for each workload what was used and what the tested
// strategies, and today's requests, asked for. The outcome must have timelines.
func (o *Outcome) WriteHTML(w io.Writer, tested []string) error {
	r := o.Report()
	var table bytes.Buffer
	if err := r.WriteTable(&table, true); err != nil {
		return err
	}
	page := htmlPage{
		Table:    table.String(),
		Observe:  formatSpan(o.Options.Observe),
		Skipped:  r.Skipped,
		Pareto:   []template.HTML{template.HTML(o.pareto(RiskCPU)), template.HTML(o.pareto(RiskMemory))},
		Subjects: o.subjects(tested),
	}
	return htmlTemplate.Execute(w, page)
}

type htmlPage struct {
	Table    string
	Observe  string
	Skipped  []Skipped
	Pareto   []template.HTML
	Subjects []htmlSubject
}

// htmlSubject is one workload.
type htmlSubject struct {
	Name   string
	Charts []template.HTML
}

var htmlTemplate = template.Must(template.New("backtest").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Plimsoll backtest</title>
<style>
body{font-family:sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
pre{overflow-x:auto;font-size:12px;line-height:1.4;background:#f6f6f6;padding:1em}
svg{width:100%;height:auto;max-width:820px;display:block;margin:.5em 0}
h2{margin-top:2em}summary{cursor:pointer;font-weight:600;margin:.6em 0}
</style></head><body>
<h1>Plimsoll backtest</h1>
<p>The first {{.Observe}} of each workload are observed, and what follows is scored.
CPU slack is what was asked for and not used; work short is use above the request.
Every strategy but <code>hindsight-max</code> and <code>clairvoyant</code> knows only what had happened by then.</p>
<pre>{{.Table}}</pre>
<h2>Slack against risk</h2>
<p>Lower and further left is better.</p>
{{range .Pareto}}{{.}}{{end}}
<h2>Workloads</h2>
{{range .Subjects}}<details><summary>{{.Name}}</summary>
{{range .Charts}}{{.}}{{end}}</details>
{{end}}
{{if .Skipped}}<h2>Not scored</h2><ul>{{range .Skipped}}<li>{{.Name}}: it {{.Why}}</li>{{end}}</ul>{{end}}
</body></html>
`))

func (o *Outcome) pareto(risk Risk) string {
	var curves []Curve
	for i, name := range o.Strategies {
		curves = append(curves, Curve{name, []CurvePoint{{Metrics: Pool(o.Results[i]).Metrics()}}})
	}
	title := "CPU, all workloads"
	if risk == RiskMemory {
		title = "Memory, all workloads"
	}
	return ParetoSVG(title, curves, risk)
}

// subjects draws a chart a workload and resource.
func (o *Outcome) subjects(tested []string) []htmlSubject {
	shown := append(slices.Clone(tested), "provisioned", "vpa")
	var all []htmlSubject
	if len(o.Results) == 0 {
		return nil
	}
	for j := range o.Results[0] {
		s := htmlSubject{Name: o.Results[0][j].Series}
		for _, r := range []timelineOf{timelineCPU, timelineMemory} {
			if svg := o.timeline(j, shown, r); svg != "" {
				s.Charts = append(s.Charts, template.HTML(svg))
			}
		}
		all = append(all, s)
	}
	return all
}

// timelineOf is what differs between the timelines of CPU and memory.
type timelineOf struct {
	title         string
	used, request func(*Point) float64
	kills         bool
}

var (
	timelineCPU = timelineOf{
		"CPU, cores", func(p *Point) float64 { return p.CPUUsed }, func(p *Point) float64 { return p.CPURequest }, false,
	}
	timelineMemory = timelineOf{
		"memory, GiB", func(p *Point) float64 { return p.MemoryUsed / gibi }, func(p *Point) float64 { return p.MemoryRequest / gibi }, true,
	}
)

// timelineColumns is how many points a line has at most: one for each two
// pixels or so.
const timelineColumns = 420

// grid turns the instants of a series into columns of a timeline.
type grid struct {
	first, last int64
	columns     int
}

func (g grid) column(at int64) int {
	return int((at - g.first) * int64(g.columns-1) / max(g.last-g.first, 1))
}

// at is the instants of the columns.
func (g grid) at() []float64 {
	xs := make([]float64, g.columns)
	for k := range xs {
		xs[k] = float64(g.first) + float64(k)/float64(max(g.columns-1, 1))*float64(g.last-g.first)
	}
	return xs
}

// used is the peak in each column; ok is false where nothing was recorded.
func (g grid) used(points []Point, of timelineOf) (peaks []float64, ok bool) {
	peaks = make([]float64, g.columns)
	for i := range points {
		v := of.used(&points[i])
		ok = ok || v >= 0
		k := g.column(points[i].End)
		peaks[k] = max(peaks[k], v)
	}
	return peaks, ok
}

// request is what was asked for last in each column, or in the one before where
// it has no point.
func (g grid) request(points []Point, of timelineOf) []float64 {
	line := make([]float64, g.columns)
	for i := range points {
		line[g.column(points[i].End)] = of.request(&points[i])
	}
	for k := 1; k < len(line); k++ {
		if line[k] == 0 {
			line[k] = line[k-1]
		}
	}
	return line
}

// timeline draws what was used in one series, and what strategies asked for;
// empty where the resource was not recorded.
func (o *Outcome) timeline(series int, strategies []string, of timelineOf) string {
	points := o.Results[0][series].Timeline
	if len(points) == 0 {
		return ""
	}
	g := grid{points[0].End, points[len(points)-1].End, min(timelineColumns, len(points))}
	used, ok := g.used(points, of)
	if !ok {
		return ""
	}
	most, lines := slices.Max(used), make([][]float64, len(o.Strategies))
	for i, name := range o.Strategies {
		if slices.Contains(strategies, name) {
			lines[i] = g.request(o.Results[i][series].Timeline, of)
			most = max(most, slices.Max(lines[i]))
		}
	}
	c := chart.Chart{Title: of.title, Width: 820, Height: 240, XScale: chart.Days(g.first, g.last), YScale: chart.Linear(most, plainTick)}
	c.Area(g.at(), used, "#9a9a9a", "")
	c.Legend = append(c.Legend, chart.Entry{Name: "used (peak)", Colour: "#777"})
	for i, line := range lines {
		if line == nil {
			continue
		}
		c.Line(g.at(), line, chart.Colour(i), true)
		c.Legend = append(c.Legend, chart.Entry{Name: o.Strategies[i], Colour: chart.Colour(i)})
		if of.kills {
			o.kills(&c, i, series, of)
		}
	}
	return c.SVG()
}

func plainTick(v float64) string { return fmt.Sprintf("%.3g", v) }

// kills marks out-of-memory kills.
func (o *Outcome) kills(c *chart.Chart, strategy, series int, of timelineOf) {
	for i := range o.Results[strategy][series].Timeline {
		if p := &o.Results[strategy][series].Timeline[i]; p.Killed {
			c.Dot(float64(p.End), of.request(p), chart.Colour(strategy), "", o.Strategies[strategy]+": out of memory", 3)
		}
	}
}
