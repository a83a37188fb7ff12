package nodeapi

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/util/proxy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// MemberStreams contains the methods of streams.StreamOpener that this package and its callers use.
type MemberStreams interface {
	URLForPath(path ...string) *url.URL
	RequestTransport() http.RoundTripper
	UpgradeTransport(around func(member.DialFunc) member.DialFunc) proxy.UpgradeRequestRoundTripper
	HasPermission(ctx context.Context, verb, subresource, namespace string) (bool, error)
	CurrentToken() string
}

var _ MemberStreams = &member.StreamOpener{}

// Upstream is a linked member.
type Upstream struct {
	mirror.Member
	// Live reads the member's API server.
	Live    client.Reader
	Streams MemberStreams
	// Cache contains the member's leaves.
	Cache client.Reader
	// Meter counts the leaves' resource usage.
	Meter UsageMeter
	// ended is done when the link ends. requests counts the running requests.
	ended    context.Context //nolint:containedctx // of the link, not of a request
	requests sync.WaitGroup
}

// ContextOfLink returns a context that is done when the link ends.
func (u *Upstream) ContextOfLink() context.Context { return u.ended }

// EndRequest ends the request that Links.EnterLink began.
func (u *Upstream) EndRequest() { u.requests.Done() }

// Links holds this process's links by the node name of their members. The zero value is empty.
type Links struct {
	mu     sync.Mutex
	byNode map[string]*Upstream
}

// ServeMember adds a member until the context ends, and returns when the member's last request has ended.
func (l *Links) ServeMember(ctx context.Context, up *Upstream) {
	l.mu.Lock()
	if l.byNode == nil {
		l.byNode = map[string]*Upstream{}
	}
	up.ended = ctx
	l.byNode[up.NodeName] = up
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	if l.byNode[up.NodeName] == up {
		delete(l.byNode, up.NodeName)
	}
	l.mu.Unlock()
	up.requests.Wait()
}

// EnterLink returns the link of a virtual node, which may represent a group of the member's nodes, for one request, or nil
// if it has none. The caller must call EndRequest.
func (l *Links) EnterLink(node string) *Upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	up := l.byNode[node]
	if member, found := v1alpha1.MemberNodeOf(node); up == nil && found {
		up = l.byNode[member]
	}
	if up == nil || up.ended.Err() != nil {
		return nil
	}
	up.requests.Add(1)
	return up
}
