package proxy

import (
	"slices"
	"sync"
	"time"
)

// Log records all writes in order. Proxies that share a Log share one gate: writes to all their
// clusters pass it one at a time.
type Log struct {
	// gate is held while the plan decides, and during a kill.
	gate sync.Mutex

	mu       sync.Mutex
	requests []Request
	proxies  []*Proxy
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{} }

// Requests returns the writes that have been recorded so far.
func (l *Log) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// Reset drops all writes, and numbers the next ones from 1.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// next returns the number of the next write. The caller holds the gate.
func (l *Log) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests) + 1
}

// add records a write. The caller holds the gate.
func (l *Log) add(r Request) func(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.At = time.Now()
	l.requests = append(l.requests, r)
	return func(status int) { l.finish(r, status) }
}

// finish records a write's response, unless the log was reset in the meantime.
func (l *Log) finish(r Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := r.Seq - 1; i < len(l.requests) && l.requests[i].At.Equal(r.At) {
		l.requests[i].Status = status
	}
}

// join registers a proxy, so that a kill resets its connections.
func (l *Log) join(p *Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxies = append(l.proxies, p)
}

func (l *Log) leave(p *Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxies = slices.DeleteFunc(l.proxies, func(other *Proxy) bool { return other == p })
}

// disconnect resets all connections of all proxies.
func (l *Log) disconnect() {
	l.mu.Lock()
	proxies := slices.Clone(l.proxies)
	l.mu.Unlock()
	for _, p := range proxies {
		p.resetAll()
	}
}
