package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// carryTimeout is the timeout of a forwarded write. It also applies if the client disconnects.
	carryTimeout = time.Minute
	// groupLeases is the API group of Leases.
	groupLeases = "coordination.k8s.io"
)

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	switch {
	case changes(r, q):
		p.serveWrite(w, r, q)
	case q.Verb == verbWatch:
		p.serveWatch(w, r, q.Resource)
	case q.Verb == verbList:
		p.serveList(w, r, q.Resource)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// drop ends a request without a response, and resets the connection.
func drop(r *http.Request) {
	connOf(r.Context()).reset()
	panic(http.ErrAbortHandler)
}

// fail ends a request to which the server did not respond. It resets the connection, unless the
// client canceled the request. In that case, other requests on the connection continue.
func fail(r *http.Request) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	drop(r)
}

// serveWrite passes a write through the gate and executes the plan's decision.
func (p *Proxy) serveWrite(w http.ResponseWriter, r *http.Request, q Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(r)
	}
	q.Cluster, q.UserAgent = p.options.Name, r.UserAgent()
	if q.Name == "" && q.Verb == writes[http.MethodPost] {
		q.Name = nameIn(body)
	}
	q, finish := p.pass(r, body, q)
	if refused := refusal(q); refused != nil {
		if q.Fault == Stall {
			p.stall(r)
		}
		finish(int(refused.Status().Code))
		answer(w, refused)
		return
	}
	switch q.Fault {
	case Cut:
		drop(r)
	case BlackHole:
		p.swallow(r)
	default:
	}
	reply, err := p.carryOut(r, body)
	if err != nil {
		fail(r)
	}
	finish(reply.status)
	if q.Fault == CutAfter {
		drop(r)
	}
	reply.send(w)
}

// pass passes a write through the gate. It returns the recorded write, and a function that records
// the response. If the fault is a kill, pass kills the client and does not return.
func (p *Proxy) pass(r *http.Request, body []byte, q Request) (Request, func(int)) {
	p.log.gate.Lock()
	defer p.log.gate.Unlock()
	if connOf(r.Context()).isClosed() {
		panic(http.ErrAbortHandler) // The client is dead.
	}
	q.Seq = p.log.next()
	p.mu.Lock()
	plan, onKill := p.plan, p.onKill
	p.mu.Unlock()
	if plan != nil && (q.Group != groupLeases || p.options.Leases) {
		q.Fault = plan(q)
	}
	finish := p.log.add(q)
	if q.Fault != KillBefore && q.Fault != KillAfter {
		return q, finish
	}
	if q.Fault == KillAfter {
		if reply, err := p.carryOut(r, body); err == nil {
			finish(reply.status)
		}
	}
	if onKill != nil {
		onKill()
	}
	p.log.disconnect()
	panic(http.ErrAbortHandler)
}

// stall waits until the stall is over, or the client gives up.
func (p *Proxy) stall(r *http.Request) {
	timer := time.NewTimer(stallTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.whenHealed():
	case <-r.Context().Done():
	}
}

// swallow freezes a request's connection until the proxy is disarmed, and then drops the request.
func (p *Proxy) swallow(r *http.Request) {
	healed := p.whenHealed()
	c := connOf(r.Context())
	c.freeze(true)
	select {
	case <-healed:
	case <-c.closed:
	}
	drop(r)
}

func (p *Proxy) whenHealed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.healed
}

// reply is the server's complete response to a write.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (y reply) send(w http.ResponseWriter) {
	for key, values := range y.header {
		w.Header()[key] = values
	}
	w.WriteHeader(y.status)
	_, _ = w.Write(y.body)
}

// carryOut forwards a write and reads the response, even if the client disconnects in the meantime.
func (p *Proxy) carryOut(r *http.Request, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), carryTimeout)
	defer cancel()
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host = p.options.Server.Scheme, p.options.Server.Host
	out.Host, out.RequestURI = "", ""
	out.Body, out.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	return p.roundTrip(out)
}

func (p *Proxy) roundTrip(out *http.Request) (reply, error) {
	response, err := p.transport.RoundTrip(out)
	if err != nil {
		return reply{}, fmt.Errorf("forward: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, fmt.Errorf("read the response: %w", err)
	}
	return reply{response.StatusCode, response.Header, content}, nil
}
