package nodeapi

import (
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

const (
	// unknownLimit is the maximum number of connections without an authorized request. An API server is
	// authorized within milliseconds.
	unknownLimit = 512
	// knownLimit is the maximum number of authorized connections besides the sessions.
	knownLimit = 1024
)

// listener limits the connections. Beyond a limit, it closes an unknown connection, so that peers
// without permission can close only each other's connections. It never blocks.
type listener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	total   int
	unknown []*accepted    // oldest first
	peers   map[string]int // number of unknown connections by address
}

func limited(l net.Listener, sessions int) *listener {
	return &listener{Listener: l, limit: unknownLimit + knownLimit + sessions, peers: map[string]int{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, refused, over := l.admit(conn)
		if refused != nil {
			refusedConnections.WithLabelValues(over).Inc()
			_ = refused.Close()
		}
		if c != nil {
			return c, nil
		}
	}
}

// ofPeer, ofUnknown and ofAll are values of the metric's label. They name the limit because of which a
// connection was closed: on refused requests from one address, on unknown connections, or on all
// connections.
const (
	ofPeer    = "peer"
	ofUnknown = "unknown"
	ofAll     = "all"
)

// admit admits a connection. If a limit was reached, it also returns the limit and the connection to
// close: the oldest unknown one of the address with the most unknown connections, or the new one if
// all connections are known.
func (l *listener) admit(conn net.Conn) (c *accepted, refused net.Conn, over string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.unknown) >= unknownLimit:
		over = ofUnknown
	case l.total >= l.limit:
		over = ofAll
	}
	if over != "" {
		if len(l.unknown) == 0 {
			return nil, conn, over
		}
		most := slices.Max(slices.Collect(maps.Values(l.peers)))
		oldest := l.unknown[slices.IndexFunc(l.unknown, func(c *accepted) bool { return l.peers[c.peer] == most })]
		oldest.leave()
		refused = oldest
	}
	c = &accepted{Conn: conn, listener: l, peer: address(conn.RemoteAddr().String())}
	l.total++
	l.unknown = append(l.unknown, c)
	l.peers[c.peer]++
	return c, refused, over
}

// address returns an address without its port.
func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// accepted is an accepted connection. It is unknown until one of its requests is authorized.
type accepted struct {
	net.Conn
	listener *listener
	peer     string
	left     bool // no longer counts; protected by listener.mu
}

// noLongerUnknown stops counting the connection as unknown. The caller must hold the listener's lock.
func (c *accepted) noLongerUnknown() {
	l := c.listener
	i := slices.Index(l.unknown, c)
	if i < 0 {
		return
	}
	l.unknown = slices.Delete(l.unknown, i, i+1)
	if l.peers[c.peer]--; l.peers[c.peer] == 0 {
		delete(l.peers, c.peer)
	}
}

// leave stops counting the connection. The caller must hold the listener's lock.
func (c *accepted) leave() {
	c.noLongerUnknown()
	if !c.left {
		c.left = true
		c.listener.total--
	}
}

// authorized makes the connection known.
func (c *accepted) authorized() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.noLongerUnknown()
}

// Close implements net.Conn.
func (c *accepted) Close() error {
	c.listener.mu.Lock()
	c.leave()
	c.listener.mu.Unlock()
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
