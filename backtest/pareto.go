package backtest

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/report/chart"
)

// Risk is what a Pareto plot sets against slack.
type Risk int

// The risks.
const (
	// RiskCPU is CPU work short, RiskMemory out-of-memory kills in 100 days.
	RiskCPU Risk = iota
	RiskMemory
)

// of gives slack and risk; false where the set does not have the resource.
func (r Risk) of(m *Metrics) (slack, risk float64, ok bool) {
	if r == RiskMemory {
		return orZero(m.MemorySlack), orZero(m.OOMPer100Days), m.MemorySlack != nil && m.OOMPer100Days != nil
	}
	return orZero(m.CPUSlack), orZero(m.CPUWorkShort), m.CPUSlack != nil && m.CPUWorkShort != nil
}

// Curve is one strategy in a Pareto plot, at one or several settings.
type Curve struct {
	Name   string
	Points []CurvePoint
}

// CurvePoint is one setting.
type CurvePoint struct {
	// Label says which setting it is; empty for the default one.
	Label   string
	Metrics Metrics
}

// ParetoSVG plots slack against risk, one curve a strategy; empty where no
// strategy has figures. Lower and further left is better. Risk is on a
// logarithmic scale, with nothing at all at its foot.
func ParetoSVG(title string, curves []Curve, risk Risk) string {
	const footCPU, footMemory = 1e-4, 0.1
	c := chart.Chart{Title: title, Width: 760, Height: 420, X: "CPU slack", Y: "CPU work short (log)"}
	foot, text := footCPU, func(v float64) string { return fmt.Sprintf("%g%%", 100*v) }
	if risk == RiskMemory {
		c.X, c.Y = "memory slack", "OOM kills in 100 days (log)"
		foot, text = footMemory, func(v float64) string { return fmt.Sprintf("%g", v) }
	}
	mostSlack, mostRisk, any := 0.0, foot, false
	for _, curve := range curves {
		for _, p := range curve.Points {
			if slack, r, ok := risk.of(&p.Metrics); ok {
				mostSlack, mostRisk, any = max(mostSlack, slack), max(mostRisk, r), true
			}
		}
	}
	if !any {
		return ""
	}
	c.XScale = chart.Linear(mostSlack, percentTick)
	c.YScale = chart.Decades(foot, mostRisk, text)
	for i, curve := range curves {
		var xs, ys []float64
		for _, p := range curve.Points {
			slack, r, ok := risk.of(&p.Metrics)
			if !ok {
				continue
			}
			xs, ys = append(xs, slack), append(ys, r)
			label, size := "", 2.5
			if p.Label == "" {
				label, size = curve.Name, 4
			}
			tip := fmt.Sprintf("%s %s: slack %s, %s %s", curve.Name, p.Label, percent(slack), c.Y, text(r))
			c.Dot(slack, r, chart.Colour(i), label, tip, size)
		}
		if len(xs) > 1 {
			c.Line(xs, ys, chart.Colour(i), false)
		}
	}
	return c.SVG()
}

func percentTick(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }
