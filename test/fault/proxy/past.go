package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Parameters of lists and watches.
const (
	paramVersion = "resourceVersion"
	paramMatch   = "resourceVersionMatch"
	paramInitial = "sendInitialEvents"
)

// past is what the proxy has recorded of earlier revisions.
type past struct {
	// revision is what lists show; empty: the present.
	revision string
	// of are the resources whose lists do; empty: all.
	of []string
	// fresh is closed by FreshLists.
	fresh chan struct{}
	// lagging is the resource whose watches keep back what is new; empty: none.
	lagging string
	// path, selectors and authorization are of the last list or watch of a client's.
	path, authorization string
	selectors           url.Values
}

// remember keeps what Mark asks for again.
func (p *Proxy) remember(r *http.Request) {
	selectors := url.Values{}
	for _, key := range []string{"labelSelector", "fieldSelector"} {
		if v := r.URL.Query().Get(key); v != "" {
			selectors.Set(key, v)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.path, p.past.selectors, p.past.authorization = r.URL.Path, selectors, r.Header.Get("Authorization")
}

// Mark returns the cluster's present revision. The proxy has no credentials of
// its own, so it repeats the last list or watch of a client's, as a list.
func (p *Proxy) Mark(ctx context.Context) (string, error) {
	p.mu.Lock()
	target, query, authorization := *p.options.Server, p.past.selectors, p.past.authorization
	target.Path = p.past.path
	p.mu.Unlock()
	if query == nil {
		return "", fmt.Errorf("mark %s: no client has listed or watched anything yet", p.options.Name)
	}
	target.RawQuery = "limit=1&" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("mark %s: %w", p.options.Name, err)
	}
	request.Header = http.Header{"Authorization": {authorization}, "Accept": {"application/json"}}
	reply, err := p.roundTrip(request)
	if err != nil {
		return "", fmt.Errorf("mark %s: %w", p.options.Name, err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(reply.body, &list); reply.status != http.StatusOK || err != nil {
		return "", fmt.Errorf("mark %s: %s answers %d %s", p.options.Name, target.Path, reply.status, reply.body)
	}
	return list.ResourceVersion, nil
}

// StaleLists has lists that take any version (resourceVersion=0) answered out of
// the past, as it was at a revision of Mark's. Watches from there deliver nothing
// until FreshLists. Quorum reads are not touched, nor watches that run already.
// With resources given, only their lists and watches are old: others are current, as of
// caches of which one lags. etcd forgets old revisions after some minutes; such lists
// are refused (410).
func (p *Proxy) StaleLists(revision string, of ...string) {
	p.FreshLists()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.revision, p.past.of, p.past.fresh = revision, of, make(chan struct{})
}

// LagWatches has the watches of one resource, those that run already too, keep back what
// is new until FreshLists, while those of others deliver.
func (p *Proxy) LagWatches(resource string) {
	p.FreshLists()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.lagging, p.past.fresh = resource, make(chan struct{})
}

// FreshLists ends StaleLists and LagWatches: watches deliver what they kept back.
func (p *Proxy) FreshLists() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past.fresh != nil {
		close(p.past.fresh)
	}
	p.past.revision, p.past.of, p.past.lagging, p.past.fresh = "", nil, "", nil
}

// keptBack is what a watch of a resource waits for before it delivers; nil: nothing.
func (p *Proxy) keptBack(resource string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past.lagging == "" || p.past.lagging != resource {
		return nil
	}
	return p.past.fresh
}

// shows is the revision that lists of a resource show; empty: the present. The caller
// holds the lock.
func (a past) shows(resource string) string {
	if len(a.of) > 0 && !slices.Contains(a.of, resource) {
		return ""
	}
	return a.revision
}

// serveList answers a list, out of the past if that is what lists show.
func (p *Proxy) serveList(w http.ResponseWriter, r *http.Request, resource string) {
	p.remember(r)
	p.mu.Lock()
	revision := p.past.shows(resource)
	p.mu.Unlock()
	query := r.URL.Query()
	if revision != "" && query.Get(paramVersion) == "0" {
		query.Set(paramVersion, revision)
		query.Set(paramMatch, string(metav1.ResourceVersionMatchExact))
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	p.forward.ServeHTTP(w, r)
}

// pastWatch reports what happens to a watch while lists show the past: what to wait
// for before it delivers, or that it is refused. A watch that brings its own list
// is refused as by an API server that does not know such watches, so that
// client-go's reflector lists (k8s.io/client-go/tools/cache, watchList).
func (p *Proxy) pastWatch(r *http.Request, resource string) (hold <-chan struct{}, refused *apierrors.StatusError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past.shows(resource) == "" {
		return nil, nil
	}
	query := r.URL.Query()
	if query.Get(paramInitial) != "" {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath(paramInitial), errInjected.Error()),
		})
	}
	if query.Get(paramVersion) == p.past.revision {
		return p.past.fresh, nil
	}
	return nil, nil
}
