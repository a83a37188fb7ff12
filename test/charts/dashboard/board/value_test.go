package board

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		unit     string
		value    float64
		decimals int
		want     string
	}{
		{"none", 0, -1, "0"}, {"none", 12, -1, "12"}, {"none", 0.25, -1, "0.25"}, {"none", 1234.5, -1, "1234"}, {"", 2, 1, "2.0"},
		{"s", 0, -1, "0 s"}, {"s", 0.0005, -1, "500 µs"}, {"s", 0.25, -1, "250 ms"}, {"s", 1.5, -1, "1.5 s"},
		{"s", 90, -1, "1.5 mins"}, {"s", 5400, -1, "1.5 hours"}, {"s", 86400, -1, "1 day"}, {"s", -90, -1, "-1.5 mins"},
		{"bytes", 512, -1, "512 B"}, {"bytes", 96 << 20, -1, "96 MiB"}, {"bytes", 3 << 29, -1, "1.5 GiB"},
		{"percentunit", 0.125, -1, "12.5%"}, {"wps", 2500, -1, "2.5K wr/s"}, {"cps", 0.5, -1, "0.5 c/s"},
	} {
		if got := Text(c.unit, c.value, c.decimals); got != c.want {
			t.Errorf("%g %s: %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	whole := 0
	for name, c := range map[string]struct {
		field     Field
		low, high float64
		wanted    int
		want      []string
	}{
		"decimal":      {Field{}, 0, 1, 5, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		"whole":        {Field{Decimals: &whole}, 0, 2, 5, []string{"0", "1", "2"}},
		"minutes":      {Field{Unit: "s"}, 0, 95, 4, []string{"0 s", "30 s", "1 min", "1.5 mins"}},
		"bytes":        {Field{Unit: "bytes"}, 0, 100 << 20, 3, []string{"0 B", "64 MiB"}},
		"from 3 to 11": {Field{}, 3, 11, 4, []string{"4", "6", "8", "10"}},
	} {
		_, names := c.field.Ticks(c.low, c.high, c.wanted)
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at, names := TimeTicks(from, from.Add(5*time.Minute), 5)
	if diff := cmp.Diff([]string{"03:05", "03:06", "03:07", "03:08", "03:09"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(at) == 0 || at[0].Second() != 0 {
		t.Errorf("the ticks are at %v, want full minutes", at)
	}
}

var begin = time.Unix(1000, 0).UTC()

// series returns a series with a point every ten seconds. It omits infinite values.
func series(values ...float64) Series {
	s := Series{}
	for i, v := range values {
		if !math.IsInf(v, 0) {
			s.Points = append(s.Points, Point{At: begin.Add(time.Duration(i) * 10 * time.Second), Value: v})
		}
	}
	return s
}

func TestSeries(t *testing.T) {
	none, gone := math.NaN(), math.Inf(1)
	for calc, want := range map[string]float64{"lastNotNull": 2, "max": 6, "mean": 4} {
		if got, ok := series(4, 6, none, 2, none).Calculate(calc); !ok || got != want {
			t.Errorf("%s: %g, want %g", calc, got, want)
		}
	}
	if series(none, none).There() || (Series{}).There() || !series(none, 0).There() {
		t.Error("There() must be true only if the series has a value")
	}
	var lengths []int
	for _, part := range series(1, 2, gone, 3, none, 4, 5).Parts(10 * time.Second) {
		lengths = append(lengths, len(part))
	}
	if diff := cmp.Diff([]int{2, 1, 2}, lengths); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

func TestRuns(t *testing.T) {
	at := func(i int) time.Time { return begin.Add(time.Duration(i) * 10 * time.Second) }
	want := []Run{{at(0), at(2), 1}, {at(2), at(3), 0}, {at(5), at(6), 0}}
	if diff := cmp.Diff(want, series(1, 1, 0, 0, math.Inf(1), 0, 0).Runs(10*time.Second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStack(t *testing.T) {
	stacked, floors := Stack([]Series{series(1, 2, 3), series(10, math.NaN(), 30)})
	if diff := cmp.Diff([]Series{series(1, 2, 3), series(11, math.Inf(1), 33)}, stacked); diff != "" {
		t.Errorf("stacked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Series{series(0, 0, 0), series(1, math.Inf(1), 3)}, floors); diff != "" {
		t.Errorf("floors (-want +got):\n%s", diff)
	}
}
