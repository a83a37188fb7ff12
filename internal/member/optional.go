package member

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// OptionalCache is a cache of kinds that a member might not serve, or might not allow Xylem to read. In
// either case, Xylem does not watch these kinds, and ReadProblem returns why.
type OptionalCache struct {
	*route.OptionalCache

	mu      sync.Mutex
	problem *mirror.Refusal
	changes route.Trigger
}

// NewOptionalCache returns an OptionalCache whose state is unknown.
func NewOptionalCache() *OptionalCache {
	return &OptionalCache{OptionalCache: route.NewOptionalCache()}
}

// ReadProblem returns why the kinds cannot be read. known is false until the first attempt has
// ended.
func (o *OptionalCache) ReadProblem() (problem *mirror.Refusal, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ServedCache() != nil {
		return nil, true
	}
	return o.problem, o.problem != nil
}

// servedReader returns the cache of the kinds, or nil if it is not served or o is nil.
func (o *OptionalCache) servedReader() client.Reader {
	if o == nil {
		return nil
	}
	if served := o.ServedCache(); served != nil {
		return served
	}
	return nil
}

// RecordProblem records why the kinds cannot be read.
func (o *OptionalCache) RecordProblem(problem *mirror.Refusal) {
	o.mu.Lock()
	changed := o.problem == nil || *o.problem != *problem
	o.problem = problem
	o.mu.Unlock()
	if changed {
		o.changes.Enqueue("")
	}
}

// StartServing starts the sources, and enqueues the waiting requests.
func (o *OptionalCache) StartServing(c cache.Cache) {
	o.OptionalCache.StartServing(c)
	o.changes.Enqueue("")
}

// ProblemChangeSource returns a source that enqueues the requests whenever the problem changes.
func (o *OptionalCache) ProblemChangeSource(requests route.RequestsByName) source.Source {
	return o.changes.RequestsSource(requests)
}
