package board

import (
	"strings"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	values := Values{"cluster": ".*", "__interval": "5000ms", "__rate_interval": "20000ms"}
	for query, want := range map[string]string{
		`a{cluster=~"$cluster"}`:                       `a{cluster=~".*"}`,
		`a{cluster=~"${cluster}",x="${cluster:glob}"}`: `a{cluster=~".*",x=".*"}`,
		`rate(a[$__rate_interval])`:                    `rate(a[20000ms])`,
		`rate(a[$__interval])`:                         `rate(a[5000ms])`,
		`a{x=~"b$"}`:                                   `a{x=~"b$"}`,
	} {
		got, err := values.Expand(query)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", query, got, err, want)
		}
	}
	// A variable must not match the prefix of a longer name.
	for _, query := range []string{"rate(a[$__rate_interval_ms])", "a{b=\"$clusters\"}", "$other", "${other}"} {
		if got, err := values.Expand(query); err == nil {
			t.Errorf("%s: %s, want an error", query, got)
		}
	}
}

func TestValues(t *testing.T) {
	values, err := read(t).Values(5*time.Second, 5*time.Second, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cluster": ".*", "__interval": "5000ms", "__rate_interval": "20000ms", "__range": "3600000ms"} {
		if values[name] != want {
			t.Errorf("%s: %q, want %q", name, values[name], want)
		}
	}
	one, err := Read([]byte(`{"templating":{"list":[{"name":"cluster","type":"query","includeAll":true,"allValue":".*","current":{"value":["a"]}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if values, err := one.Values(time.Second, time.Second, time.Hour); err == nil || !strings.Contains(err.Error(), "variable cluster") {
		t.Errorf("a single selected value: %v, %v, want an error", values, err)
	}
}

// The examples come from Grafana's documentation of $__rate_interval.
func TestIntervals(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct{ step, scrape, want time.Duration }{
		"equal to the scrape interval": {15 * s, 15 * s, 60 * s},
		"wide":                         {60 * s, 15 * s, 75 * s},
		"narrow":                       {1 * s, 5 * s, 20 * s},
	} {
		if got := RateInterval(c.step, c.scrape); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		length, scrape time.Duration
		pixels         float64
		want           time.Duration
	}{
		"at least the scrape interval": {6 * time.Minute, 5 * s, 400, 5 * s},
		"at most one point per pixel":  {time.Hour, 5 * s, 400, 9 * s},
		"exactly one point per pixel":  {400 * s, s, 400, s},
	} {
		if got := Interval(c.length, c.scrape, c.pixels); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestLegend(t *testing.T) {
	labels := map[string]string{"__name__": "up", "cluster": "cluster38", "side": "leaf"}
	for name, c := range map[string]struct {
		target Target
		labels map[string]string
		want   string
	}{
		"labels":         {Target{LegendFormat: "{{cluster}} {{ side }} p99"}, labels, "cluster38 leaf p99"},
		"missing label":  {Target{LegendFormat: "{{verb}} {{cluster}}"}, labels, "cluster38"},
		"only text":      {Target{LegendFormat: "all"}, labels, "all"},
		"automatic":      {Target{LegendFormat: "__auto"}, labels, `up{cluster="cluster38", side="leaf"}`},
		"no format":      {Target{}, labels, `up{cluster="cluster38", side="leaf"}`},
		"without labels": {Target{LegendFormat: "__auto", Expr: "sum(up)"}, nil, "sum(up)"},
	} {
		if got := c.target.Legend(c.labels); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
