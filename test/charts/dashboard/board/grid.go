package board

import (
	"errors"
	"fmt"
)

const (
	// Columns is the number of columns of Grafana's grid.
	Columns = 24
	// cell is the height of a grid row, and gap is the distance between panels, in pixels.
	cell = 30
	gap  = 8
)

// Grid is a position in the grid.
type Grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Rectangle is a position in the picture, in pixels from the upper left corner.
type Rectangle struct{ X, Y, W, H float64 }

// Place returns the rectangle of a grid position in a picture of the given width.
func (g Grid) Place(width float64) Rectangle {
	column := (width + gap) / Columns
	return Rectangle{
		X: float64(g.X) * column, Y: float64(g.Y) * (cell + gap),
		W: float64(g.W)*column - gap, H: float64(g.H)*(cell+gap) - gap,
	}
}

// Height returns the height of the picture.
func (d *Dashboard) Height() float64 {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	return float64(rows)*(cell+gap) - gap
}

// overlaps returns an error if panels overlap or are outside the grid.
func (d *Dashboard) overlaps() error {
	var wrong []error
	for i, p := range d.Panels {
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > Columns {
			wrong = append(wrong, fmt.Errorf("panel %q: %+v is not within %d columns", p.Title, g, Columns))
		}
		for _, other := range d.Panels[:i] {
			o := other.GridPos
			if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				wrong = append(wrong, fmt.Errorf("panel %q: it overlaps %q", p.Title, other.Title))
			}
		}
	}
	return errors.Join(wrong...)
}
