// Package chart draws plots, as SVG or PNG: light enough to write by hand, and the
// same in every report and in the documents. The package is pure.
package chart

import (
	"math"
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
	marks         []func(canvas)
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

// The margins around the plot, but for the one below.
const (
	left, right, top = 62, 24, 30
)

// MarginsX is how much wider a chart is than what is plotted in it.
const MarginsX = left + right

// bottom has room for the ticks of the X axis, and for its title where it has
// one.
func (c *Chart) bottom() float64 {
	if c.X == "" {
		return 26
	}
	return 44
}

func (c *Chart) px(v float64) float64 {
	return left + c.XScale.of(v)*(c.Width-left-right)
}

func (c *Chart) py(v float64) float64 {
	return c.Height - c.bottom() - c.YScale.of(v)*(c.Height-top-c.bottom())
}

// canvas is what charts are drawn on. Coordinates are in pixels, from the top
// left; a tip is what a pointer is shown, where the form can.
type canvas interface {
	ground(width, height float64, colour string)
	// lines draws thin straight lines.
	lines(colour string, of ...segment)
	line(points []point, colour string)
	area(points []point, colour, tip string)
	dot(at point, radius float64, colour, tip string)
	// text writes words of one colour and anchor.
	text(colour string, anchor anchor, size float64, words ...word)
	// upright writes a text that is turned to run upwards, around its middle.
	upright(at point, colour, text string)
}

type point struct{ x, y float64 }

type segment struct{ from, to point }

type word struct {
	at   point
	text string
}

// anchor is the part of a text that stands at its point.
type anchor string

const (
	anchorStart  anchor = "start"
	anchorMiddle anchor = "middle"
	anchorEnd    anchor = "end"
)

// textSize and titleSize are in pixels.
const (
	textSize  = 11
	titleSize = 13
)

func (c *Chart) mark(draw func(canvas)) { c.marks = append(c.marks, draw) }

func (c *Chart) points(xs, ys []float64) []point {
	all := make([]point, len(xs))
	for i := range xs {
		all[i] = point{c.px(xs[i]), c.py(ys[i])}
	}
	return all
}

// Line draws values as steps or as a plain line.
func (c *Chart) Line(xs, ys []float64, colour string, steps bool) {
	points := c.points(xs, ys)
	if steps {
		var corners []point
		for i, p := range points {
			if i > 0 {
				corners = append(corners, point{p.x, points[i-1].y})
			}
			corners = append(corners, p)
		}
		points = corners
	}
	c.mark(func(to canvas) { to.line(points, colour) })
}

// Area fills the space under values. The tip is a text for the pointer; empty
// is none.
func (c *Chart) Area(xs, ys []float64, colour, tip string) {
	if len(xs) == 0 {
		return
	}
	base := c.py(c.YScale.least)
	points := append([]point{{c.px(xs[0]), base}}, c.points(xs, ys)...)
	points = append(points, point{c.px(xs[len(xs)-1]), base})
	c.mark(func(to canvas) { to.area(points, colour, tip) })
}

// Dot draws a point with a label beside it and a longer text for the pointer.
func (c *Chart) Dot(x, y float64, colour, label, tip string, size float64) {
	at := point{c.px(x), c.py(y)}
	c.mark(func(to canvas) { to.dot(at, size, colour, tip) })
	if label != "" {
		c.label(at, colour, label)
	}
}

// box is where a label is, in pixels.
type box struct{ left, right, y float64 }

// label writes a text right of a point, or left of it at the right end, and
// above the labels that are there already.
func (c *Chart) label(p point, colour, text string) {
	const character, line = 6.3, 12
	width := character * float64(len(text))
	at := box{p.x + 6, p.x + 6 + width, p.y - 5}
	side, x := anchorStart, at.left
	if at.right > c.Width {
		at = box{p.x - 6 - width, p.x - 6, p.y - 5}
		side, x = anchorEnd, at.right
	}
	for i := 0; i < len(c.labels); i++ {
		if o := c.labels[i]; at.left < o.right && o.left < at.right && math.Abs(at.y-o.y) < line {
			at.y, i = o.y-line, -1 // Higher, and look again.
		}
	}
	c.labels = append(c.labels, at)
	c.mark(func(to canvas) { to.text(colour, side, textSize, word{point{x, at.y}, text}) })
}

// draw draws the whole chart: axes, marks, and the legend.
func (c *Chart) draw(to canvas) {
	to.ground(c.Width, c.Height, ground)
	to.text(ink, anchorStart, titleSize, word{point{left, 18}, c.Title})
	c.drawAxes(to)
	for _, mark := range c.marks {
		mark(to)
	}
	x := c.Width - right
	for i := len(c.Legend) - 1; i >= 0; i-- {
		e := c.Legend[i]
		to.text(e.Colour, anchorEnd, textSize, word{point{x, 18}, e.Name})
		x -= 6*float64(len(e.Name)) + 14
	}
}

func (c *Chart) drawAxes(to canvas) {
	var grid []segment
	var days, values []word
	for _, t := range c.XScale.ticks {
		x := c.px(t.at)
		grid = append(grid, segment{point{x, top}, point{x, c.Height - c.bottom()}})
		days = append(days, word{point{x, c.Height - c.bottom() + 15}, t.text})
	}
	for _, t := range c.YScale.ticks {
		y := c.py(t.at)
		grid = append(grid, segment{point{left, y}, point{c.Width - right, y}})
		values = append(values, word{point{left - 5, y + 4}, t.text})
	}
	to.lines(gridColour, grid...)
	to.text(faint, anchorMiddle, textSize, days...)
	to.text(faint, anchorEnd, textSize, values...)
	if c.X != "" {
		to.text(ink, anchorMiddle, textSize, word{point{(left + c.Width - right) / 2, c.Height - 8}, c.X})
	}
	if c.Y != "" {
		to.upright(point{13, (top + c.Height - c.bottom()) / 2}, ink, c.Y)
	}
}
