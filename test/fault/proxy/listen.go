package proxy

import (
	"fmt"
	"net"
	"time"
)

// listener returns connections that can be frozen.
type listener struct {
	*net.TCPListener
	proxy *Proxy
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	tcp, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c := &conn{TCPConn: tcp, closed: make(chan struct{}), forget: l.proxy.forget}
	if !l.proxy.adopt(l, c) {
		c.reset() // the server detects the closed connection itself
	}
	return c, nil
}

// adopt records a connection. It returns false if the proxy was cut in the meantime.
func (p *Proxy) adopt(l listener, c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l {
		return false
	}
	if p.mode == BlackHole {
		c.freeze(false)
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// connections returns the matching connections. The caller holds the lock, and must release it
// before it resets them.
func (p *Proxy) connections(fit func(*conn) bool) []*conn {
	var all []*conn
	for c := range p.conns {
		if fit(c) {
			all = append(all, c)
		}
	}
	return all
}

// resetAll resets every connection.
func (p *Proxy) resetAll() {
	p.mu.Lock()
	all := p.connections(func(*conn) bool { return true })
	p.mu.Unlock()
	for _, c := range all {
		c.reset()
	}
}

// listen starts to serve. The caller holds the lock.
func (p *Proxy) listen() error {
	address, err := net.ResolveTCPAddr("tcp", p.address)
	if err != nil {
		return fmt.Errorf("proxy of %s: %w", p.options.Name, err)
	}
	timeout := time.NewTimer(relistenTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(relistenPoll)
	defer ticker.Stop()
	for {
		tcp, err := net.ListenTCP("tcp", address)
		if err == nil {
			l := listener{tcp, p}
			p.listener = l
			go func() { _ = p.server.ServeTLS(l, "", "") }() // returns when the listener is closed
			return nil
		}
		select {
		case <-timeout.C:
			return fmt.Errorf("proxy of %s: listen: %w", p.options.Name, err)
		case <-ticker.C:
		}
	}
}

// unlisten stops accepting connections. The caller holds the lock.
func (p *Proxy) unlisten() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}
