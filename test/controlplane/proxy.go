package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ProxyMode defines what a Proxy does with traffic.
type ProxyMode int

const (
	// Pass forwards everything.
	Pass ProxyMode = iota
	// Cut refuses new connections and resets existing ones.
	Cut
	// Blackhole accepts connections, but forwards no data in either direction, on new and existing
	// connections. No data is lost: with Pass, all connections continue.
	Blackhole
)

// String implements fmt.Stringer.
func (m ProxyMode) String() string {
	switch m {
	case Pass:
		return "pass"
	case Cut:
		return "cut"
	case Blackhole:
		return "blackhole"
	default:
		return fmt.Sprintf("ProxyMode(%d)", int(m))
	}
}

// side distinguishes the two connections of a proxied connection.
type side int

const (
	clientSide side = iota
	serverSide
)

const (
	// dialTimeout is the timeout for connections to the server behind a proxy.
	dialTimeout = 5 * time.Second
	// relistenTimeout is how long the proxy waits for its own address to be free again.
	relistenTimeout = 5 * time.Second
)

// Proxy forwards TCP connections from a fixed address to another address, and can simulate a
// failing network. Its methods are safe for concurrent use.
type Proxy struct {
	address, server string

	mu       sync.Mutex
	mode     ProxyMode
	latency  time.Duration
	listener net.Listener // nil while cut or closed
	closed   bool
	conns    map[net.Conn]side
	accepted int
	// passing is closed while data may pass. An open channel replaces it when data may not pass.
	passing chan struct{}
	ended   chan struct{} // closed by Close
}

// NewProxy listens on address and forwards to server. Close it after use.
func NewProxy(address, server string) (*Proxy, error) {
	p := &Proxy{
		address: address, server: server,
		conns: map[net.Conn]side{}, passing: make(chan struct{}), ended: make(chan struct{}),
	}
	close(p.passing)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listen(); err != nil {
		return nil, err
	}
	// The system may have selected the port.
	p.address = p.listener.Addr().String()
	return p, nil
}

// Address returns the proxy's address, as host:port.
func (p *Proxy) Address() string { return p.address }

// Mode returns the current mode.
func (p *Proxy) Mode() ProxyMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// Connections returns how many client connections are open, and how many were accepted since the
// start.
func (p *Proxy) Connections() (open, accepted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.conns {
		if s == clientSide {
			open++
		}
	}
	return open, p.accepted
}

// SetLatency delays all data by d in each direction; 0 disables the delay.
func (p *Proxy) SetLatency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// SetMode changes the mode, including for existing connections. When it returns, the new mode is in
// effect.
func (p *Proxy) SetMode(m ProxyMode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the proxy is closed")
	}
	if p.mode == Pass && m != Pass {
		p.passing = make(chan struct{})
	}
	if m == Cut {
		if err := p.cut(); err != nil {
			return err
		}
	} else if p.listener == nil {
		if err := p.listen(); err != nil {
			return err
		}
	}
	if p.mode != Pass && m == Pass {
		close(p.passing)
	}
	p.mode = m
	return nil
}

// Close stops listening and resets every connection.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	close(p.ended)
	return p.cut()
}

// cut closes the listener and resets connections. The caller holds the lock.
func (p *Proxy) cut() error {
	for c := range p.conns {
		reset(c)
	}
	if p.listener == nil {
		return nil
	}
	l := p.listener
	p.listener = nil
	if err := l.Close(); err != nil {
		return fmt.Errorf("cut %s off: %w", p.address, err)
	}
	return nil
}

// reset closes a connection so that its peer receives a reset instead of a normal end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// listen starts accepting. The caller holds the lock.
func (p *Proxy) listen() error {
	timeout := time.NewTimer(relistenTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		l, err := net.Listen("tcp", p.address)
		if err == nil {
			p.listener = l
			go p.accept(l)
			return nil
		}
		select {
		case <-timeout.C:
			return fmt.Errorf("listen on %s: %w", p.address, err)
		case <-ticker.C:
		}
	}
}

func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // The listener was closed; on loopback, Accept fails for no other reason.
		}
		go p.serve(l, c)
	}
}

// serve connects a client to the server until both directions have ended.
func (p *Proxy) serve(l net.Listener, client net.Conn) {
	if !p.track(l, client, clientSide) {
		reset(client)
		return
	}
	defer p.forget(client)
	if !p.awaitPass() {
		return
	}
	server, err := net.DialTimeout("tcp", p.server, dialTimeout)
	if err != nil {
		reset(client) // A network that cannot reach the server would do the same.
		return
	}
	if !p.track(l, server, serverSide) {
		reset(server)
		return
	}
	defer p.forget(server)

	var wg sync.WaitGroup
	wg.Go(func() { p.pump(server, client) })
	wg.Go(func() { p.pump(client, server) })
	wg.Wait()
}

// track records a connection, so that cut finds it. It returns false if the connection's listener
// is no longer the current one.
func (p *Proxy) track(l net.Listener, c net.Conn, s side) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l {
		return false
	}
	p.conns[c] = s
	if s == clientSide {
		p.accepted++
	}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// awaitPass waits until data may pass. It returns false if the proxy was closed.
func (p *Proxy) awaitPass() bool {
	for {
		p.mu.Lock()
		passing, latency, closed := p.passing, p.latency, p.closed
		p.mu.Unlock()
		if closed {
			return false
		}
		select {
		case <-passing:
			return latency == 0 || p.delay(latency)
		case <-p.ended:
		}
	}
}

func (p *Proxy) delay(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}

// pump copies data from src to dst while data may pass, and forwards the end of the stream.
func (p *Proxy) pump(dst, src net.Conn) {
	buffer := make([]byte, 32*1024)
	for {
		n, err := src.Read(buffer)
		if !p.awaitPass() {
			break
		}
		if n > 0 {
			if _, werr := dst.Write(buffer[:n]); werr != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			// The other direction may still have data.
			if tcp, ok := dst.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
				return
			}
			break
		}
		if err != nil {
			break
		}
	}
	reset(dst)
	reset(src)
}
