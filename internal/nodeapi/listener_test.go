package nodeapi

import (
	"fmt"
	"net"
	"testing"
)

// pipe is a connection from the given peer.
type pipe struct {
	net.Conn
	peer   string
	closed bool
}

func (p *pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(p.peer), Port: 1} }

func (p *pipe) Close() error {
	p.closed = true
	return nil
}

// Peers without permission close only each other's connections, and known connections stay open.
func TestListener(t *testing.T) {
	l := limitConnections(nil, 0)
	admit := func(peer string) (c *acceptedConnection, over string) {
		t.Helper()
		c, refused, over := l.admitConnection(&pipe{peer: peer})
		if refused != nil {
			if err := refused.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return c, over
	}
	closed := func(c *acceptedConnection) bool { return c.Conn.(*pipe).closed }
	server, _ := admit("10.0.0.1")
	var held []*acceptedConnection
	for i := range unknownLimit - 1 {
		c, over := admit(fmt.Sprintf("10.0.1.%d", i%4))
		if over != "" {
			t.Fatalf("connection %d reaches the limit %q", i, over)
		}
		held = append(held, c)
	}
	second, over := admit("10.0.0.1")
	if second == nil || over != limitUnknown || !closed(held[0]) || closed(server) {
		t.Fatalf("limit %q: the oldest connection of the address with the most connections must be closed, and no other", over)
	}
	for range 2 * unknownLimit {
		if c, _ := admit("10.0.1.9"); c == nil {
			t.Fatal("a new connection is refused, although others are unknown")
		}
	}
	if closed(server) || closed(second) {
		t.Error("an attacker's connections close those of an address with few connections")
	}
	server.markAuthorized()
	server.markAuthorized() // a second call has no effect
	for range 2 * unknownLimit {
		admit("10.0.0.1")
	}
	if closed(server) || !closed(second) {
		t.Errorf("closed: the known connection %v, want false; an old unknown connection of the same address %v, want true", closed(server), closed(second))
	}
	if len(l.unknown) != unknownLimit || l.total != unknownLimit+1 {
		t.Errorf("%d unknown connections and %d in total, want %d and one more", len(l.unknown), l.total, unknownLimit)
	}
	for l.total < l.limit { // known connections fill the listener
		c, _ := admit("10.0.0.1")
		c.markAuthorized()
	}
	for len(l.unknown) > 0 {
		c, over := admit("10.0.0.1")
		if over == "" {
			t.Fatal("the limit on all connections has no effect")
		}
		c.markAuthorized()
	}
	last := &pipe{peer: "10.0.0.1"}
	if c, refused, over := l.admitConnection(last); c != nil || refused != net.Conn(last) || over != limitTotal || closed(server) {
		t.Errorf("limit %q: the new connection must be refused if all others are known", over)
	}
	for range 2 { // the second call has no effect
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if l.total != l.limit-1 {
		t.Errorf("%d connections are counted, want %d", l.total, l.limit-1)
	}
}
