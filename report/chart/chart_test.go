package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"
)

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// sample is a chart of 100 by 100 pixels within its margins, from 0 to 10 either
// way, with one of each mark.
func sample() *Chart {
	c := &Chart{
		Title: "a <title>", X: "x", Y: "y", Width: left + right + 100, Height: top + 44 + 100,
		XScale: Scale{most: 10}, YScale: Linear(10, number), Legend: []Entry{{"used", Used}, {"killed", Killed}},
	}
	c.Area([]float64{0, 10}, []float64{5, 5}, Used, "")
	c.Line([]float64{0, 10}, []float64{8, 8}, "#0000ff", false)
	c.Dot(5, 9, Killed, "here", "a tip & more", 4)
	return c
}

func TestPathsAreShortAndExact(t *testing.T) {
	for want, points := range map[string][]point{
		"":                 {},
		"M1 2":             {{1, 2}},
		"M0 0h3v-.5h-1":    {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {3, -0.5}, {2, -0.5}},
		"M.1 .1l1.1-2.1":   {{0.1, 0.1}, {1.2, -2}},
		"M0 0h5h-2":        {{0, 0}, {5, 0}, {3, 0}}, // There and back is not one stretch.
		"M0 0l.1 .1":       {{0, 0}, {0.04, 0.04}, {0.08, 0.08}},
		"M0 0l.3 .1l.4 .1": {{0, 0}, {0.34, 0.1}, {0.68, 0.2}}, // Rounding does not add up.
	} {
		if got := path(points...); got != want {
			t.Errorf("%v: %q, want %q", points, got, want)
		}
	}
}

func TestTheSVGIsWellFormedAndEscaped(t *testing.T) {
	for _, text := range []string{sample().SVG(), Stack(sample(), sample())} {
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
		}
		for _, want := range []string{"a &lt;title&gt;", "<title>a tip &amp; more</title>", ">here<", ">used<", "rotate(-90)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
}

// TestTheImageShowsTheMarks looks at pixels of the second of two charts.
func TestTheImageShowsTheMarks(t *testing.T) {
	var out bytes.Buffer
	c := sample()
	if err := WritePNG(&out, sample(), c); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := picture.Bounds().Max, (image.Point{pngScale * int(c.Width), pngScale * 2 * int(c.Height)}); got != want {
		t.Fatalf("size %v, want %v", got, want)
	}
	at := func(x, y float64) color.NRGBA {
		px, py := pngScale*c.px(x), pngScale*(c.Height+c.py(y))
		return color.NRGBAModel.Convert(picture.At(int(px), int(py))).(color.NRGBA)
	}
	white, blue := color.NRGBA{255, 255, 255, 255}, color.NRGBA{0, 0, 255, 255}
	if got := at(2.2, 7.1); got != white {
		t.Errorf("above what was used: %v", got)
	}
	if got := at(2.2, 2.9); got == white || got.R != got.G || got.R != got.B {
		t.Errorf("within what was used: %v, want a grey", got)
	}
	if got := at(2.2, 8); got != blue {
		t.Errorf("on the line: %v", got)
	}
	if got := at(5, 9); got != rgb(Killed, 1) {
		t.Errorf("on the dot: %v", got)
	}
	ink := 0
	for x := range picture.Bounds().Dx() {
		for y := range pngScale * 24 {
			if r, _, _, _ := picture.At(x, y).RGBA(); r < 0x8000 {
				ink++
			}
		}
	}
	if ink < 100 {
		t.Errorf("%d dark pixels where title and legend stand", ink)
	}
}

func TestColoursAreRead(t *testing.T) {
	for text, want := range map[string]color.NRGBA{
		"#fff": {255, 255, 255, 255}, "#e69f00": {230, 159, 0, 255}, "none of any": {0, 0, 0, 255},
	} {
		if got := rgb(text, 1); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, c := range dark {
		if !strings.Contains(DarkCSS(".plots"), fmt.Sprintf(".plots [fill=%q]", c[0])) {
			t.Errorf("%s has no rule", c[0])
		}
	}
}
