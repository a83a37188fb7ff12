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

// limitedListener limits the connections. Beyond a limit, it closes an unknown connection, so that peers
// without permission can close only each other's connections. It never blocks.
type limitedListener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	total   int
	unknown []*acceptedConnection // oldest first
	peers   map[string]int        // number of unknown connections by address
}

func limitConnections(l net.Listener, sessions int) *limitedListener {
	return &limitedListener{Listener: l, limit: unknownLimit + knownLimit + sessions, peers: map[string]int{}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, refused, over := l.admitConnection(conn)
		if refused != nil {
			refusedConnections.WithLabelValues(over).Inc()
			_ = refused.Close()
		}
		if c != nil {
			return c, nil
		}
	}
}

// limitPerPeer, limitUnknown and limitTotal are values of the metric's label. They name the limit because of which a
// connection was closed: on refused requests from one address, on unknown connections, or on all
// connections.
const (
	limitPerPeer = "peer"
	limitUnknown = "unknown"
	limitTotal   = "all"
)

// admitConnection admits a connection. If a limit was reached, it also returns the limit and the connection to
// close: the oldest unknown one of the address with the most unknown connections, or the new one if
// all connections are known.
func (l *limitedListener) admitConnection(conn net.Conn) (c *acceptedConnection, refused net.Conn, over string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.unknown) >= unknownLimit:
		over = limitUnknown
	case l.total >= l.limit:
		over = limitTotal
	}
	if over != "" {
		if len(l.unknown) == 0 {
			return nil, conn, over
		}
		most := slices.Max(slices.Collect(maps.Values(l.peers)))
		oldest := l.unknown[slices.IndexFunc(l.unknown, func(c *acceptedConnection) bool { return l.peers[c.peer] == most })]
		oldest.stopCounting()
		refused = oldest
	}
	c = &acceptedConnection{Conn: conn, listener: l, peer: addressWithoutPort(conn.RemoteAddr().String())}
	l.total++
	l.unknown = append(l.unknown, c)
	l.peers[c.peer]++
	return c, refused, over
}

// addressWithoutPort returns an address without its port.
func addressWithoutPort(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// acceptedConnection is an accepted connection. It is unknown until one of its requests is authorized.
type acceptedConnection struct {
	net.Conn
	listener *limitedListener
	peer     string
	released bool // no longer counts; protected by listener.mu
}

// stopCountingUnknown stops counting the connection as unknown. The caller must hold the listener's lock.
func (c *acceptedConnection) stopCountingUnknown() {
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

// stopCounting stops counting the connection. The caller must hold the listener's lock.
func (c *acceptedConnection) stopCounting() {
	c.stopCountingUnknown()
	if !c.released {
		c.released = true
		c.listener.total--
	}
}

// markAuthorized makes the connection known.
func (c *acceptedConnection) markAuthorized() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.stopCountingUnknown()
}

// Close implements net.Conn.
func (c *acceptedConnection) Close() error {
	c.listener.mu.Lock()
	c.stopCounting()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// connectionOfRequest returns the connection of a request, or nil if the listener did not accept it.
func connectionOfRequest(r *http.Request) *acceptedConnection {
	c, _ := r.Context().Value(connectionKey{}).(*acceptedConnection)
	return c
}

// connectionBelowTLS returns the connection below TLS.
func connectionBelowTLS(c net.Conn) *acceptedConnection {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	a, _ := c.(*acceptedConnection)
	return a
}
