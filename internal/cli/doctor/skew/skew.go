// Package skew measures how far a cluster's clock is ahead of this machine's.
package skew

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
)

// Meter measures a cluster's clock from the Date header of its responses.
type Meter struct {
	clock.PassiveClock

	mu   sync.Mutex
	best facts.Clock
}

// second is the resolution of the header (RFC 9110, 5.6.7). The fraction is truncated.
const second = time.Second

// Wrap returns a transport that measures each response.
func (m *Meter) Wrap(next http.RoundTripper) http.RoundTripper { return measured{m, next} }

type measured struct {
	*Meter
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go cancel requests.
func (m measured) WrappedRoundTripper() http.RoundTripper { return m.next }

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := m.Now()
	answer, err := m.next.RoundTrip(r)
	if err == nil {
		m.note(sent, m.Now(), answer.Header.Get("Date"))
	}
	return answer, err
}

// note keeps the most precise measurement.
func (m *Meter) note(sent, received time.Time, header string) {
	date, err := http.ParseTime(header)
	if err != nil {
		return
	}
	// The server set the date at some time between the two, and truncated the fraction.
	half := received.Sub(sent) / 2
	c := facts.Clock{Ahead: date.Add(second / 2).Sub(sent.Add(half)), Precision: half + second/2, Known: true}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.best.Known || c.Precision < m.best.Precision {
		m.best = c
	}
}

// Measurement returns the most precise measurement.
func (m *Meter) Measurement() facts.Clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.best
}
