package backtest

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart is a plot as SVG: light enough to write by hand, and the same in the
// HTML report and in the documents.
type chart struct {
	title, x, y   string
	width, height float64
	xs, ys        scale
	marks         strings.Builder
	legend        []legendEntry
	labels        []box
}

type legendEntry struct{ name, colour string }

// scale maps values to 0 to 1. A logarithmic one shows what is below its least
// value there.
type scale struct {
	least, most float64
	log         bool
	ticks       []tick
}

type tick struct {
	at   float64
	text string
}

func (s scale) of(v float64) float64 {
	v = min(max(v, s.least), s.most)
	if s.log {
		return math.Log(v/s.least) / math.Log(s.most/s.least)
	}
	if s.most == s.least {
		return 0
	}
	return (v - s.least) / (s.most - s.least)
}

// linear is a scale from 0 to at least the given value, with round ticks.
func linear(most float64, text func(float64) string) scale {
	if !(most > 0) {
		most = 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	step := unit
	for _, f := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2} {
		if step = f * unit; most/step <= 6 {
			break
		}
	}
	s := scale{most: math.Ceil(most/step-1e-9) * step}
	for i := 0; float64(i)*step <= s.most*(1+1e-9); i++ {
		s.ticks = append(s.ticks, tick{float64(i) * step, text(float64(i) * step)})
	}
	return s
}

// decades is a logarithmic scale from a power of ten that is not above the
// least value to one that is not below the most.
func decades(least, most float64, text func(float64) string) scale {
	low := math.Floor(math.Log10(least) + 1e-9)
	high := max(math.Ceil(math.Log10(most)-1e-9), low+1)
	s := scale{least: math.Pow(10, low), most: math.Pow(10, high), log: true}
	for e := low; e <= high; e++ {
		s.ticks = append(s.ticks, tick{math.Pow(10, e), text(math.Pow(10, e))})
	}
	return s
}

// The margins around the plot.
const (
	chartLeft, chartRight, chartTop, chartBottom = 62, 16, 30, 44
)

func (c *chart) px(v float64) float64 {
	return chartLeft + c.xs.of(v)*(c.width-chartLeft-chartRight)
}

func (c *chart) py(v float64) float64 {
	return c.height - chartBottom - c.ys.of(v)*(c.height-chartTop-chartBottom)
}

// palette is told apart by most people with colour blindness (Okabe, Ito 2008).
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#7a7a7a", "#a0006d", "#3b7a57", "#5d3a9b"}

func colour(i int) string { return palette[i%len(palette)] }

// short is a coordinate with a tenth of a pixel.
func short(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// line draws values as steps or as a plain line.
func (c *chart) line(xs, ys []float64, colour string, steps bool) {
	var path strings.Builder
	for i := range xs {
		x, y := short(c.px(xs[i])), short(c.py(ys[i]))
		switch {
		case i == 0:
			path.WriteString("M" + x + " " + y)
		case steps:
			path.WriteString("H" + x + "V" + y)
		default:
			path.WriteString("L" + x + " " + y)
		}
	}
	fmt.Fprintf(&c.marks, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`, path.String(), colour)
}

// area fills the space under values.
func (c *chart) area(xs, ys []float64, colour string) {
	if len(xs) == 0 {
		return
	}
	var path strings.Builder
	base := short(c.py(c.ys.least))
	path.WriteString("M" + short(c.px(xs[0])) + " " + base)
	for i := range xs {
		path.WriteString("L" + short(c.px(xs[i])) + " " + short(c.py(ys[i])))
	}
	path.WriteString("L" + short(c.px(xs[len(xs)-1])) + " " + base + "Z")
	fmt.Fprintf(&c.marks, `<path d="%s" fill="%s" fill-opacity="0.35"/>`, path.String(), colour)
}

// dot draws a point with a label beside it and a longer text for the pointer.
func (c *chart) dot(x, y float64, colour, label, tip string, size float64) {
	px, py := c.px(x), c.py(y)
	fmt.Fprintf(&c.marks, `<circle cx="%s" cy="%s" r="%s" fill="%s"><title>%s</title></circle>`,
		short(px), short(py), short(size), colour, html.EscapeString(tip))
	if label != "" {
		c.label(px, py, colour, label)
	}
}

// box is where a label is, in pixels.
type box struct{ left, right, y float64 }

// label writes a text right of a point, or left of it at the right end, and
// above the labels that are there already.
func (c *chart) label(px, py float64, colour, text string) {
	const character, line = 6.3, 12
	width := character * float64(len(text))
	at := box{px + 6, px + 6 + width, py - 5}
	anchor, x := "start", at.left
	if at.right > c.width {
		at = box{px - 6 - width, px - 6, py - 5}
		anchor, x = "end", at.right
	}
	for i := 0; i < len(c.labels); i++ {
		if o := c.labels[i]; at.left < o.right && o.left < at.right && math.Abs(at.y-o.y) < line {
			at.y, i = o.y-line, -1 // Higher, and look again.
		}
	}
	c.labels = append(c.labels, at)
	fmt.Fprintf(&c.marks, `<text x="%s" y="%s" text-anchor="%s" fill="%s">%s</text>`,
		short(x), short(at.y), anchor, colour, html.EscapeString(text))
}

// svg is the whole chart.
func (c *chart) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="sans-serif" font-size="11">`, short(c.width), short(c.height))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="18" font-size="13" fill="#222">%s</text>`, chartLeft, html.EscapeString(c.title))
	for _, t := range c.xs.ticks {
		x := short(c.px(t.at))
		fmt.Fprintf(&b, `<path d="M%s %sV%s" stroke="#ddd"/><text x="%s" y="%s" text-anchor="middle" fill="#555">%s</text>`,
			x, short(chartTop), short(c.height-chartBottom), x, short(c.height-chartBottom+15), html.EscapeString(t.text))
	}
	for _, t := range c.ys.ticks {
		y := short(c.py(t.at))
		fmt.Fprintf(&b, `<path d="M%s %sH%s" stroke="#ddd"/><text x="%s" y="%s" text-anchor="end" fill="#555">%s</text>`,
			short(chartLeft), y, short(c.width-chartRight), short(chartLeft-5), short(c.py(t.at)+4), html.EscapeString(t.text))
	}
	fmt.Fprintf(&b, `<text x="%s" y="%s" text-anchor="middle" fill="#222">%s</text>`,
		short((chartLeft+c.width-chartRight)/2), short(c.height-8), html.EscapeString(c.x))
	middle := short((chartTop + c.height - chartBottom) / 2)
	fmt.Fprintf(&b, `<text transform="translate(13 %s) rotate(-90)" text-anchor="middle" fill="#222">%s</text>`, middle, html.EscapeString(c.y))
	b.WriteString(c.marks.String())
	x := c.width - chartRight
	for i := len(c.legend) - 1; i >= 0; i-- {
		e := c.legend[i]
		fmt.Fprintf(&b, `<text x="%s" y="18" text-anchor="end" fill="%s">%s</text>`, short(x), e.colour, html.EscapeString(e.name))
		x -= 7*float64(len(e.name)) + 14
	}
	b.WriteString("</svg>\n")
	return b.String()
}
