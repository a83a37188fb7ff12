package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The supported types of panels.
const (
	Row           = "row"
	Stat          = "stat"
	TimeSeries    = "timeseries"
	StateTimeline = "state-timeline"
)

// Dashboard is a Grafana dashboard.
type Dashboard struct {
	Title      string  `json:"title"`
	Panels     []Panel `json:"panels"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is a panel of the dashboard, or the title of a row of panels.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	GridPos     Grid   `json:"gridPos"`
	FieldConfig struct {
		Defaults  Field             `json:"defaults"`
		Overrides []json.RawMessage `json:"overrides"`
	} `json:"fieldConfig"`
	Options Options  `json:"options"`
	Targets []Target `json:"targets"`
}

// Target is a query of a panel.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Range        bool   `json:"range"`
}

// Field defines how values are shown.
type Field struct {
	Unit       string     `json:"unit"`
	NoValue    string     `json:"noValue"`
	Min        *float64   `json:"min"`
	Max        *float64   `json:"max"`
	Decimals   *int       `json:"decimals"`
	Thresholds Thresholds `json:"thresholds"`
	Mappings   []Mapping  `json:"mappings"`
	Custom     Custom     `json:"custom"`
}

// Custom defines how lines are drawn.
type Custom struct {
	FillOpacity float64 `json:"fillOpacity"`
	LineWidth   float64 `json:"lineWidth"`
	ShowPoints  string  `json:"showPoints"`
	Stacking    struct {
		Mode string `json:"mode"`
	} `json:"stacking"`
}

// Thresholds assign colors to ranges of values.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is the color for values of Value or more. The first step has no Value.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping assigns names and colors to values.
type Mapping struct {
	Type    string           `json:"type"`
	Options map[string]Named `json:"options"`
}

// Named is a value's name and color.
type Named struct {
	Text  string `json:"text"`
	Color string `json:"color"`
}

// Options are the options of a panel that depend on its type.
type Options struct {
	Legend struct {
		DisplayMode string   `json:"displayMode"`
		Placement   string   `json:"placement"`
		ShowLegend  bool     `json:"showLegend"`
		Calcs       []string `json:"calcs"`
	} `json:"legend"`
	ReduceOptions struct {
		Calcs []string `json:"calcs"`
	} `json:"reduceOptions"`
	GraphMode string `json:"graphMode"`
	ColorMode string `json:"colorMode"`
	ShowValue string `json:"showValue"`
}

// Read parses a dashboard. It returns an error if the dashboard uses a feature that this
// package does not support.
func Read(content []byte) (*Dashboard, error) {
	d := &Dashboard{}
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(d); err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	var wrong []error
	for _, p := range d.Panels {
		if err := p.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("panel %q: %w", p.Title, err))
		}
	}
	return d, errors.Join(append(wrong, d.overlaps())...)
}

func (p Panel) check() error {
	field := p.FieldConfig.Defaults
	if p.Type == Row {
		return nil
	}
	var wrong []error
	known := func(what, value string, values ...string) {
		if !slices.Contains(values, value) {
			wrong = append(wrong, fmt.Errorf("%s %q: only %q can be drawn", what, value, values))
		}
	}
	known("type", p.Type, Stat, TimeSeries, StateTimeline)
	known("unit", field.Unit, units()...)
	known("stacking", field.Custom.Stacking.Mode, "", "none", "normal")
	known("showPoints", field.Custom.ShowPoints, "", "auto", "never")
	known("thresholds", field.Thresholds.Mode, "", "absolute")
	known("colorMode", p.Options.ColorMode, "", "none", "value")
	known("graphMode", p.Options.GraphMode, "", "none", "area")
	known("legend", p.Options.Legend.DisplayMode, "", "list", "table")
	known("legend placement", p.Options.Legend.Placement, "", "bottom", "right")
	for _, calc := range slices.Concat(p.Options.Legend.Calcs, p.Options.ReduceOptions.Calcs) {
		known("calculation", calc, calculations()...)
	}
	for _, m := range field.Mappings {
		known("mapping", m.Type, "value")
	}
	if len(p.FieldConfig.Overrides) > 0 {
		wrong = append(wrong, errors.New("overrides are not supported"))
	}
	if len(p.Targets) == 0 {
		wrong = append(wrong, errors.New("it has no query"))
	}
	for _, t := range p.Targets {
		if !t.Range {
			wrong = append(wrong, fmt.Errorf("query %s: only range queries are supported", t.Expr))
		}
	}
	return errors.Join(wrong...)
}

// Colour returns the color that the steps assign to a value, or "" if there are no steps.
func (t Thresholds) Colour(value float64) string {
	colour := ""
	for i, step := range t.Steps {
		if i == 0 || step.Value != nil && value >= *step.Value {
			colour = step.Color
		}
	}
	return colour
}

// Named returns the name of a value, if it has one.
func (f Field) Named(value float64) (Named, bool) {
	for _, m := range f.Mappings {
		if named, ok := m.Options[fmt.Sprint(value)]; ok {
			return named, true
		}
	}
	return Named{}, false
}
