package nodeapi

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/util/proxy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// streams are a member's, as member.Streams has them.
type streams interface {
	Location(path ...string) *url.URL
	Transport() http.RoundTripper
	Upgrades(around func(member.Dial) member.Dial) proxy.UpgradeRequestRoundTripper
	May(ctx context.Context, verb, subresource, namespace string) (bool, error)
	Token() string
}

var _ streams = &member.Streams{}

// upstream is a member that is linked, as far as streams need it.
type upstream struct {
	mirror.Member
	live    client.Reader
	streams streams
	// ctx ends with the link; sessions are those that still run.
	ctx      context.Context //nolint:containedctx // of the link, not of a request
	sessions sync.WaitGroup
}

// links of this process, by the name of the virtual node.
type links struct {
	mu sync.Mutex
	by map[string]*upstream
}

// Setup lets the Pods of a member be reached for as long as its link lives.
func (s *Server) Setup(link *member.Link) error {
	link.Run(func(ctx context.Context) error {
		s.serve(ctx, &upstream{Member: link.Member, live: link.Live, streams: link.Streams, ctx: ctx})
		return nil
	})
	return nil
}

// serve a member until the context ends, and return when the last stream has.
func (s *Server) serve(ctx context.Context, up *upstream) {
	s.links.mu.Lock()
	if s.links.by == nil {
		s.links.by = map[string]*upstream{}
	}
	s.links.by[up.NodeName] = up
	s.links.mu.Unlock()
	<-ctx.Done()
	s.links.mu.Lock()
	if s.links.by[up.NodeName] == up {
		delete(s.links.by, up.NodeName)
	}
	s.links.mu.Unlock()
	up.sessions.Wait()
	forgetMetrics(up.Registration)
}

// enter finds the link of a virtual node for one request; nil if there is none. The caller
// calls Done of its sessions.
func (l *links) enter(node string) *upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	up := l.by[node]
	if up == nil || up.ctx.Err() != nil {
		return nil
	}
	up.sessions.Add(1)
	return up
}
