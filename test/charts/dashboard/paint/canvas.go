package paint

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

// The colors of the picture.
var (
	ground   = colour("#f4f5f5")
	paper    = colour("#ffffff")
	edge     = colour("#dcdfe3")
	gridLine = colour("#e9ebee")
	ink      = colour("#24292e")
	paleInk  = colour("#5c6670")
)

// named are Grafana's named colors, dark enough for a white background.
var named = map[string]color.NRGBA{
	"green": colour("#37872d"), "red": colour("#e02f44"), "orange": colour("#d9730d"), "yellow": colour("#c99700"),
	"blue": colour("#1f60c4"), "purple": colour("#8f3bb8"), "text": ink,
}

// lines are the colors of a panel's series, in order.
var lines = []color.NRGBA{
	colour("#1f78c1"), colour("#e8871e"), colour("#3f9142"), colour("#c4372f"), colour("#8a4fbf"), colour("#17a2b0"),
	colour("#b8860b"), colour("#d6569b"), colour("#5b6b7a"), colour("#7fae2e"), colour("#7a4b2b"), colour("#5469d4"),
}

func colour(hex string) color.NRGBA {
	c := color.NRGBA{A: 255}
	if _, err := fmt.Sscanf(strings.TrimPrefix(hex, "#"), "%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
		panic(err) // a constant of this package
	}
	return c
}

func faint(c color.NRGBA, percent float64) color.NRGBA {
	c.A = uint8(255 * percent / 100)
	return c
}

// canvas draws with pixel coordinates from the upper left corner.
type canvas struct {
	*vgimg.Canvas
	on     draw.Canvas
	height float64
	fonts  *font.Cache
}

func newCanvas(width, height float64) *canvas {
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(72), vgimg.UseBackgroundColor(ground))
	return &canvas{Canvas: c, on: draw.New(c), height: height, fonts: font.NewCache(liberation.Collection())}
}

func (c *canvas) at(x, y float64) vg.Point {
	return vg.Point{X: vg.Length(x), Y: vg.Length(c.height - y)}
}

// box fills a rectangle, and draws its border if a color is given.
func (c *canvas) box(r board.Rectangle, fill color.Color, border color.Color) {
	corners := []vg.Point{c.at(r.X, r.Y), c.at(r.X+r.W, r.Y), c.at(r.X+r.W, r.Y+r.H), c.at(r.X, r.Y+r.H)}
	c.on.FillPolygon(fill, corners)
	if border != nil {
		c.on.StrokeLines(draw.LineStyle{Color: border, Width: 1}, append(corners, corners[0]))
	}
}

// style returns a text style. With align 0, the text begins at its position. With 0.5, it is
// centered there, and with 1, it ends there.
func (c *canvas) style(size float64, bold bool, ink color.Color, align float64) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold {
		f.Weight = 3 // the weight that the collection uses for bold fonts
	}
	return text.Style{Color: ink, Font: f, XAlign: text.XAlignment(-align), YAlign: draw.YCenter, Handler: text.Plain{Fonts: c.fonts}}
}

// write writes a line of text that is vertically centered at y.
func (c *canvas) write(s text.Style, x, y float64, line string) { c.on.FillText(s, c.at(x, y), line) }

// fit truncates a line to the available width.
func fit(s text.Style, line string, room float64) string {
	if float64(s.Width(line)) <= room {
		return line
	}
	runes := []rune(line)
	for len(runes) > 0 && float64(s.Width(string(runes)+"…")) > room {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
