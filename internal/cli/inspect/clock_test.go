package inspect

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

func TestNote(t *testing.T) {
	now := time.Date(2026, 11, 25, 15, 0, 0, 0, time.UTC)
	date := func(ahead time.Duration) string { return now.Add(ahead).Format(http.TimeFormat) }
	type answer struct {
		took time.Duration
		date string
	}
	for name, tc := range map[string]struct {
		answers []answer
		want    Clock
	}{
		"none":    {nil, Clock{}},
		"no date": {[]answer{{0, ""}, {0, "yesterday"}}, Clock{}},
		// Truncation in the header loses half a second on average.
		"no difference": {[]answer{{0, date(0)}}, Clock{Ahead: time.Second / 2, Precision: time.Second / 2, Known: true}},
		"an hour ahead": {[]answer{{0, date(time.Hour)}}, Clock{Ahead: time.Hour + time.Second/2, Precision: time.Second / 2, Known: true}},
		"the most precise of several": {[]answer{{8 * time.Second, date(9 * time.Second)}, {2 * time.Second, date(time.Second)}, {4 * time.Second, date(0)}},
			Clock{Ahead: time.Second / 2, Precision: 3 * time.Second / 2, Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &ClockMeter{PassiveClock: testingclock.NewFakePassiveClock(now)}
			for _, a := range tc.answers {
				d.keepMostPrecise(now, now.Add(a.took), a.date)
			}
			if diff := cmp.Diff(tc.want, d.Measurement()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRoundTrip measures the responses of a real server.
func TestRoundTrip(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	const behind = time.Hour
	d := &ClockMeter{PassiveClock: testingclock.NewFakePassiveClock(time.Now().Add(-behind))}
	c := &http.Client{Transport: d.Wrap(http.DefaultTransport)}
	answer, err := c.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if got := d.Measurement(); !got.Known || (got.Ahead-behind).Abs() > time.Minute {
		t.Errorf("got %+v, want the server's offset within a minute", got)
	}
}
