package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ProxyMode is what a Proxy does with traffic.
type ProxyMode int

const (
	// Pass forwards everything.
	Pass ProxyMode = iota
	// Cut refuses new connections and resets those that there are.
	Cut
	// Blackhole accepts connections and moves no byte either way, on those that
	// there are neither. Nothing is lost: back in Pass, all of them go on.
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

// side tells the two connections of which one is made up apart.
type side int

const (
	clientSide side = iota
	serverSide
)

const (
	// dialTimeout bounds connecting to the server behind a proxy.
	dialTimeout = 5 * time.Second
	// relistenTimeout bounds waiting for the proxy's own address to be free again.
	relistenTimeout = 5 * time.Second
)

// Proxy forwards TCP connections from an address that never changes to another,
// and can represent a network that fails. Its methods may be called from many
// goroutines.
type Proxy struct {
	address, server string

	mu       sync.Mutex
	mode     ProxyMode
	latency  time.Duration
	listener net.Listener // nil while cut or closed
	closed   bool
	conns    map[net.Conn]side
	accepted int
	// passing is closed while bytes may move, and replaced when they may not.
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
	// The port may have been chosen by the system.
	p.address = p.listener.Addr().String()
	return p, nil
}

// Address returns where the proxy listens, as host:port.
func (p *Proxy) Address() string { return p.address }

// Mode returns the present mode.
func (p *Proxy) Mode() ProxyMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// Connections returns how many connections of clients are open now, and how many
// were accepted since the start.
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

// SetLatency delays each piece of data by d, each way; 0 ends that.
func (p *Proxy) SetLatency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// SetMode changes the mode, for connections that there are too. When it returns,
// the new mode holds.
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

// cut closes the listener and resets connections. The lock is held.
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
		return fmt.Errorf("cutting %s off: %w", p.address, err)
	}
	return nil
}

// reset closes a connection so that its peer sees a reset, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// listen starts accepting. The lock is held.
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
			return fmt.Errorf("listening on %s: %w", p.address, err)
		case <-ticker.C:
		}
	}
}

func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // Closed: nothing else ends a listener on loopback.
		}
		go p.serve(l, c)
	}
}

// serve joins a client to the server until either ends.
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
		reset(client) // As the network would, if it could not reach the server.
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

// track remembers a connection, so that cut finds it. It is false if the
// listener that it came by is not the present one any more.
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

// awaitPass waits until bytes may move. It is false if the proxy was closed.
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

// pump copies from src to dst while bytes may move, and passes on its end.
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
			// The other direction may still have something to say.
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
