package nodeapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// refusalBurst and refusalRate limit the refused requests with a token from one address, because the
	// host reviews each token and each permission. The rate is per second.
	refusalBurst = 30
	refusalRate  = 1
	// refusalDelay is how long a client beyond the limit waits for its response. Otherwise, it would keep
	// the manager busy with TLS handshakes, because each refusal closes the connection.
	refusalDelay = time.Second
	// refusalAddresses is the number of addresses to remember.
	refusalAddresses = 4096
)

// errTooManyRefusals does not reveal whether the request's token is valid.
var errTooManyRefusals = &Failure{
	Code: http.StatusTooManyRequests, Exact: true,
	Message: "too many requests from this address had an invalid token or lacked permission, so the manager does not check its tokens for now. Try again in a minute",
}

// refusalCounter counts the refused requests with a token by address. An API server authenticates with a
// certificate, which needs no review.
type refusalCounter struct {
	clock clock.PassiveClock
	delay time.Duration

	mu        sync.Mutex
	byAddress *lru.Cache
}

func newRefusalCounter(c clock.PassiveClock) *refusalCounter {
	return &refusalCounter{clock: c, delay: refusalDelay, byAddress: lru.New(refusalAddresses)}
}

// budgetOfRequest returns the budget of the request's address, or nil if the request has no token.
func (f *refusalCounter) budgetOfRequest(r *http.Request) *refusalBudget {
	if r.Header.Get("Authorization") == "" && !strings.Contains(strings.Join(r.Header.Values("Sec-Websocket-Protocol"), ","), "bearer") {
		return nil
	}
	peer := addressWithoutPort(r.RemoteAddr)
	f.mu.Lock()
	defer f.mu.Unlock()
	known, _ := f.byAddress.Get(peer)
	b, ok := known.(*refusalBudget)
	if !ok {
		b = &refusalBudget{rate.NewLimiter(refusalRate, refusalBurst), f.clock}
		f.byAddress.Add(peer, b)
	}
	return b
}

// delayResponse delays the response to a client beyond the limit.
func (f *refusalCounter) delayResponse(r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), f.delay)
	defer cancel()
	<-ctx.Done()
}

// refusalBudget is the number of requests of one address that may still be refused.
type refusalBudget struct {
	limiter *rate.Limiter
	clock   clock.PassiveClock
}

func (b *refusalBudget) isExhausted() bool { return b != nil && b.limiter.TokensAt(b.clock.Now()) < 1 }

// recordRefusal records a refused request. Requests that were reviewed at the same time can exceed the budget,
// but only so far that the address recovers soon.
func (b *refusalBudget) recordRefusal() {
	if b == nil {
		return
	}
	if now := b.clock.Now(); b.limiter.TokensAt(now) > -refusalBurst {
		b.limiter.ReserveN(now, 1)
	}
}

// guardedResponse writes the response to one request. It closes the connection after the response, unless the
// request was authorized: a caller without permission must not keep connections.
type guardedResponse struct {
	http.ResponseWriter
	connection *acceptedConnection // nil if the listener did not accept it
	budget     *refusalBudget
	authorized bool
}

// markAuthorized records that the caller has permission.
func (v *guardedResponse) markAuthorized() {
	v.authorized = true
	if v.connection != nil {
		v.connection.markAuthorized()
	}
}

// WriteHeader implements http.ResponseWriter.
func (v *guardedResponse) WriteHeader(code int) {
	if !v.authorized {
		v.Header().Set("Connection", "close")
		if code == http.StatusUnauthorized || code == http.StatusForbidden {
			v.budget.recordRefusal()
		}
	}
	v.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find the wrapped writer's methods.
func (v *guardedResponse) Unwrap() http.ResponseWriter { return v.ResponseWriter }
