package facts

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// dated measures a cluster's clock by the header Date of its answers.
type dated struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	best Clock
}

// second is the resolution of the header (RFC 9110, 5.6.7). It is truncated.
const second = time.Second

// wrap returns a transport that measures each answer.
func (d *dated) wrap(next http.RoundTripper) http.RoundTripper { return measured{d, next} }

type measured struct {
	*dated
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go cancel requests.
func (m measured) WrappedRoundTripper() http.RoundTripper { return m.next }

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := m.clock.Now()
	answer, err := m.next.RoundTrip(r)
	if err == nil {
		m.note(sent, m.clock.Now(), answer.Header.Get("Date"))
	}
	return answer, err
}

// note keeps the most precise measurement.
func (d *dated) note(sent, received time.Time, header string) {
	date, err := http.ParseTime(header)
	if err != nil {
		return
	}
	// The server took its time at some moment between the two, and cut the fraction.
	half := received.Sub(sent) / 2
	c := Clock{Ahead: date.Add(second / 2).Sub(sent.Add(half)), Precision: half + second/2, Known: true}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.best.Known || c.Precision < d.best.Precision {
		d.best = c
	}
}

func (d *dated) measurement() Clock {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.best
}
