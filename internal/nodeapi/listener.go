package nodeapi

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	// unknownLimit is the maximum number of connections without an authenticated request.
	// unknownPerPeer is the maximum for one address. An API server authenticates within
	// milliseconds.
	unknownLimit   = 512
	unknownPerPeer = 128
	// knownLimit is the maximum number of authenticated connections besides the sessions.
	knownLimit = 1024
)

// listener closes a peer's new connections if too many of its connections have no authenticated
// request yet. It never blocks, so rejected peers cannot delay others.
type listener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	total   int
	unknown map[string]int // number of unknown connections by address
	count   int            // total number of unknown connections
}

func limited(l net.Listener, sessions int) *listener {
	return &listener{Listener: l, limit: unknownLimit + knownLimit + sessions, unknown: map[string]int{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, over := l.admit(conn)
		if c != nil {
			return c, nil
		}
		refusedConnections.WithLabelValues(over).Inc()
		_ = conn.Close()
	}
}

// ofPeer and ofAll are values of the metric's label. They mean that a connection was refused
// because of the limit for one address, or for all addresses.
const (
	ofPeer = "peer"
	ofAll  = "all"
)

// admit admits a connection, or returns the limit that was reached.
func (l *listener) admit(conn net.Conn) (c *accepted, over string) {
	peer, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		peer = conn.RemoteAddr().String()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unknown[peer] >= unknownPerPeer:
		return nil, ofPeer
	case l.total >= l.limit, l.count >= unknownLimit:
		return nil, ofAll
	}
	l.total++
	l.count++
	l.unknown[peer]++
	return &accepted{Conn: conn, listener: l, peer: peer}, ""
}

// accepted is an accepted connection. It is unknown until one of its requests is authenticated.
type accepted struct {
	net.Conn
	listener *listener
	peer     string
	known    atomic.Bool
	closed   atomic.Bool
}

// identified stops counting the connection as unknown.
func (c *accepted) identified() {
	if c.known.CompareAndSwap(false, true) {
		l := c.listener
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count--
		if l.unknown[c.peer]--; l.unknown[c.peer] == 0 {
			delete(l.unknown, c.peer)
		}
	}
}

// Close implements net.Conn.
func (c *accepted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.identified()
		c.listener.mu.Lock()
		c.listener.total--
		c.listener.mu.Unlock()
	}
	return c.Conn.Close()
}

type connectionKey struct{}

// acceptedOf returns the connection of a request, or nil if the listener did not accept it.
func acceptedOf(r *http.Request) *accepted {
	c, _ := r.Context().Value(connectionKey{}).(*accepted)
	return c
}

// below returns the connection below TLS.
func below(c net.Conn) *accepted {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	a, _ := c.(*accepted)
	return a
}
