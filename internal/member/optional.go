package member

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// Optional is a cache of kinds that a member might not serve, or might not allow Xylem to read. In
// either case, Xylem does not watch these kinds, and Problem returns why.
type Optional struct {
	*route.Optional

	mu      sync.Mutex
	problem *mirror.Refusal
	changes route.Trigger
}

// NewOptional returns an Optional whose state is unknown.
func NewOptional() *Optional { return &Optional{Optional: route.NewOptional()} }

// Problem returns why the kinds cannot be read. known is false until the first attempt has
// ended.
func (o *Optional) Problem() (problem *mirror.Refusal, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Cache() != nil {
		return nil, true
	}
	return o.problem, o.problem != nil
}

// Fail records why the kinds cannot be read.
func (o *Optional) Fail(problem *mirror.Refusal) {
	o.mu.Lock()
	changed := o.problem == nil || *o.problem != *problem
	o.problem = problem
	o.mu.Unlock()
	if changed {
		o.changes.Enqueue("")
	}
}

// Serve starts the sources, and enqueues the waiting requests.
func (o *Optional) Serve(c cache.Cache) {
	o.Optional.Serve(c)
	o.changes.Enqueue("")
}

// Changes returns a source that enqueues the requests whenever the problem changes.
func (o *Optional) Changes(requests route.ByName) source.Source { return o.changes.SourceOf(requests) }
