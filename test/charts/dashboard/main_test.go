package main

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// panel returns a panel with a query, as JSON.
func panel(id int, title, expr, noValue string) string {
	return fmt.Sprintf(`{"id":%d,"title":%q,"type":"timeseries","gridPos":{"h":8,"w":8,"x":%d,"y":0},
		"fieldConfig":{"defaults":{"unit":"none","noValue":%q}},"options":{"legend":{"showLegend":true}},
		"targets":[{"expr":%q,"legendFormat":"{{cluster}}","range":true}]}`, id, title, 8*(id-1), noValue, expr)
}

// TestDraw scrapes growing metrics from a server, and draws them.
func TestDraw(t *testing.T) {
	var read atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE writes_total counter\nwrites_total{cluster=\"a\"} %d\n", 10*read.Add(1))
	}))
	defer server.Close()
	dir := t.TempDir()
	s := settings{
		urls: []string{server.URL + "/metrics"}, interval: time.Second, length: 8 * time.Second,
		dashboard: filepath.Join(dir, "dashboard.json"), rules: filepath.Join(dir, "rules.yaml"), out: filepath.Join(dir, "out.png"),
	}
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rate := panel(1, "Rate", `sum by (cluster) (rate(writes_total{cluster=~"$cluster"}[$__rate_interval]))`, "")
	variables := `"templating":{"list":[{"name":"cluster","label":"Member","type":"query","query":{"query":"label_values(writes_total, cluster)"},
		"includeAll":true,"allValue":".*","current":{"value":["$__all"]}}]}`
	write(s.rules, `groups: [{name: x, rules: [{alert: Busy, expr: "writes_total > 0", for: 5m}, {alert: Idle, expr: "writes_total < 0"}]}]`)
	db, err := open(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := s.record(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ panels, says, wrong string }{
		"data":                 {rate, "1 panels", ""},
		"a panel may be empty": {rate + "," + panel(2, "Failed", `rate(writes_total{result="x"}[1m])`, "none"), `"Failed" has no data and shows "none"`, ""},
		"empty":                {rate + "," + panel(2, "Failed", `rate(writes_total{result="x"}[1m])`, ""), `"Failed" has no data`, `["Failed"]`},
		"wrong query":          {panel(1, "Rate", "rate(writes_total)", ""), "", `panel "Rate": query rate(writes_total)`},
		"unknown variable":     {panel(1, "Rate", "writes_total{x=\"$y\"}", ""), "", "unknown variable $y"},
		"durations of alerts":  {rate, "alert Idle: its expression held for a total of 0s", ""},
	} {
		write(s.dashboard, `{"title":"Test",`+variables+`,"panels":[`+c.panels+`]}`)
		var said bytes.Buffer
		err := s.draw(t.Context(), db, &said)
		if !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: the command printed %s, want %s", name, &said, c.says)
		}
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
	if picture, err := os.Open(s.out); err != nil {
		t.Error(err)
	} else if decoded, err := png.Decode(picture); err != nil || decoded.Bounds().Dx() != width {
		t.Errorf("the picture has bounds %v and error %v, want width %d", decoded.Bounds(), err, width)
	}
	d := must(newData(db))(t)
	if values := must(d.values(t.Context(), "writes_total", "cluster"))(t); len(values) != 1 || values[0] != "a" {
		t.Errorf("label cluster has values %v, want only a", values)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
