package lookup

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/util/proxy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/streams"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/nodeapi/usage"
)

// Streams contains the methods of streams.Opener that this package and its callers use.
type Streams interface {
	Location(path ...string) *url.URL
	Transport() http.RoundTripper
	Upgrades(around func(streams.Dial) streams.Dial) proxy.UpgradeRequestRoundTripper
	May(ctx context.Context, verb, subresource, namespace string) (bool, error)
	Token() string
}

var _ Streams = &streams.Opener{}

// Upstream is a linked member.
type Upstream struct {
	mirror.Member
	// Live reads the member's API server.
	Live    client.Reader
	Streams Streams
	// Cache contains the member's leaves.
	Cache client.Reader
	// Meter counts the leaves' resource usage.
	Meter usage.Meter
	// ended is done when the link ends. requests counts the running requests.
	ended    context.Context //nolint:containedctx // of the link, not of a request
	requests sync.WaitGroup
}

// Ended returns a context that is done when the link ends.
func (u *Upstream) Ended() context.Context { return u.ended }

// Leave ends the request that Links.Enter began.
func (u *Upstream) Leave() { u.requests.Done() }

// Links holds this process's links by the virtual node's name. The zero value is empty.
type Links struct {
	mu sync.Mutex
	by map[string]*Upstream
}

// Serve adds a member until the context ends, and returns when the member's last request has ended.
func (l *Links) Serve(ctx context.Context, up *Upstream) {
	l.mu.Lock()
	if l.by == nil {
		l.by = map[string]*Upstream{}
	}
	up.ended = ctx
	l.by[up.NodeName] = up
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	if l.by[up.NodeName] == up {
		delete(l.by, up.NodeName)
	}
	l.mu.Unlock()
	up.requests.Wait()
}

// Enter returns a virtual node's link for one request, or nil if it has none. The caller must call
// Leave.
func (l *Links) Enter(node string) *Upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	up := l.by[node]
	if up == nil || up.ended.Err() != nil {
		return nil
	}
	up.requests.Add(1)
	return up
}
