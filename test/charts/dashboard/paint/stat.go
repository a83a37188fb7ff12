package paint

import (
	"image/color"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

// stat draws the last value of the panel's series, and its history below.
func (p *painter) stat(panel board.Panel, series []board.Series, in board.Rectangle) {
	field := panel.FieldConfig.Defaults
	calc := "lastNotNull"
	if len(panel.Options.ReduceOptions.Calcs) > 0 {
		calc = panel.Options.ReduceOptions.Calcs[0]
	}
	said, hue := field.NoValue, field.Thresholds.Colour(0)
	if said == "" {
		said, hue = "No data", "text"
	}
	for _, one := range series {
		value, ok := one.Calculate(calc)
		if !ok {
			continue
		}
		said, hue = board.Text(field.Unit, value, decimals(field)), field.Thresholds.Colour(value)
		if panel.Options.GraphMode == "area" {
			p.course(one, field, named[hue], in)
		}
	}
	painted, ok := named[hue]
	if !ok || panel.Options.ColorMode != "value" {
		painted = ink
	}
	size := 40.0
	for size > small && float64(p.style(size, true, painted, 0.5).Width(said)) > in.W {
		size--
	}
	p.write(p.style(size, true, painted, 0.5), in.X+in.W/2, in.Y+in.H*0.42, said)
}

// course draws the history of a value.
func (p *painter) course(s board.Series, field board.Field, hue color.NRGBA, in board.Rectangle) {
	low := board.Rectangle{X: in.X - pad + 1, Y: in.Y + in.H*0.62, W: in.W + 2*pad - 2, H: in.H*0.38 + 6}
	f := p.frame([]board.Series{s}, field, low)
	f.low = min(f.low, 0)
	for _, part := range s.Parts(p.Step) {
		p.area(f, part, nil, faint(hue, 12))
		p.line(f, part, hue, 1)
	}
}

func decimals(field board.Field) int {
	if field.Decimals != nil {
		return *field.Decimals
	}
	return -1
}
