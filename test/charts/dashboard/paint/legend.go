package paint

import (
	"fmt"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

const (
	lineHeight = 17
	// swatch is the width of a series' color mark, and apart is the distance between two entries.
	swatch, apart = 18, 16
	// mostBelow is the maximum share of a panel's height for a legend below the graph. mostBeside is
	// the maximum share of its width for a legend on the right.
	mostBelow, mostBeside = 0.4, 0.5
	column                = 78
)

// legend draws a panel's legend, and returns the remaining space.
func (p *painter) legend(panel board.Panel, series []board.Series, in board.Rectangle) board.Rectangle {
	legend := panel.Options.Legend
	switch {
	case !legend.ShowLegend:
		return in
	case legend.DisplayMode == "table":
		return p.table(panel, series, in)
	default:
		return p.list(panel, series, in)
	}
}

// list writes the names below the graph, with as many names on each line as fit.
func (p *painter) list(panel board.Panel, series []board.Series, in board.Rectangle) board.Rectangle {
	style := p.style(small, false, ink, 0)
	type entry struct{ x, line float64 }
	places := make([]entry, len(series))
	x, line := 0.0, 0.0
	for i, s := range series {
		width := swatch + float64(style.Width(s.Name))
		if x > 0 && x+width > in.W {
			x, line = 0, line+1
		}
		places[i] = entry{x, line}
		x += width + apart
	}
	lines := min(line+1, float64(int(in.H*mostBelow/lineHeight)))
	in.H -= lines * lineHeight
	lacking := 0
	for i, s := range series {
		if places[i].line >= lines {
			lacking++
			continue
		}
		p.entry(i, fit(style, s.Name, in.W-swatch), in.X+places[i].x, in.Y+in.H+lineHeight*(places[i].line+0.5)+2)
	}
	p.lack(panel, lacking)
	return in
}

// table writes the names with their calculated values, below the graph or next to it.
func (p *painter) table(panel board.Panel, series []board.Series, in board.Rectangle) board.Rectangle {
	style := p.style(small, false, ink, 0)
	calcs := panel.Options.Legend.Calcs
	widest := 0.0
	for _, s := range series {
		widest = max(widest, float64(style.Width(s.Name)))
	}
	room := board.Rectangle{X: in.X, Y: in.Y, W: in.W, H: in.H}
	if panel.Options.Legend.Placement == "right" {
		room.W = min(in.W*mostBeside, swatch+widest+10+column*float64(len(calcs)))
		room.X = in.X + in.W - room.W
		in.W -= room.W + 12
	} else {
		room.H = lineHeight * min(float64(len(series)+1), float64(int(in.H*mostBelow/lineHeight)))
		room.Y = in.Y + in.H - room.H
		in.H -= room.H
	}
	rows := min(len(series), int(room.H/lineHeight)-1)
	head := p.style(small, true, paleInk, 1)
	figures := p.style(small, false, ink, 1)
	y := room.Y + lineHeight/2
	for c, calc := range calcs {
		p.write(head, room.X+room.W-column*float64(len(calcs)-1-c), y, calcNames[calc])
	}
	field := panel.FieldConfig.Defaults
	for i, s := range series[:rows] {
		y += lineHeight
		p.entry(i, fit(style, s.Name, room.W-swatch-column*float64(len(calcs))), room.X, y)
		for c, calc := range calcs {
			if value, ok := s.Calculate(calc); ok {
				p.write(figures, room.X+room.W-column*float64(len(calcs)-1-c), y, board.Text(field.Unit, value, decimals(field)))
			}
		}
	}
	p.lack(panel, len(series)-rows)
	return in
}

// calcNames are the names that Grafana shows for calculations in a table.
var calcNames = map[string]string{"lastNotNull": "Last", "max": "Max", "mean": "Mean"}

func (p *painter) entry(i int, name string, x, y float64) {
	p.box(board.Rectangle{X: x, Y: y - 1.5, W: 12, H: 3}, lines[i%len(lines)], nil)
	p.write(p.style(small, false, ink, 0), x+swatch, y, name)
}

// lack records the entries that did not fit into a legend. Grafana would scroll them.
func (p *painter) lack(panel board.Panel, number int) {
	if number > 0 {
		p.lacked = append(p.lacked, fmt.Sprintf("panel %q: %d of its series do not fit into its legend", panel.Title, number))
	}
}
