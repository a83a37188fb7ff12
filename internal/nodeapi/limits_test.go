package nodeapi

import (
	"net"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// One member's sessions leave some for the others (I7).
func TestSessions(t *testing.T) {
	s := sessions{limits: Limits{Sessions: 3, MemberSessions: 2}}
	take := func(member string, code int) func() {
		t.Helper()
		release, failed := s.take(member)
		got := 0
		if failed != nil {
			got = failed.code
		}
		if got != code {
			t.Errorf("%s: %d, want %d", member, got, code)
		}
		return release
	}
	first := take("one", 0)
	take("one", 0)
	take("one", http.StatusTooManyRequests)
	second := take("two", 0)
	take("two", http.StatusTooManyRequests) // of all
	first()
	first() // counts once
	take("two", 0)
	take("one", http.StatusTooManyRequests)
	second()
	take("one", 0)
}

// pipe is a connection of a peer.
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

// Who shows no credentials keeps nobody else out for long, and those that are known stay.
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
			t.Fatal("refused too early")
		}
		held = append(held, c)
	}
	if admit("10.0.0.1") != nil {
		t.Error("one address holds more than it may")
	}
	if c := admit("10.0.0.2"); c == nil {
		t.Error("another address is refused")
	}
	held[0].identified()
	held[0].identified() // counts once
	if admit("10.0.0.1") == nil {
		t.Error("a connection that is known still counts")
	}
	if admit("10.0.0.1") != nil {
		t.Error("one that is identified twice counts twice")
	}
	for i := range 2 {
		if err := held[1].Close(); i == 0 && err != nil {
			t.Fatal(err)
		}
		held[1] = held[2]
	}
	for range 2 {
		if admit("10.0.0.1") == nil {
			t.Error("connections that were closed still count")
		}
	}
	if l.total != unknownPerPeer+2 {
		t.Errorf("%d connections count, want %d", l.total, unknownPerPeer+2)
	}
}

func TestSelfSigned(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	s := &SelfSigned{Name: "manager-0", Addresses: []net.IP{net.ParseIP("10.0.0.7")}, Clock: clock}
	get := func() string {
		t.Helper()
		c, err := s.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Leaf.VerifyHostname("10.0.0.7"); err != nil {
			t.Error(err)
		}
		if now := clock.Now(); now.Before(c.Leaf.NotBefore) || !now.Before(c.Leaf.NotAfter) {
			t.Error("it is not valid now")
		}
		return c.Leaf.SerialNumber.String()
	}
	first := get()
	clock.SetTime(clock.Now().Add(certificateLife / 2))
	if get() != first {
		t.Error("it was replaced early")
	}
	clock.SetTime(clock.Now().Add(certificateLife / 4))
	if get() == first {
		t.Error("it was not replaced before it expires")
	}
}
