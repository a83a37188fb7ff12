package board

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const chart = "../../../../charts/xylem/files/dashboard.json"

// read returns the chart's dashboard.
func read(t *testing.T) *Dashboard {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(chart))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(content)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheChartsDashboard(t *testing.T) {
	d := read(t)
	values, err := d.Values(30*time.Second, 30*time.Second, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int]string{}
	for _, p := range d.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("panels %q and %q have the same ID", p.Title, other)
		}
		ids[p.ID] = p.Title
		for _, target := range p.Targets {
			expr, err := values.Expand(target.Expr)
			if err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: a variable was not replaced in %s", p.Title, expr)
			}
			if p.Type != Stat && target.LegendFormat == auto {
				t.Errorf("panel %q: its query lacks a legend, so Grafana would show %s", p.Title, expr)
			}
			if strings.Contains(target.Expr, "{cluster") && !strings.Contains(target.Expr, `cluster=~"$cluster"`) {
				t.Errorf("panel %q does not filter by the selected member: %s", p.Title, target.Expr)
			}
		}
	}
	var offered []string
	for _, v := range d.Templating.List {
		if metric, label, ok := v.LabelValues(); ok {
			offered = append(offered, v.Name, metric, label)
		}
	}
	if diff := cmp.Diff([]string{"cluster", "xylem_member_connected", "cluster"}, offered); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestReadRejectsUnknownFields(t *testing.T) {
	for name, c := range map[string]struct{ panels, want string }{
		"type":     {`{"title":"A","type":"gauge","gridPos":{"h":1,"w":1},"targets":[{"range":true}]}`, `type "gauge"`},
		"unit":     {`{"title":"A","type":"stat","gridPos":{"h":1,"w":1},"targets":[{"range":true}],"fieldConfig":{"defaults":{"unit":"dB"}}}`, `unit "dB"`},
		"instant":  {`{"title":"A","type":"stat","gridPos":{"h":1,"w":1},"targets":[{"expr":"up"}]}`, "query up"},
		"no query": {`{"title":"A","type":"stat","gridPos":{"h":1,"w":1}}`, "no query"},
		"override": {`{"title":"A","type":"stat","gridPos":{"h":1,"w":1},"targets":[{"range":true}],"fieldConfig":{"overrides":[{}]}}`, "overrides"},
		"calc":     {`{"title":"A","type":"stat","gridPos":{"h":1,"w":1},"targets":[{"range":true}],"options":{"reduceOptions":{"calcs":["p90"]}}}`, `calculation "p90"`},
		"outside":  {`{"title":"A","type":"row","gridPos":{"h":1,"w":4,"x":21}}`, "within 24 columns"},
		"overlap":  {`{"title":"A","type":"row","gridPos":{"h":2,"w":4}},{"title":"B","type":"row","gridPos":{"h":2,"w":4,"x":3,"y":1}}`, `"B": it overlaps "A"`},
	} {
		if _, err := Read([]byte(`{"panels":[` + c.panels + `]}`)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	const width = 1192 // 24 columns of 42 pixels, with gaps of 8
	for name, c := range map[string]struct {
		grid Grid
		want Rectangle
	}{
		"all columns": {Grid{X: 0, Y: 0, W: 24, H: 1}, Rectangle{0, 0, 1192, 30}},
		"left half":   {Grid{X: 0, Y: 1, W: 12, H: 8}, Rectangle{0, 38, 592, 296}},
		"right half":  {Grid{X: 12, Y: 1, W: 12, H: 8}, Rectangle{600, 38, 592, 296}},
	} {
		if diff := cmp.Diff(c.want, c.grid.Place(width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	d := &Dashboard{Panels: []Panel{{GridPos: Grid{Y: 0, H: 9}}, {GridPos: Grid{Y: 1, H: 2}}}}
	if got := d.Height(); got != 9*38-8 {
		t.Errorf("got height %g, want %d", got, 9*38-8)
	}
}

func TestThresholdsAndMappings(t *testing.T) {
	one, two := 1.0, 2.0
	leaders := Thresholds{Steps: []Step{{Color: "red"}, {Color: "green", Value: &one}, {Color: "red", Value: &two}}}
	for value, want := range map[float64]string{-1: "red", 0: "red", 1: "green", 1.5: "green", 2: "red"} {
		if got := leaders.Colour(value); got != want {
			t.Errorf("%g is %s, want %s", value, got, want)
		}
	}
	f := Field{Mappings: []Mapping{{Options: map[string]Named{"0": {Text: "away"}}}}}
	if got, ok := f.Named(0); !ok || got.Text != "away" {
		t.Errorf("0 is named %+v, want away", got)
	}
	if got, ok := f.Named(math.Inf(1)); ok {
		t.Errorf("a value without a mapping is named %+v, want no name", got)
	}
}
