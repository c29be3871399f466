package chart

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"
)

// The colours of what is not data.
const (
	ground     = "#fff"
	ink        = "#222"
	faint      = "#555"
	gridColour = "#ddd"
)

// Colours of data that mean the same in every chart.
const (
	Used      = "#777777"
	Killed    = "#c00000"
	Throttled = "#e69f00"
)

// palette is told apart by most people with colour blindness (Okabe, Ito 2008).
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#7a7a7a", "#a0006d", "#3b7a57", "#5d3a9b"}

// Colour is the i-th colour of the palette, which begins anew after its last.
func Colour(i int) string { return palette[i%len(palette)] }

// dark is what colours become on a dark ground, where those of light grounds
// would be hard to see; the others serve on both.
var dark = [][2]string{
	{ground, "none"},
	{ink, "#e8eaed"},
	{faint, "#a2a9b0"},
	{gridColour, "#343a41"},
	{Used, "#a2a9b0"},
	{Killed, "#ff6b5e"},
	{"#0072b2", "#5aa9e6"},
	{"#d55e00", "#f08a4b"},
	{"#009e73", "#3ccf9f"},
	{"#cc79a7", "#e39bc4"},
	{"#000000", "#f2f2f2"},
}

// DarkCSS is the rules of a style sheet that turn charts that are part of a page,
// within what the selector names, to colours for a dark ground.
func DarkCSS(selector string) string {
	var b strings.Builder
	for _, c := range dark {
		fmt.Fprintf(&b, "%s [fill=%q]{fill:%s}%s [stroke=%q]{stroke:%s}\n", selector, c[0], c[1], selector, c[0], c[1])
	}
	return b.String()
}

// rgb reads a colour of the form #rgb or #rrggbb; anything else is black.
func rgb(text string, alpha float64) color.Color {
	hex := strings.TrimPrefix(text, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	v, err := strconv.ParseUint(hex, 16, 24)
	if err != nil {
		v = 0
	}
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: uint8(255*alpha + 0.5)}
}
