package controlplane_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/xylem-io/xylem/test/controlplane"
)

// brief is how long a test waits on a connection on which no data must arrive.
const brief = 50 * time.Millisecond

// echo starts a server that sends every line back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func newProxy(t *testing.T) *controlplane.Proxy {
	t.Helper()
	p, err := controlplane.NewProxy("127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *controlplane.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{c, bufio.NewReader(c)}
}

func (c *client) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *client) hear(t *testing.T, want string) {
	t.Helper()
	got, err := c.lines.ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("received %q, %v; want %q", got, err, want)
	}
}

func (c *client) hearNothing(t *testing.T) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(brief)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("received %q, %v; want nothing", got, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, p *controlplane.Proxy, m controlplane.ProxyMode) {
	t.Helper()
	if err := p.SetMode(m); err != nil {
		t.Fatal(err)
	}
}

func TestProxyPasses(t *testing.T) {
	c := dial(t, newProxy(t))
	c.say(t, "hello")
	c.hear(t, "hello")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v, want EOF", err)
	}
}

func TestProxyCutResetsAndRefuses(t *testing.T) {
	p := newProxy(t)
	c := dial(t, p)
	c.say(t, "hello")
	c.hear(t, "hello")

	set(t, p, controlplane.Cut)
	if _, err := c.lines.ReadByte(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read on a cut connection: %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", p.Address()); err == nil {
		t.Error("a cut proxy accepts connections")
	}

	set(t, p, controlplane.Pass)
	again := dial(t, p)
	again.say(t, "back")
	again.hear(t, "back")
}

func TestProxyBlackholePausesAndContinues(t *testing.T) {
	p := newProxy(t)
	old := dial(t, p)
	old.say(t, "before")
	old.hear(t, "before")

	set(t, p, controlplane.Blackhole)
	fresh := dial(t, p)
	old.say(t, "held")
	fresh.say(t, "held too")
	old.hearNothing(t)
	fresh.hearNothing(t)

	set(t, p, controlplane.Pass)
	old.hear(t, "held")
	fresh.hear(t, "held too")
}

func TestProxyCutEndsABlackhole(t *testing.T) {
	p := newProxy(t)
	c := dial(t, p)
	set(t, p, controlplane.Blackhole)
	set(t, p, controlplane.Cut)
	if _, err := c.lines.ReadByte(); err == nil {
		t.Error("a connection outlived the cut")
	}
	set(t, p, controlplane.Pass)
	again := dial(t, p)
	again.say(t, "back")
	again.hear(t, "back")
}

func TestProxyWithoutServerResets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := controlplane.NewProxy("127.0.0.1:0", gone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		return // The reset may already occur here.
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("read without a server: no error, want one")
	}
}

func TestClosedProxyRejectsModes(t *testing.T) {
	p := newProxy(t)
	c := dial(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lines.ReadByte(); err == nil {
		t.Error("a connection outlived the proxy")
	}
	if err := p.SetMode(controlplane.Pass); err == nil {
		t.Error("a closed proxy accepted a mode")
	}
}
