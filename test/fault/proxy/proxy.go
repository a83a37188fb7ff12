package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

const (
	// loopback is the address on which proxies listen.
	loopback = "127.0.0.1"
	// headerTimeout is the timeout for reading a request's header.
	headerTimeout = 30 * time.Second
	// relistenTimeout and relistenPoll are the timeout and the polling interval of the wait until the
	// proxy's address is free again.
	relistenTimeout = 5 * time.Second
	relistenPoll    = 20 * time.Millisecond
)

// Options configures a proxy.
type Options struct {
	// Name is the cluster's name in the log.
	Name string
	// Server is the API server's URL. CA is the PEM-encoded CA certificate that verifies it.
	Server *url.URL
	CA     []byte
	// Address is the address to listen on; empty means a free port on 127.0.0.1.
	Address string
	// Log is the log to which the proxy writes; nil means a new one.
	Log *Log
	// Leases passes writes to Leases to the plan, too.
	Leases bool
}

// Plan returns the fault for a write. The proxy calls it before it forwards the write, for one
// write at a time. A plan must not wait for other writes.
type Plan func(Request) Fault

// Proxy is a proxy in front of one API server. Its methods, except Close, are safe for concurrent
// use, also from plans and OnKill functions.
type Proxy struct {
	options   Options
	log       *Log
	ca        []byte
	address   string
	transport *http.Transport
	forward   *httputil.ReverseProxy
	server    *http.Server

	mu       sync.Mutex
	listener net.Listener // nil while cut or closed
	closed   bool
	mode     Fault
	conns    map[*conn]struct{}
	plan     Plan
	onKill   func()
	healed   chan struct{} // closed and replaced by Disarm
	watches  []*watch      // running watches, in order of arrival
	gone     int
	past     past
}

// New starts a proxy. Close it after use.
func New(o Options) (*Proxy, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(o.CA) {
		return nil, fmt.Errorf("proxy of %s: the CA is not a certificate", o.Name)
	}
	if o.Address == "" {
		o.Address = net.JoinHostPort(loopback, "0")
	}
	if o.Log == nil {
		o.Log = NewLog()
	}
	p := &Proxy{
		options: o, log: o.Log, address: o.Address,
		conns: map[*conn]struct{}{}, healed: make(chan struct{}),
		transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
			// Do not add headers that the client did not send.
			DisableCompression: true,
		},
	}
	certificate, ca, err := newCertificate(o.Name)
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", o.Name, err)
	}
	p.ca = ca
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Transport: p.transport, ErrorLog: quiet, FlushInterval: -1,
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(o.Server); r.Out.Host = "" },
		ModifyResponse: adoptWatch,
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, _ error) { fail(r) },
	}
	p.server = &http.Server{
		Handler: p, ErrorLog: quiet, ConnContext: withConn, ReadHeaderTimeout: headerTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.address = p.listener.Addr().String()
	p.log.join(p)
	return p, nil
}

// URL returns the URL for clients.
func (p *Proxy) URL() string { return "https://" + p.address }

// CA returns the CA certificate that verifies the proxy's certificate, in PEM.
func (p *Proxy) CA() []byte { return p.ca }

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.log.leave(p)
	p.Disarm()
	p.FreshLists()
	p.mu.Lock()
	p.closed = true
	p.unlisten()
	p.mu.Unlock()
	p.resetAll()
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
}

// Arm sets the plan for all later writes.
func (p *Proxy) Arm(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Disarm removes the plan, so that the proxy forwards everything, and ends stalls and black holes.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	p.plan = nil
	close(p.healed)
	p.healed = make(chan struct{})
	holes := p.connections((*conn).isHole)
	p.mu.Unlock()
	for _, c := range holes {
		c.reset()
	}
}

// OnKill sets the function that kills the client. It must return only when the client is dead.
func (p *Proxy) OnKill(kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onKill = kill
}

// Log returns the writes that all proxies that share the Log have recorded so far.
func (p *Proxy) Log() []Request { return p.log.Requests() }

// Reset drops the recorded writes.
func (p *Proxy) Reset() { p.log.Reset() }

// SetMode sets what happens to all traffic: Pass, Cut (connections are reset and refused) or
// BlackHole (no data passes; after Pass, everything continues).
func (p *Proxy) SetMode(mode Fault) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errors.New("the proxy is closed")
	}
	var err error
	var cut []*conn
	switch mode {
	case Cut:
		p.unlisten()
		cut = p.connections(func(*conn) bool { return true })
	case Pass, BlackHole:
		for c := range p.conns {
			if mode == Pass {
				c.thaw()
			} else {
				c.freeze(false)
			}
		}
		if p.listener == nil {
			err = p.listen()
		}
	default:
		err = fmt.Errorf("fault %s cannot be a proxy's mode", mode)
	}
	if err == nil {
		p.mode = mode
	}
	p.mu.Unlock()
	for _, c := range cut {
		c.reset()
	}
	return err
}
