package facts

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
		// The header cuts half a second on average.
		"no difference": {[]answer{{0, date(0)}}, Clock{Ahead: time.Second / 2, Precision: time.Second / 2, Known: true}},
		"an hour fast":  {[]answer{{0, date(time.Hour)}}, Clock{Ahead: time.Hour + time.Second/2, Precision: time.Second / 2, Known: true}},
		"the most precise": {[]answer{{8 * time.Second, date(9 * time.Second)}, {2 * time.Second, date(time.Second)}, {4 * time.Second, date(0)}},
			Clock{Ahead: time.Second / 2, Precision: 3 * time.Second / 2, Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dated{clock: testingclock.NewFakePassiveClock(now)}
			for _, a := range tc.answers {
				d.note(now, now.Add(a.took), a.date)
			}
			if diff := cmp.Diff(tc.want, d.measurement()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A transport measures the answers of a real server.
func TestRoundTrip(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	const behind = time.Hour
	d := &dated{clock: testingclock.NewFakePassiveClock(time.Now().Add(-behind))}
	c := &http.Client{Transport: d.wrap(http.DefaultTransport)}
	answer, err := c.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if got := d.measurement(); !got.Known || (got.Ahead-behind).Abs() > time.Minute {
		t.Errorf("got %+v", got)
	}
}

func TestGate(t *testing.T) {
	for line, want := range map[string][]string{
		`kubernetes_feature_enabled{name="VolumeAttributesClass",stage=""} 1`:       {"VolumeAttributesClass", "", "1"},
		`kubernetes_feature_enabled{name="StorageCapacityScoring",stage="ALPHA"} 0`: {"StorageCapacityScoring", "ALPHA", "0"},
		`apiserver_request_total{name="x",stage=""} 1`:                              nil,
	} {
		var got []string
		for i, part := range gate.FindSubmatch([]byte(line)) {
			if i > 0 {
				got = append(got, string(part))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", line, diff)
		}
	}
}
