package report

import (
	"fmt"
	"io"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report/chart"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// WritePlot writes one SVG document: for each container and resource of which
// samples are there, usage against request, limit and target, with the
// out-of-memory kills and the time in which a CPU limit held usage down.
func (e *Explanation) WritePlot(w io.Writer) error {
	charts, err := e.charts()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, chart.Stack(charts...))
	return err
}

// WritePNG writes the same as an image.
func (e *Explanation) WritePNG(w io.Writer) error {
	charts, err := e.charts()
	if err != nil {
		return err
	}
	return chart.WritePNG(w, charts...)
}

func (e *Explanation) charts() ([]*chart.Chart, error) {
	var charts []*chart.Chart
	for i := range e.Containers {
		charts = append(charts, e.Containers[i].charts(plotSize{900, 260})...)
	}
	if len(charts) == 0 {
		return nil, fmt.Errorf("%w of %s in the window: there is nothing to plot", history.ErrNoData, e.WorkloadKey)
	}
	return charts, nil
}

// plotSize is the width and height of a plot in pixels.
type plotSize struct{ width, height float64 }

// charts are the plots of one container, none of a resource without samples.
func (c *Explained) charts(size plotSize) []*chart.Chart {
	var charts []*chart.Chart
	for _, r := range sizing.Resources {
		if t := c.For(r); t != nil && !math.IsNaN(t.Max()) {
			charts = append(charts, c.plot(r, t, size))
		}
	}
	return charts
}

// unit is what a plot's values are divided by, and what it is called.
type unit struct {
	divisor float64
	name    string
}

func unitOf(r corev1.ResourceName, most float64) unit {
	switch {
	case r == corev1.ResourceCPU:
		return unit{1, "CPU, cores"}
	case most < 1<<30:
		return unit{1 << 20, "memory, MiB"}
	}
	return unit{1 << 30, "memory, GiB"}
}

// level is a horizontal line of a plot.
type level struct {
	chart.Entry
	value float64
}

// levels are what is asked for now and what should be. Those of one value are
// one line, since one would hide the other.
func (i *Item) levels(r corev1.ResourceName) []level {
	var all []level
	for _, l := range []struct {
		name   string
		amount *string
		colour int
	}{
		{"request", *i.Current.Requests.For(r), 0},
		{"limit", *i.Current.Limits.For(r), 1},
		{"target", *i.Target.Requests.For(r), 2},
		{"target limit", *i.Target.Limits.For(r), 3},
	} {
		v, ok := number(l.amount)
		if !ok {
			continue
		}
		merged := false
		for k := range all {
			if all[k].value == v {
				all[k].Name, merged = all[k].Name+" = "+l.name, true
			}
		}
		if !merged {
			all = append(all, level{chart.Entry{Name: l.name, Colour: chart.Colour(l.colour)}, v})
		}
	}
	return all
}

func (c *Explained) plot(r corev1.ResourceName, t *Timeline, size plotSize) *chart.Chart {
	levels := c.Item.levels(r)
	most := t.Max()
	for _, l := range levels {
		most = max(most, l.value)
	}
	if r == corev1.ResourceMemory {
		for _, k := range c.Kills {
			most = max(most, k.LimitBytes, k.UsedBytes)
		}
	}
	u := unitOf(r, most)
	p := &chart.Chart{
		Title: c.Item.Container + ": " + u.name, Width: size.width, Height: size.height,
		XScale: chart.Days(t.From, t.To),
		YScale: chart.Linear(most/u.divisor, func(v float64) string { return fmt.Sprintf("%.4g", v) }),
		Legend: []chart.Entry{{Name: "used (peak)", Colour: chart.Used}},
	}
	t.draw(p, u)
	for _, l := range levels {
		y := l.value / u.divisor
		p.Line([]float64{float64(t.From), float64(t.To)}, []float64{y, y}, l.Colour, false)
		p.Legend = append(p.Legend, l.Entry)
	}
	if r == corev1.ResourceMemory {
		c.plotKills(p, u)
	} else {
		c.plotThrottling(p, t, u)
	}
	return p
}

// edge is where a column begins, and the one before ends.
func (t *Timeline) edge(column int) float64 {
	return float64(t.From) + float64(column)*float64(t.To-t.From)/float64(len(t.Peaks))
}

// at is the middle of a column.
func (t *Timeline) at(column int) float64 { return (t.edge(column) + t.edge(column+1)) / 2 }

// runs calls do with each stretch of columns that are wanted.
func (t *Timeline) runs(wanted func(column int) bool, do func(from, to int)) {
	for k := 0; k < len(t.Peaks); k++ {
		from := k
		for k < len(t.Peaks) && wanted(k) {
			k++
		}
		if k > from {
			do(from, k)
		}
	}
}

// fill fills what lies under a stretch of columns, from edge to edge.
func (t *Timeline) fill(p *chart.Chart, u unit, from, to int, colour, tip string) {
	xs, ys := []float64{t.edge(from)}, []float64{t.Peaks[from] / u.divisor}
	for k := from; k < to; k++ {
		xs, ys = append(xs, t.at(k)), append(ys, t.Peaks[k]/u.divisor)
	}
	p.Area(append(xs, t.edge(to)), append(ys, t.Peaks[to-1]/u.divisor), colour, tip)
}

// draw fills what was used, with gaps where nothing is known.
func (t *Timeline) draw(p *chart.Chart, u unit) {
	known := func(k int) bool { return !math.IsNaN(t.Peaks[k]) }
	t.runs(known, func(from, to int) { t.fill(p, u, from, to, chart.Used, "") })
}

// plotKills marks each kill at the limit that it hit, or at what was used where
// the limit is unknown.
func (c *Explained) plotKills(p *chart.Chart, u unit) {
	if len(c.Kills) == 0 {
		return
	}
	for _, k := range c.Kills {
		y := k.LimitBytes
		if y == 0 {
			y = k.UsedBytes
		}
		p.Dot(float64(k.At.Unix()), y/u.divisor, chart.Killed, "", minute(k.At)+" out of memory: "+k.Pod, 4)
	}
	p.Legend = append(p.Legend, chart.Entry{Name: "out of memory", Colour: chart.Killed})
}

// plotThrottling marks usage that a CPU limit held down.
func (c *Explained) plotThrottling(p *chart.Chart, used *Timeline, u unit) {
	if c.Throttled == nil || !(c.Throttled.Max() >= history.LeastThrottled) {
		return
	}
	throttled := func(k int) bool { return c.Throttled.Peaks[k] >= history.LeastThrottled && !math.IsNaN(used.Peaks[k]) }
	used.runs(throttled, func(from, to int) {
		tip := fmt.Sprintf("throttled in up to %.0f%% of periods", 100*maxOf(c.Throttled.Peaks[from:to]))
		used.fill(p, u, from, to, chart.Throttled, tip)
	})
	p.Legend = append(p.Legend, chart.Entry{Name: "throttled", Colour: chart.Throttled})
}
