package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// SVG is the whole chart, as a document of its own.
func (c *Chart) SVG() string {
	return open(c.Width, c.Height) + c.svg() + "</svg>\n"
}

// Stack is charts one below the other, as one document.
func Stack(charts ...*Chart) string {
	var b strings.Builder
	width, height := 0.0, 0.0
	for _, c := range charts {
		fmt.Fprintf(&b, `<svg y="%s" width="%s" height="%s">%s</svg>`+"\n", short(height), short(c.Width), short(c.Height), c.svg())
		width, height = max(width, c.Width), height+c.Height
	}
	return open(width, height) + "\n" + b.String() + "</svg>\n"
}

func open(width, height float64) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="sans-serif" font-size="%d">`, short(width), short(height), textSize)
}

// svg is what stands inside of the document.
func (c *Chart) svg() string {
	var to svgCanvas
	c.draw(&to)
	return to.String()
}

// svgCanvas writes elements. Reports hold thousands of charts, so that paths are
// as short as a tenth of a pixel allows.
type svgCanvas struct{ strings.Builder }

func (s *svgCanvas) ground(_, _ float64, colour string) {
	fmt.Fprintf(s, `<rect width="100%%" height="100%%" fill="%s"/>`, colour)
}

func (s *svgCanvas) lines(colour string, of ...segment) {
	if len(of) == 0 {
		return
	}
	var d strings.Builder
	for _, l := range of {
		d.WriteString(path(l.from, l.to))
	}
	fmt.Fprintf(s, `<path d="%s" stroke="%s"/>`, d.String(), colour)
}

func (s *svgCanvas) line(points []point, colour string) {
	fmt.Fprintf(s, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`, path(points...), colour)
}

func (s *svgCanvas) area(points []point, colour, tip string) {
	s.element("path", fmt.Sprintf(`d="%sZ" fill="%s" fill-opacity="%v"`, path(points...), colour, areaOpacity), tip)
}

func (s *svgCanvas) dot(at point, radius float64, colour, tip string) {
	s.element("circle", fmt.Sprintf(`cx="%s" cy="%s" r="%s" fill="%s"`, short(at.x), short(at.y), short(radius), colour), tip)
}

func (s *svgCanvas) element(name, attributes, tip string) {
	if tip == "" {
		fmt.Fprintf(s, "<%s %s/>", name, attributes)
		return
	}
	fmt.Fprintf(s, "<%s %s><title>%s</title></%s>", name, attributes, html.EscapeString(tip), name)
}

func (s *svgCanvas) text(colour string, anchor anchor, size float64, words ...word) {
	if len(words) == 0 {
		return
	}
	attributes := fmt.Sprintf(`fill="%s" text-anchor="%s"`, colour, anchor)
	if size != textSize {
		attributes += fmt.Sprintf(` font-size="%s"`, short(size))
	}
	fmt.Fprintf(s, "<g %s>", attributes)
	for _, w := range words {
		fmt.Fprintf(s, `<text x="%s" y="%s">%s</text>`, short(w.at.x), short(w.at.y), html.EscapeString(w.text))
	}
	s.WriteString("</g>")
}

func (s *svgCanvas) upright(at point, colour, text string) {
	fmt.Fprintf(s, `<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" fill="%s">%s</text>`,
		short(at.x), short(at.y), colour, html.EscapeString(text))
}

// tenths is a coordinate in tenths of a pixel.
func tenths(v float64) int { return int(math.Round(10 * v)) }

// short is a coordinate with a tenth of a pixel at most.
func short(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// path goes through points, each relative to the one before. Steps are taken
// between rounded points, so that no error adds up, and level stretches are one.
func path(points ...point) string {
	var d strings.Builder
	if len(points) == 0 {
		return ""
	}
	x, y := tenths(points[0].x), tenths(points[0].y)
	d.WriteString("M" + decimal(x) + " " + decimal(y))
	for i := 1; i < len(points); i++ {
		toX, toY := tenths(points[i].x), tenths(points[i].y)
		for i+1 < len(points) && toY == y && tenths(points[i+1].y) == y && (tenths(points[i+1].x) > toX) == (toX > x) {
			i++
			toX = tenths(points[i].x)
		}
		switch dx, dy := toX-x, toY-y; {
		case dy == 0 && dx != 0:
			d.WriteString("h" + decimal(dx))
		case dx == 0 && dy != 0:
			d.WriteString("v" + decimal(dy))
		case dy < 0:
			d.WriteString("l" + decimal(dx) + decimal(dy)) // The sign parts them.
		case dx != 0:
			d.WriteString("l" + decimal(dx) + " " + decimal(dy))
		}
		x, y = toX, toY
	}
	return d.String()
}

// decimal is tenths as a number: 3, 3.1, .1, -.1.
func decimal(tenths int) string {
	text := strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64)
	if rest, ok := strings.CutPrefix(text, "0."); ok {
		return "." + rest
	}
	if rest, ok := strings.CutPrefix(text, "-0."); ok {
		return "-." + rest
	}
	return text
}
