package inspect

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the difference between a cluster's clock and this machine's, within Precision. Known is
// false if no response had a date.
type Clock struct {
	Ahead, Precision time.Duration
	Known            bool
}

// ClockMeter measures a cluster's clock from the Date header of its responses.
type ClockMeter struct {
	clock.PassiveClock

	mu   sync.Mutex
	best Clock
}

// dateResolution is the resolution of the header (RFC 9110, 5.6.7). The fraction is truncated.
const dateResolution = time.Second

// Wrap returns a transport that measures each response.
func (m *ClockMeter) Wrap(next http.RoundTripper) http.RoundTripper {
	return measuredTransport{m, next}
}

type measuredTransport struct {
	*ClockMeter
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go cancel requests.
func (m measuredTransport) WrappedRoundTripper() http.RoundTripper { return m.next }

// RoundTrip implements http.RoundTripper.
func (m measuredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := m.Now()
	answer, err := m.next.RoundTrip(r)
	if err == nil {
		m.keepMostPrecise(sent, m.Now(), answer.Header.Get("Date"))
	}
	return answer, err
}

// keepMostPrecise keeps the most precise measurement.
func (m *ClockMeter) keepMostPrecise(sent, received time.Time, header string) {
	date, err := http.ParseTime(header)
	if err != nil {
		return
	}
	// The server set the date at some time between the two, and truncated the fraction.
	half := received.Sub(sent) / 2
	c := Clock{Ahead: date.Add(dateResolution / 2).Sub(sent.Add(half)), Precision: half + dateResolution/2, Known: true}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.best.Known || c.Precision < m.best.Precision {
		m.best = c
	}
}

// Measurement returns the most precise measurement.
func (m *ClockMeter) Measurement() Clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.best
}
