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

// past describes the earlier state that lists and watches show.
type past struct {
	// revision is the revision that lists show; empty means the latest.
	revision string
	// of contains the affected resources; empty means all.
	of []string
	// fresh is closed by FreshLists.
	fresh chan struct{}
	// lagging is the resource whose watches hold back new events, or empty.
	lagging string
	// path, selectors and authorization are taken from the clients' last list or watch.
	path, authorization string
	selectors           url.Values
}

// remember records a list or watch, so that Mark can repeat it.
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

// Mark returns the cluster's current revision. The proxy has no credentials of its own, so it
// repeats the clients' last list or watch as a list.
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
		return "", fmt.Errorf("mark %s: %s responds with %d %s", p.options.Name, target.Path, reply.status, reply.body)
	}
	return list.ResourceVersion, nil
}

// StaleLists responds to lists that accept any version (resourceVersion=0) with the state at a
// revision that Mark returned. Watches from that revision deliver nothing until FreshLists. Quorum
// reads and running watches are unaffected. If resources are given, only their lists and watches
// are stale, as if one cache lagged behind. etcd drops old revisions after some minutes; such lists
// then fail with 410.
func (p *Proxy) StaleLists(revision string, of ...string) {
	p.FreshLists()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.revision, p.past.of, p.past.fresh = revision, of, make(chan struct{})
}

// LagWatches makes the watches of one resource, including running ones, hold back new events
// until FreshLists. Other watches deliver their events.
func (p *Proxy) LagWatches(resource string) {
	p.FreshLists()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.lagging, p.past.fresh = resource, make(chan struct{})
}

// FreshLists ends StaleLists and LagWatches. Watches then deliver what they held back.
func (p *Proxy) FreshLists() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past.fresh != nil {
		close(p.past.fresh)
	}
	p.past.revision, p.past.of, p.past.lagging, p.past.fresh = "", nil, "", nil
}

// keptBack returns the channel on which a watch of a resource waits before it delivers new events,
// or nil.
func (p *Proxy) keptBack(resource string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past.lagging == "" || p.past.lagging != resource {
		return nil
	}
	return p.past.fresh
}

// shows returns the revision that lists of a resource show, or "" for the latest. The caller
// holds the lock.
func (a past) shows(resource string) string {
	if len(a.of) > 0 && !slices.Contains(a.of, resource) {
		return ""
	}
	return a.revision
}

// serveList serves a list, with an earlier state if lists are stale.
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

// pastWatch decides what happens to a watch while lists are stale. It returns the channel on which
// the watch waits before it delivers events, or the error with which the watch is rejected. It
// rejects a watch that requests initial events, as an API server without that feature would.
// client-go's reflector then lists instead (k8s.io/client-go/tools/cache, watchList).
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
