package lookup

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/util/proxy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/nodeapi/usage"
)

// Streams are a member's, as member.Streams has them.
type Streams interface {
	Location(path ...string) *url.URL
	Transport() http.RoundTripper
	Upgrades(around func(member.Dial) member.Dial) proxy.UpgradeRequestRoundTripper
	May(ctx context.Context, verb, subresource, namespace string) (bool, error)
	Token() string
}

var _ Streams = &member.Streams{}

// Upstream is a member that is linked, as far as streams need it.
type Upstream struct {
	mirror.Member
	// Live reads the member's API server.
	Live    client.Reader
	Streams Streams
	// Cache of the member has its leaves.
	Cache client.Reader
	// Meter counts what the leaves use.
	Meter usage.Meter
	// ended ends with the link; requests are those that still run.
	ended    context.Context //nolint:containedctx // of the link, not of a request
	requests sync.WaitGroup
}

// Ended ends with the link.
func (u *Upstream) Ended() context.Context { return u.ended }

// Leave ends what Links.Enter began.
func (u *Upstream) Leave() { u.requests.Done() }

// Links of this process, by the name of the virtual node. The zero value has none.
type Links struct {
	mu sync.Mutex
	by map[string]*Upstream
}

// Serve a member until the context ends, and return when the last request has.
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

// Enter finds the link of a virtual node for one request; nil if there is none. The caller
// calls Leave.
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
