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
	var charts []*chart.Chart
	for i := range e.Containers {
		for _, r := range sizing.Resources {
			if t := e.Containers[i].For(r); t != nil && !math.IsNaN(t.Max()) {
				charts = append(charts, e.Containers[i].plot(r, t))
			}
		}
	}
	if len(charts) == 0 {
		return fmt.Errorf("%w of %s in the window: there is nothing to plot", history.ErrNoData, e.WorkloadKey)
	}
	_, err := io.WriteString(w, chart.Stack(charts...))
	return err
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

const killColour, throttledColour = "#c00000", "#e69f00"

func (c *Explained) plot(r corev1.ResourceName, t *Timeline) *chart.Chart {
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
		Title: c.Item.Container + ": " + u.name, Width: 900, Height: 260,
		XScale: chart.Days(t.From, t.To),
		YScale: chart.Linear(most/u.divisor, func(v float64) string { return fmt.Sprintf("%.4g", v) }),
		Legend: []chart.Entry{{Name: "used (peak)", Colour: "#777"}},
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

// at is the middle of a column.
func (t *Timeline) at(column int) float64 {
	return float64(t.From) + (float64(column)+0.5)*float64(t.To-t.From)/float64(len(t.Peaks))
}

// draw fills what was used, with gaps where nothing is known.
func (t *Timeline) draw(p *chart.Chart, u unit) {
	var xs, ys []float64
	for k, v := range t.Peaks {
		if math.IsNaN(v) {
			p.Area(xs, ys, "#9a9a9a")
			xs, ys = nil, nil
			continue
		}
		xs, ys = append(xs, t.at(k)), append(ys, v/u.divisor)
	}
	p.Area(xs, ys, "#9a9a9a")
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
		p.Dot(float64(k.At.Unix()), y/u.divisor, killColour, "", minute(k.At)+" out of memory: "+k.Pod, 4)
	}
	p.Legend = append(p.Legend, chart.Entry{Name: "out of memory", Colour: killColour})
}

// plotThrottling marks usage that a CPU limit held down.
func (c *Explained) plotThrottling(p *chart.Chart, used *Timeline, u unit) {
	if c.Throttled == nil || !(c.Throttled.Max() >= history.LeastThrottled) {
		return
	}
	for k, share := range c.Throttled.Peaks {
		if share >= history.LeastThrottled && !math.IsNaN(used.Peaks[k]) {
			p.Dot(used.at(k), used.Peaks[k]/u.divisor, throttledColour, "", fmt.Sprintf("throttled in %.0f%% of periods", 100*share), 2)
		}
	}
	p.Legend = append(p.Legend, chart.Entry{Name: "throttled", Colour: throttledColour})
}
