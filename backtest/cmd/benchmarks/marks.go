package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/backtest"
)

// compared is what marks are about: the default profile, the incumbent, and the
// default profile at other margins, with Cost.
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

func percentText(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }
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

// shortAt is work short where the default profile at another margin, or between
// it and Cost, has VPA's slack and some points more.
func shortAt(points, share float64) mark {
	what := fmt.Sprintf("CPU work short at VPA's slack, %.2g of VPA's", share)
	if points > 0 {
		what = fmt.Sprintf("CPU work short at VPA's slack and %.0f points, %.2g of VPA's", 100*points, share)
	}
	return mark{what, func(c *compared) (float64, float64) {
		return shortOf(c.curve, figure(c.vpa.CPUSlack)+points), share * figure(c.vpa.CPUWorkShort)
	}, percentText}
}

// shortOf reads work short off a curve at a slack; not a number where the curve
// does not reach so low, and its last point where it does not reach so far.
func shortOf(curve backtest.Curve, slack float64) float64 {
	points := pointsOf(curve)
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

// slackOf reads slack off a curve at a work short; not a number where the curve
// does not come to it.
func slackOf(curve backtest.Curve, short float64) float64 {
	points := pointsOf(curve)
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if short > a.short || short < b.short {
			continue
		}
		at := math.Log(a.short/short) / math.Log(a.short/b.short)
		return a.slack*(1-at) + b.slack*at
	}
	return math.NaN()
}

// point is a setting's slack and work short.
type point struct{ slack, short float64 }

// pointsOf are those of a curve, by slack, without the ones that are beaten in
// both by another: a margin also decides how often there is a change, so that
// not every step of a sweep is a trade.
func pointsOf(curve backtest.Curve) []point {
	const least = 1e-6 // Logarithms end somewhere.
	var points []point
	for _, p := range curve.Points {
		points = append(points, point{figure(p.Metrics.CPUSlack), max(figure(p.Metrics.CPUWorkShort), least)})
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.slack, b.slack) })
	var front []point
	for _, p := range points {
		if n := len(front); n == 0 || p.short < front[n-1].short {
			front = append(front, p)
		}
	}
	return front
}

// writeEqualRisk compares the slack of the swept strategies where they are short
// of the same.
func writeEqualRisk(doc *bytes.Buffer, curves []backtest.Curve) {
	doc.WriteString("\n| CPU slack at the work short of |")
	for _, c := range curves {
		fmt.Fprintf(doc, " %s |", c.Name)
	}
	doc.WriteString("\n|---|" + strings.Repeat("---|", len(curves)) + "\n")
	for _, at := range curves {
		usual := slices.IndexFunc(at.Points, func(p backtest.CurvePoint) bool { return p.Label == "" })
		short := figure(at.Points[usual].Metrics.CPUWorkShort)
		fmt.Fprintf(doc, "| %s: %s |", at.Name, percentText(short))
		for _, c := range curves {
			text := "–"
			if c.Name == at.Name {
				text = percentText(figure(at.Points[usual].Metrics.CPUSlack))
			} else if v := slackOf(c, short); !math.IsNaN(v) {
				text = percentText(v)
			}
			fmt.Fprintf(doc, " %s |", text)
		}
		doc.WriteString("\n")
	}
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
			fmt.Fprintf(doc, "| %s | %s | no: neither a margin nor Cost comes to that slack |\n", m.what, m.text(most))
			continue
		}
		fmt.Fprintf(doc, "| %s | %s | %s%s |\n", m.what, m.text(most), verdict, m.text(got))
	}
}

// compare takes what marks need from the table's outcome and the sweep.
func compare(outcome *backtest.Outcome, swept []backtest.Curve) *compared {
	var c compared
	for _, curve := range swept {
		if curve.Name == "Balanced" {
			c.curve = curve
		}
	}
	for i, name := range outcome.Strategies {
		m := backtest.Pool(outcome.Results[i]).Metrics()
		switch name {
		case "Cost":
			c.curve.Points = append(slices.Clone(c.curve.Points), backtest.CurvePoint{Label: name, Metrics: m})
		case "Balanced":
			c.ours, c.medianResizes = m, medianResizes(outcome.Results[i])
		case "vpa":
			c.vpa = m
		}
	}
	return &c
}
