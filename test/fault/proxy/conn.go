package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// conn is a client's TCP connection, below TLS. A frozen connection neither reads nor writes, and
// stays open.
type conn struct {
	*net.TCPConn
	forget func(*conn)

	closed chan struct{}
	once   sync.Once

	mu sync.Mutex
	// frozen is closed when the connection is thawed. It is nil if the connection is not frozen.
	frozen chan struct{}
	// hole means that the connection is a black hole, and is never thawed.
	hole bool
}

type connKey struct{}

// withConn is http.Server's ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request.
func connOf(ctx context.Context) *conn {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		panic("the request did not arrive on a connection of this proxy")
	}
	return c
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if !c.await() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if !c.await() {
		return 0, net.ErrClosed
	}
	return c.TCPConn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.forget(c)
	})
	return c.TCPConn.Close()
}

// reset closes the connection so that the client receives a reset instead of a normal end.
func (c *conn) reset() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// isClosed reports whether the proxy closed the connection.
func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// await waits until the connection is not frozen. It returns false if the connection was closed.
func (c *conn) await() bool {
	for {
		c.mu.Lock()
		frozen := c.frozen
		c.mu.Unlock()
		if frozen == nil {
			return !c.isClosed()
		}
		select {
		case <-frozen:
		case <-c.closed:
			return false
		}
	}
}

// freeze stops all reads and writes, permanently if the connection is a black hole.
func (c *conn) freeze(hole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hole = c.hole || hole
	if c.frozen == nil {
		c.frozen = make(chan struct{})
	}
}

// thaw resumes reads and writes.
func (c *conn) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil && !c.hole {
		close(c.frozen)
		c.frozen = nil
	}
}

func (c *conn) isHole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hole
}
