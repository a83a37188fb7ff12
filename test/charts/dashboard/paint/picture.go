package paint

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"time"

	"github.com/soniakeys/quant/median"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

const (
	// header is the height of the area above the grid, and margin is the space around the grid.
	header = 46
	margin = 12
	// pad is the distance between a panel's border and its content.
	pad = 10
)

// Content is the dashboard and the data that Picture draws.
type Content struct {
	Board *board.Dashboard
	// Series contains each panel's series, by the panel's ID.
	Series map[int][]board.Series
	// From and To are the time range, and Step is the time between the points of a series.
	From, To time.Time
	Step     time.Duration
	// Note is printed next to the title.
	Note string
}

// Picture draws the content with the given width in pixels. It also returns a message for each
// legend that did not fit.
func Picture(content Content, width float64) (image.Image, []string) {
	inner := width - 2*margin
	p := &painter{Content: content, canvas: newCanvas(width, header+content.Board.Height()+margin)}
	p.write(p.style(20, true, ink, 0), margin, header/2, content.Board.Title)
	p.write(p.style(13, false, paleInk, 1), width-margin, header/2, content.Note)
	for _, panel := range content.Board.Panels {
		place := panel.GridPos.Place(inner)
		place.X, place.Y = place.X+margin, place.Y+header
		p.panel(panel, place)
	}
	return p.Image(), p.lacked
}

// Points returns the number of points that fit into every panel: the width of the narrowest panel
// in pixels.
func Points(d *board.Dashboard, width float64) float64 {
	least := width
	for _, panel := range d.Panels {
		if panel.Type != board.Row {
			least = min(least, panel.GridPos.Place(width-2*margin).W-2*pad)
		}
	}
	return least
}

// Write writes a picture as a PNG with 256 colors, which looks the same at a third of the size.
func Write(to io.Writer, picture image.Image) error {
	reduced := median.Quantizer(256).Paletted(picture)
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(to, reduced); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// painter draws one picture.
type painter struct {
	Content
	*canvas
	lacked []string
}

func (p *painter) panel(panel board.Panel, place board.Rectangle) {
	if panel.Type == board.Row {
		p.write(p.style(15, true, ink, 0), place.X, place.Y+place.H/2+2, panel.Title)
		return
	}
	p.box(place, paper, edge)
	title := p.style(13, true, ink, 0)
	p.write(title, place.X+pad, place.Y+17, fit(title, panel.Title, place.W-2*pad))
	inside := board.Rectangle{X: place.X + pad, Y: place.Y + 32, W: place.W - 2*pad, H: place.H - 32 - 8}
	series := p.Series[panel.ID]
	if len(series) == 0 && panel.Type != board.Stat {
		nothing := panel.FieldConfig.Defaults.NoValue
		if nothing == "" {
			nothing = "No data"
		}
		p.write(p.style(16, false, paleInk, 0.5), inside.X+inside.W/2, inside.Y+inside.H/2, nothing)
		return
	}
	switch panel.Type {
	case board.Stat:
		p.stat(panel, series, inside)
	case board.TimeSeries:
		p.lines(panel, series, inside)
	case board.StateTimeline:
		p.states(panel, series, inside)
	}
}
