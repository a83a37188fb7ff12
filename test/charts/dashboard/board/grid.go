package board

import (
	"errors"
	"fmt"
)

const (
	// Columns of Grafana's grid.
	Columns = 24
	// cell and gap are the height of a row of the grid, and what is between panels, in
	// pixels.
	cell = 30
	gap  = 8
)

// Grid is a place in the grid.
type Grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Rectangle is a place in the picture, in pixels from its upper left corner.
type Rectangle struct{ X, Y, W, H float64 }

// Place is where something in the grid is in a picture of that width.
func (g Grid) Place(width float64) Rectangle {
	column := (width + gap) / Columns
	return Rectangle{
		X: float64(g.X) * column, Y: float64(g.Y) * (cell + gap),
		W: float64(g.W)*column - gap, H: float64(g.H)*(cell+gap) - gap,
	}
}

// Height of the picture.
func (d *Dashboard) Height() float64 {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	return float64(rows)*(cell+gap) - gap
}

// overlaps reports which panels are in each other's place, or outside of the grid.
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
