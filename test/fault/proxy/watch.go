package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// drainTimeout is how long EndWatches waits for a watch whose client does not read.
const drainTimeout = time.Second

// watch is a running watch, from the arrival of its request.
type watch struct {
	// hold holds events back until it is closed; nil means that they pass.
	hold <-chan struct{}
	// lag returns the channel on which new events currently wait, or nil.
	lag func() <-chan struct{}
	// end is closed to end the watch normally, and done when it has ended.
	end, done chan struct{}
	once      sync.Once
}

type watchKey struct{}

func (w *watch) stop() { w.once.Do(func() { close(w.end) }) }

// EndWatches ends all running watches normally, the oldest first, as API servers do from time to
// time.
func (p *Proxy) EndWatches() {
	p.mu.Lock()
	running := slices.Clone(p.watches)
	p.mu.Unlock()
	for _, w := range running {
		w.stop()
		timer := time.NewTimer(drainTimeout)
		select {
		case <-w.done:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// GoneWatches makes the next n watches fail with 410 Expired.
func (p *Proxy) GoneWatches(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = n
}

// takeGone reports whether the next watch must fail with 410 Expired, and counts it.
func (p *Proxy) takeGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone == 0 {
		return false
	}
	p.gone--
	return true
}

func (p *Proxy) serveWatch(w http.ResponseWriter, r *http.Request, resource string) {
	if p.takeGone() {
		answer(w, apierrors.NewResourceExpired("too old resource version: "+errInjected.Error()))
		return
	}
	hold, refused := p.pastWatch(r, resource)
	if refused != nil {
		answer(w, refused)
		return
	}
	p.remember(r)
	running := &watch{hold: hold, lag: func() <-chan struct{} { return p.keptBack(resource) }, end: make(chan struct{}), done: make(chan struct{})}
	p.mu.Lock()
	p.watches = append(p.watches, running)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.watches = slices.DeleteFunc(p.watches, func(other *watch) bool { return other == running })
		p.mu.Unlock()
		close(running.done)
	}()
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), watchKey{}, running)))
}

// adoptWatch wraps the response body of a watch, so that the proxy can end the watch.
func adoptWatch(response *http.Response) error {
	ctx := response.Request.Context()
	if w, ok := ctx.Value(watchKey{}).(*watch); ok && response.StatusCode == http.StatusOK {
		body := response.Body
		response.Body = &events{ReadCloser: body, ctx: ctx, watch: w}
		// Closing the body ends a Read that waits for the server.
		go func() {
			select {
			case <-w.end:
				_ = body.Close()
			case <-w.done:
			}
		}()
	}
	return nil
}

// events wraps the response body of a watch, to hold back events.
type events struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // a body has no other way to know its request's
	watch *watch
}

// Read implements io.Reader.
func (e *events) Read(b []byte) (int, error) {
	if err := e.wait(e.watch.hold); err != nil {
		return 0, err
	}
	n, err := e.ReadCloser.Read(b)
	if err := e.wait(e.watch.lag()); err != nil {
		return 0, err
	}
	select {
	case <-e.watch.end:
		return 0, io.EOF
	default:
		return n, err
	}
}

// wait blocks while events are held back.
func (e *events) wait(hold <-chan struct{}) error {
	if hold == nil {
		return nil
	}
	select {
	case <-hold:
	case <-e.watch.end:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	return nil
}
