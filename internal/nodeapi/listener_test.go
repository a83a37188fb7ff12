package nodeapi

import (
	"net"
	"testing"
)

// pipe is a connection from the given peer.
type pipe struct {
	net.Conn
	peer string
	done chan struct{}
}

func (p *pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(p.peer), Port: 1} }

func (p *pipe) Close() error {
	close(p.done)
	return nil
}

// Peers without credentials cannot block others, and known connections stay open.
func TestListener(t *testing.T) {
	l := limited(nil, 0)
	admit := func(peer string) *accepted {
		c, over := l.admit(&pipe{peer: peer, done: make(chan struct{})})
		if (c == nil) != (over == ofPeer) {
			t.Errorf("limit %q", over)
		}
		return c
	}
	var held []*accepted
	for range unknownPerPeer {
		c := admit("10.0.0.1")
		if c == nil {
			t.Fatal("a connection is refused below the limit")
		}
		held = append(held, c)
	}
	if admit("10.0.0.1") != nil {
		t.Error("one address can exceed its limit")
	}
	if c := admit("10.0.0.2"); c == nil {
		t.Error("another address is refused")
	}
	held[0].identified()
	held[0].identified() // a second call has no effect
	if admit("10.0.0.1") == nil {
		t.Error("an authenticated connection still counts as unknown")
	}
	if admit("10.0.0.1") != nil {
		t.Error("a connection that is identified twice counts twice")
	}
	for i := range 2 {
		if err := held[1].Close(); i == 0 && err != nil {
			t.Fatal(err)
		}
		held[1] = held[2]
	}
	for range 2 {
		if admit("10.0.0.1") == nil {
			t.Error("closed connections still count")
		}
	}
	if l.total != unknownPerPeer+2 {
		t.Errorf("%d connections are counted, want %d", l.total, unknownPerPeer+2)
	}
}
