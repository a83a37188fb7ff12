package nodeapi

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	// unknownLimit is how many connections there may be that nobody has shown
	// credentials on; unknownPerPeer is how many of them may come from one address. An
	// API server shows its own within milliseconds.
	unknownLimit   = 512
	unknownPerPeer = 128
	// knownLimit is how many connections there may be besides the sessions.
	knownLimit = 1024
)

// listener closes connections of peers that hold too many without credentials. It never
// waits: who is refused must not keep others out.
type listener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	total   int
	unknown map[string]int // by address
	count   int            // of all unknown
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

// Which limit a connection is refused by.
const (
	ofPeer = "peer"
	ofAll  = "all"
)

// admit a connection, or say which limit is reached.
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

// accepted is a connection, unknown until somebody has authenticated by it.
type accepted struct {
	net.Conn
	listener *listener
	peer     string
	known    atomic.Bool
	closed   atomic.Bool
}

// identified takes the connection off the unknown ones.
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

// acceptedOf is the connection of a request; nil if it did not come by the listener.
func acceptedOf(r *http.Request) *accepted {
	c, _ := r.Context().Value(connectionKey{}).(*accepted)
	return c
}

// below is the connection under TLS.
func below(c net.Conn) *accepted {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	a, _ := c.(*accepted)
	return a
}
