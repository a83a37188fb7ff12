package paint

import (
	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

// states draws a bar for each series, in the colors of its values.
func (p *painter) states(panel board.Panel, series []board.Series, in board.Rectangle) {
	field := panel.FieldConfig.Defaults
	names := p.style(small+0.5, false, ink, 1)
	words := p.style(small, false, paper, 0)
	widest := 0.0
	for _, s := range series {
		widest = max(widest, float64(names.Width(s.Name)))
	}
	f := frame{in: in, from: p.From, to: p.To}
	f.in.X, f.in.W, f.in.H = in.X+widest+8, in.W-widest-8, in.H-timeRow
	p.times(f)
	each := f.in.H / float64(len(series))
	for i, s := range series {
		top := f.in.Y + each*float64(i)
		bar := board.Rectangle{Y: top + each*0.12, H: each * 0.76}
		p.write(names, f.in.X-6, top+each/2, s.Name)
		for _, run := range s.Runs(p.Step) {
			name, known := field.Named(run.Value)
			hue, painted := named[name.Color]
			if !known || !painted {
				name, hue = board.Named{Text: board.Text(field.Unit, run.Value, -1)}, paleInk
			}
			bar.X = f.x(run.From)
			bar.W = f.x(run.To) - bar.X
			p.box(bar, paper, nil)
			p.box(bar, faint(hue, field.Custom.FillOpacity), hue)
			if panel.Options.ShowValue != "never" && float64(words.Width(name.Text))+12 < bar.W {
				p.write(words, bar.X+6, top+each/2, name.Text)
			}
		}
	}
}
