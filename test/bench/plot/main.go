package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// run has the fields of a test/bench run that are plotted.
type run struct {
	Scenario string `json:"scenario"`
	Part     string `json:"part"`
	Repeat   int    `json:"repeat"`
	Claims   int    `json:"claims"`
	Members  int    `json:"members"`
	Times    map[string]struct {
		Percentiles []float64 `json:"percentiles"`
	} `json:"times"`
	Series map[string][][2]float64 `json:"series"`
}

// line is one line of a plot.
type line struct {
	name   string
	points plotter.XYs
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "plot: the argument must be the directory that contains results.json")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func drawAll(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	var results struct {
		Runs []run `json:"runs"`
	}
	if err := json.Unmarshal(content, &results); err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	lines := map[string][]line{} // keyed by the plot's name
	axes := map[string][2]string{}
	for _, r := range results.Runs {
		name := fmt.Sprintf("%s %d", r.Part, r.Repeat)
		for what, times := range r.Times {
			if strings.HasPrefix(what, "deleted") {
				continue
			}
			to := fmt.Sprintf("%s-%d: %s", r.Scenario, r.Claims, what)
			lines[to] = append(lines[to], line{name, cumulated(times.Percentiles)})
			axes[to] = [2]string{"ms", "% of claims"}
		}
		for what, points := range r.Series {
			to := fmt.Sprintf("%s-%d: %s over time", r.Scenario, r.Claims, what)
			lines[to] = append(lines[to], line{name, series(points)})
			axes[to] = [2]string{"s", what}
		}
	}
	for title, all := range lines {
		if err := draw(dir, title, axes[title], all); err != nil {
			return err
		}
	}
	return nil
}

// cumulated converts percentiles to the points of a cumulative distribution.
func cumulated(percentiles []float64) plotter.XYs {
	points := make(plotter.XYs, len(percentiles))
	for percent, ms := range percentiles {
		points[percent] = plotter.XY{X: ms, Y: float64(percent)}
	}
	return points
}

func series(pairs [][2]float64) plotter.XYs {
	points := make(plotter.XYs, len(pairs))
	for i, pair := range pairs {
		points[i] = plotter.XY{X: pair[0], Y: pair[1]}
	}
	return points
}

func draw(dir, title string, axes [2]string, all []line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, axes[0], axes[1]
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left = false, false
	p.Add(plotter.NewGrid())
	colours, err := brewer.GetPalette(brewer.TypeQualitative, "Dark2", 8)
	if err != nil {
		return fmt.Errorf("choose colors: %w", err)
	}
	parts := map[string]color.Color{} // repeats of a part share a color
	for _, one := range all {
		if len(one.points) == 0 {
			continue
		}
		l, err := plotter.NewLine(one.points)
		if err != nil {
			return fmt.Errorf("draw %s of %s: %w", one.name, title, err)
		}
		part := one.name[:strings.LastIndex(one.name, " ")]
		if parts[part] == nil {
			parts[part] = colours.Colors()[len(parts)%len(colours.Colors())]
			p.Legend.Add(part, l)
		}
		l.Color, l.Width = parts[part], vg.Points(1.5)
		p.Add(l)
	}
	file := strings.NewReplacer(": ", "-", " ", "-").Replace(title) + ".png"
	if err := p.Save(20*vg.Centimeter, 12*vg.Centimeter, filepath.Join(dir, file)); err != nil {
		return fmt.Errorf("save %s: %w", file, err)
	}
	return nil
}
