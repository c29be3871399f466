// Package chart draws plots as SVG: light enough to write by hand, and the same
// in every report and in the documents. The package is pure.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// Chart is one plot. Marks are drawn in the order of the calls.
type Chart struct {
	// Title stands above the plot, X and Y beside its axes.
	Title, X, Y string
	// Width and Height are in pixels.
	Width, Height float64
	XScale        Scale
	YScale        Scale
	Legend        []Entry
	marks         strings.Builder
	labels        []box
}

// Entry is a line of the legend, in the colour of what it names.
type Entry struct{ Name, Colour string }

// Scale maps values to 0 to 1. A logarithmic one shows what is below its least
// value there.
type Scale struct {
	least, most float64
	log         bool
	ticks       []tick
}

type tick struct {
	at   float64
	text string
}

func (s Scale) of(v float64) float64 {
	v = min(max(v, s.least), s.most)
	if s.log {
		return math.Log(v/s.least) / math.Log(s.most/s.least)
	}
	if s.most == s.least {
		return 0
	}
	return (v - s.least) / (s.most - s.least)
}

// Linear is a scale from 0 to at least the given value, with round ticks.
func Linear(most float64, text func(float64) string) Scale {
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
	s := Scale{most: math.Ceil(most/step-1e-9) * step}
	for i := 0; float64(i)*step <= s.most*(1+1e-9); i++ {
		s.ticks = append(s.ticks, tick{float64(i) * step, text(float64(i) * step)})
	}
	return s
}

// Decades is a logarithmic scale from a power of ten that is not above the
// least value to one that is not below the most.
func Decades(least, most float64, text func(float64) string) Scale {
	low := math.Floor(math.Log10(least) + 1e-9)
	high := max(math.Ceil(math.Log10(most)-1e-9), low+1)
	s := Scale{least: math.Pow(10, low), most: math.Pow(10, high), log: true}
	for e := low; e <= high; e++ {
		s.ticks = append(s.ticks, tick{math.Pow(10, e), text(math.Pow(10, e))})
	}
	return s
}

const secondsPerDay = 24 * 60 * 60

// Days is a scale of time, in seconds since 1970, with a tick at midnights.
func Days(first, last int64) Scale {
	s := Scale{least: float64(first), most: float64(max(last, first+1))}
	every := max((last-first)/secondsPerDay/8, 1)
	for day := first/secondsPerDay + 1; day*secondsPerDay <= last; day += every {
		at := day * secondsPerDay
		s.ticks = append(s.ticks, tick{float64(at), time.Unix(at, 0).UTC().Format("2 Jan")})
	}
	return s
}

// The margins around the plot.
const (
	left, right, top, bottom = 62, 16, 30, 44
)

func (c *Chart) px(v float64) float64 {
	return left + c.XScale.of(v)*(c.Width-left-right)
}

func (c *Chart) py(v float64) float64 {
	return c.Height - bottom - c.YScale.of(v)*(c.Height-top-bottom)
}

// palette is told apart by most people with colour blindness (Okabe, Ito 2008).
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#7a7a7a", "#a0006d", "#3b7a57", "#5d3a9b"}

// Colour is the i-th colour of the palette, which begins anew after its last.
func Colour(i int) string { return palette[i%len(palette)] }

// short is a coordinate with a tenth of a pixel.
func short(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Line draws values as steps or as a plain line.
func (c *Chart) Line(xs, ys []float64, colour string, steps bool) {
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

// Area fills the space under values.
func (c *Chart) Area(xs, ys []float64, colour string) {
	if len(xs) == 0 {
		return
	}
	var path strings.Builder
	base := short(c.py(c.YScale.least))
	path.WriteString("M" + short(c.px(xs[0])) + " " + base)
	for i := range xs {
		path.WriteString("L" + short(c.px(xs[i])) + " " + short(c.py(ys[i])))
	}
	path.WriteString("L" + short(c.px(xs[len(xs)-1])) + " " + base + "Z")
	fmt.Fprintf(&c.marks, `<path d="%s" fill="%s" fill-opacity="0.35"/>`, path.String(), colour)
}

// Dot draws a point with a label beside it and a longer text for the pointer.
func (c *Chart) Dot(x, y float64, colour, label, tip string, size float64) {
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
func (c *Chart) label(px, py float64, colour, text string) {
	const character, line = 6.3, 12
	width := character * float64(len(text))
	at := box{px + 6, px + 6 + width, py - 5}
	anchor, x := "start", at.left
	if at.right > c.Width {
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

// SVG is the whole chart, as a document of its own.
func (c *Chart) SVG() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="sans-serif" font-size="11">`,
		short(c.Width), short(c.Height)) + c.body() + "</svg>\n"
}

// Stack is charts one below the other, as one document.
func Stack(charts ...*Chart) string {
	width, height := 0.0, 0.0
	var b strings.Builder
	for _, c := range charts {
		fmt.Fprintf(&b, `<svg y="%s" width="%s" height="%s">%s</svg>`+"\n", short(height), short(c.Width), short(c.Height), c.body())
		width, height = max(width, c.Width), height+c.Height
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="sans-serif" font-size="11">`+"\n",
		short(width), short(height)) + b.String() + "</svg>\n"
}

// body is what stands inside of the document.
func (c *Chart) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="18" font-size="13" fill="#222">%s</text>`, left, html.EscapeString(c.Title))
	for _, t := range c.XScale.ticks {
		x := short(c.px(t.at))
		fmt.Fprintf(&b, `<path d="M%s %sV%s" stroke="#ddd"/><text x="%s" y="%s" text-anchor="middle" fill="#555">%s</text>`,
			x, short(top), short(c.Height-bottom), x, short(c.Height-bottom+15), html.EscapeString(t.text))
	}
	for _, t := range c.YScale.ticks {
		y := short(c.py(t.at))
		fmt.Fprintf(&b, `<path d="M%s %sH%s" stroke="#ddd"/><text x="%s" y="%s" text-anchor="end" fill="#555">%s</text>`,
			short(left), y, short(c.Width-right), short(left-5), short(c.py(t.at)+4), html.EscapeString(t.text))
	}
	fmt.Fprintf(&b, `<text x="%s" y="%s" text-anchor="middle" fill="#222">%s</text>`,
		short((left+c.Width-right)/2), short(c.Height-8), html.EscapeString(c.X))
	middle := short((top + c.Height - bottom) / 2)
	fmt.Fprintf(&b, `<text transform="translate(13 %s) rotate(-90)" text-anchor="middle" fill="#222">%s</text>`, middle, html.EscapeString(c.Y))
	b.WriteString(c.marks.String())
	x := c.Width - right
	for i := len(c.Legend) - 1; i >= 0; i-- {
		e := c.Legend[i]
		fmt.Fprintf(&b, `<text x="%s" y="18" text-anchor="end" fill="%s">%s</text>`, short(x), e.Colour, html.EscapeString(e.Name))
		x -= 7*float64(len(e.Name)) + 14
	}
	return b.String()
}
