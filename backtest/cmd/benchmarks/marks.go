package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-dev/plimsoll/backtest"
)

// compared is what marks are about: the default profile, the incumbent, and the
// default profile at other margins.
type compared struct {
	ours, vpa     backtest.Metrics
	medianResizes float64
	curve         backtest.Curve
}

// mark is a figure to reach: what it is, the figure, and the most that it may
// be; unit is that of both.
type mark struct {
	what string
	of   func(c *compared) (got, most float64)
	text func(float64) string
}

func percentText(v float64) string { return fmt.Sprintf("%.2f%%", 100*v) }
func numberText(v float64) string  { return fmt.Sprintf("%.2f", v) }

// figure is a metric, or not a number where there is none.
func figure(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// fewResizes is a mark that all sets have.
var fewResizes = mark{"resizes a day of the median workload", func(c *compared) (float64, float64) { return c.medianResizes, 1 }, numberText}

func allResizes(most float64) mark {
	return mark{"resizes a day", func(c *compared) (float64, float64) { return c.ours.ResizesPerDay, most }, numberText}
}

func slackAtMost(most float64) mark {
	return mark{"CPU slack", func(c *compared) (float64, float64) { return figure(c.ours.CPUSlack), most }, percentText}
}

func shortAtMost(share float64) mark {
	return mark{fmt.Sprintf("CPU work short, %.2g of VPA's", share), func(c *compared) (float64, float64) {
		return figure(c.ours.CPUWorkShort), share * figure(c.vpa.CPUWorkShort)
	}, percentText}
}

// shortAt is work short where the default profile, at another margin, has VPA's
// slack and some points more.
func shortAt(points, share float64) mark {
	what := fmt.Sprintf("CPU work short at VPA's slack, %.2g of VPA's", share)
	if points > 0 {
		what = fmt.Sprintf("CPU work short at VPA's slack and %.0f points, %.2g of VPA's", 100*points, share)
	}
	return mark{what, func(c *compared) (float64, float64) {
		return shortOf(c.curve, figure(c.vpa.CPUSlack)+points), share * figure(c.vpa.CPUWorkShort)
	}, percentText}
}

// shortOf reads a curve at a slack, by interpolation of the logarithm; not a
// number where the curve does not reach so low, and its last point where it
// does not reach so far.
func shortOf(curve backtest.Curve, slack float64) float64 {
	type point struct{ slack, short float64 }
	var points []point
	for _, p := range curve.Points {
		points = append(points, point{figure(p.Metrics.CPUSlack), max(figure(p.Metrics.CPUWorkShort), 1e-6)})
	}
	slices.SortFunc(points, func(a, b point) int {
		if a.slack < b.slack {
			return -1
		}
		return 1
	})
	if len(points) == 0 || slack < points[0].slack {
		return math.NaN()
	}
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; slack <= b.slack {
			at := (slack - a.slack) / max(b.slack-a.slack, 1e-9)
			return math.Exp(math.Log(a.short)*(1-at) + math.Log(b.short)*at)
		}
	}
	return points[len(points)-1].short
}

func memorySlackAtMost(points float64) mark {
	what := "memory slack, VPA's"
	if points > 0 {
		what = fmt.Sprintf("memory slack, VPA's and %.0f points", 100*points)
	}
	return mark{what, func(c *compared) (float64, float64) {
		return figure(c.ours.MemorySlack), figure(c.vpa.MemorySlack) + points
	}, percentText}
}

func killsAtMost(part float64) mark {
	return mark{fmt.Sprintf("OOM in 100 days, a part in %.0f of VPA's", part), func(c *compared) (float64, float64) {
		return figure(c.ours.OOMPer100Days), figure(c.vpa.OOMPer100Days) / part
	}, numberText}
}

// writeMarks says which marks of a set are reached.
func writeMarks(doc *bytes.Buffer, marks []mark, c *compared) {
	doc.WriteString("\n| mark for Balanced | at most | reached |\n|---|---|---|\n")
	for _, m := range marks {
		got, most := m.of(c)
		verdict := "no: "
		switch {
		case got <= most:
			verdict = "yes: "
		case math.IsNaN(got):
			fmt.Fprintf(doc, "| %s | %s | no: no margin comes to that slack |\n", m.what, m.text(most))
			continue
		}
		fmt.Fprintf(doc, "| %s | %s | %s%s |\n", m.what, m.text(most), verdict, m.text(got))
	}
}

// compare takes what marks need from the table's outcome and the sweep.
func compare(outcome *backtest.Outcome, swept []backtest.Curve) *compared {
	var c compared
	for i, name := range outcome.Strategies {
		m := backtest.Pool(outcome.Results[i]).Metrics()
		switch name {
		case "Balanced":
			c.ours, c.medianResizes = m, medianResizes(outcome.Results[i])
		case "vpa":
			c.vpa = m
		}
	}
	for _, curve := range swept {
		if curve.Name == "Balanced" {
			c.curve = curve
		}
	}
	return &c
}
