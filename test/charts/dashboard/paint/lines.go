package paint

import (
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

const (
	small = 11.5 // size of the text on axes and in legends
	// timeRow is the height of the time labels below a graph.
	timeRow = 20
	// acrossTicks and downTicks are the minimum distances between two ticks, in pixels.
	acrossTicks, downTicks = 62, 34
)

// frame is the position of a graph, with the values and times at its edges.
type frame struct {
	in        board.Rectangle
	low, high float64
	from, to  time.Time
}

func (f frame) x(at time.Time) float64 {
	return f.in.X + f.in.W*float64(at.Sub(f.from))/float64(f.to.Sub(f.from))
}

func (f frame) y(value float64) float64 {
	return f.in.Y + f.in.H*(1-(value-f.low)/(f.high-f.low))
}

// frame returns the frame for drawing the series in a rectangle.
func (p *painter) frame(series []board.Series, field board.Field, in board.Rectangle) frame {
	f := frame{in: in, low: math.Inf(1), high: math.Inf(-1), from: p.From, to: p.To}
	for _, s := range series {
		for _, point := range s.Points {
			if !math.IsNaN(point.Value) {
				f.low, f.high = min(f.low, point.Value), max(f.high, point.Value)
			}
		}
	}
	f.high += (f.high - f.low) * 0.05
	if field.Min != nil {
		f.low = *field.Min
	}
	if field.Max != nil {
		f.high = *field.Max
	}
	if f.high <= f.low {
		f.high = f.low + 1
	}
	return f
}

// lines draws series over time, with axes and a legend.
func (p *painter) lines(panel board.Panel, series []board.Series, in board.Rectangle) {
	field := panel.FieldConfig.Defaults
	graph := p.legend(panel, series, in)
	stacked := field.Custom.Stacking.Mode == "normal"
	floors := make([]board.Series, len(series))
	if stacked {
		series, floors = board.Stack(series)
	}
	f := p.axes(p.frame(series, field, graph), field)
	for i, s := range slices.Backward(series) { // the first series is on top, as in the legend
		hue := lines[i%len(lines)]
		for _, part := range s.Parts(p.Step) {
			if field.Custom.FillOpacity > 0 && len(part) > 1 {
				p.area(f, part, floors[i].Points, faint(hue, field.Custom.FillOpacity))
			}
			if len(part) == 1 && field.Custom.ShowPoints != "never" {
				p.dot(f, part[0], hue)
			}
			p.line(f, part, hue, max(1, field.Custom.LineWidth)*1.2)
		}
	}
}

// axes draws the grid and its labels, and returns the remaining frame.
func (p *painter) axes(f frame, field board.Field) frame {
	style := p.style(small, false, paleInk, 1)
	f.in.H -= timeRow
	f.in.Y, f.in.H = f.in.Y+6, f.in.H-6
	values, names := field.Ticks(f.low, f.high, int(f.in.H/downTicks))
	widest := 0.0
	for _, name := range names {
		widest = max(widest, float64(style.Width(name)))
	}
	f.in.X, f.in.W = f.in.X+widest+8, f.in.W-widest-8
	for i, value := range values {
		y := f.y(value)
		p.on.StrokeLines(draw.LineStyle{Color: gridLine, Width: 1}, []vg.Point{p.at(f.in.X, y), p.at(f.in.X+f.in.W, y)})
		p.write(style, f.in.X-6, y, names[i])
	}
	p.times(f)
	return f
}

// times draws the time axis.
func (p *painter) times(f frame) {
	style := p.style(small, false, paleInk, 0.5)
	at, names := board.TimeTicks(f.from, f.to, int(f.in.W/acrossTicks))
	for i := range at {
		x := f.x(at[i])
		p.on.StrokeLines(draw.LineStyle{Color: gridLine, Width: 1}, []vg.Point{p.at(x, f.in.Y), p.at(x, f.in.Y+f.in.H)})
		if half := float64(style.Width(names[i])) / 2; x-half >= f.in.X-14 && x+half <= f.in.X+f.in.W+6 {
			p.write(style, x, f.in.Y+f.in.H+12, names[i])
		}
	}
}

func (p *painter) points(f frame, part []board.Point) []vg.Point {
	points := make([]vg.Point, len(part))
	for i, point := range part {
		points[i] = p.at(f.x(point.At), f.y(min(max(point.Value, f.low), f.high)))
	}
	return points
}

func (p *painter) line(f frame, part []board.Point, hue color.Color, width float64) {
	p.on.StrokeLines(draw.LineStyle{Color: hue, Width: vg.Length(width)}, p.points(f, part))
}

func (p *painter) dot(f frame, point board.Point, hue color.Color) {
	p.on.DrawGlyph(draw.GlyphStyle{Color: hue, Radius: 2.2, Shape: draw.CircleGlyph{}}, p.points(f, []board.Point{point})[0])
}

// area fills the area between a part of a series and its floor, or the bottom.
func (p *painter) area(f frame, part, floor []board.Point, hue color.Color) {
	below := map[time.Time]float64{}
	for _, point := range floor {
		below[point.At] = point.Value
	}
	outline := p.points(f, part)
	for _, point := range slices.Backward(part) {
		outline = append(outline, p.points(f, []board.Point{{At: point.At, Value: max(below[point.At], f.low)}})...)
	}
	p.on.FillPolygon(hue, outline)
}
