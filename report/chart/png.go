package chart

import (
	"fmt"
	"io"
	"math"
	"sync"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// areaOpacity lets the grid be seen through what is filled.
const areaOpacity = 0.35

// pngScale is how many pixels of an image one of a chart is: enough for a screen
// of today.
const pngScale = 2

// WritePNG writes charts one below the other, as one image. Tips are left out.
func WritePNG(w io.Writer, charts ...*Chart) error {
	width, height := 0.0, 0.0
	for _, c := range charts {
		width, height = max(width, c.Width), height+c.Height
	}
	context := gg.NewContext(int(math.Ceil(width*pngScale)), int(math.Ceil(height*pngScale)))
	context.Scale(pngScale, pngScale)
	for _, c := range charts {
		to := &pngCanvas{Context: context, faces: map[float64]font.Face{}}
		c.draw(to)
		if to.err != nil {
			return to.err
		}
		context.Translate(0, c.Height)
	}
	return context.EncodePNG(w)
}

// pngCanvas draws on an image.
type pngCanvas struct {
	*gg.Context
	faces map[float64]font.Face
	err   error
}

func (p *pngCanvas) ground(width, height float64, colour string) {
	p.SetColor(rgb(colour, 1))
	p.DrawRectangle(0, 0, width, height)
	p.Fill()
}

func (p *pngCanvas) lines(colour string, of ...segment) {
	p.SetColor(rgb(colour, 1))
	p.SetLineWidth(pngScale)
	for _, l := range of {
		p.DrawLine(l.from.x, l.from.y, l.to.x, l.to.y)
		p.Stroke()
	}
}

func (p *pngCanvas) along(points []point) {
	for i, at := range points {
		if i == 0 {
			p.MoveTo(at.x, at.y)
		} else {
			p.LineTo(at.x, at.y)
		}
	}
}

func (p *pngCanvas) line(points []point, colour string) {
	p.SetColor(rgb(colour, 1))
	p.SetLineWidth(1.4 * pngScale)
	p.along(points)
	p.Stroke()
}

func (p *pngCanvas) area(points []point, colour, _ string) {
	p.SetColor(rgb(colour, areaOpacity))
	p.along(points)
	p.ClosePath()
	p.Fill()
}

func (p *pngCanvas) dot(at point, radius float64, colour, _ string) {
	p.SetColor(rgb(colour, 1))
	p.DrawCircle(at.x, at.y, radius)
	p.Fill()
}

func (p *pngCanvas) text(colour string, side anchor, size float64, words ...word) {
	share := map[anchor]float64{anchorStart: 0, anchorMiddle: 0.5, anchorEnd: 1}[side]
	p.SetColor(rgb(colour, 1))
	face, err := p.face(size)
	if err != nil {
		p.err = err
		return
	}
	for _, w := range words {
		p.write(face, w, share)
	}
}

// write writes a word at the resolution of the image: a face that is scaled by
// the context would be blurred.
func (p *pngCanvas) write(face font.Face, w word, share float64) {
	x, y := p.TransformPoint(w.at.x, w.at.y)
	p.Push()
	p.Identity()
	p.SetFontFace(face)
	p.DrawStringAnchored(w.text, x, y, share, 0)
	p.Pop()
}

func (p *pngCanvas) upright(at point, colour, text string) {
	face, err := p.face(textSize)
	if err != nil {
		p.err = err
		return
	}
	x, y := p.TransformPoint(at.x, at.y)
	p.SetColor(rgb(colour, 1))
	p.Push()
	p.Identity()
	p.SetFontFace(face)
	p.RotateAbout(-math.Pi/2, x, y)
	p.DrawStringAnchored(text, x, y, 0.5, 0)
	p.Pop()
}

var regular = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })

// face is the font of the Go project, which is free to carry along.
func (p *pngCanvas) face(size float64) (font.Face, error) {
	if face, ok := p.faces[size]; ok {
		return face, nil
	}
	parsed, err := regular()
	if err != nil {
		return nil, fmt.Errorf("reading the font of plots: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size * pngScale, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("making a font of %v pixels: %w", size, err)
	}
	p.faces[size] = face
	return face, nil
}
