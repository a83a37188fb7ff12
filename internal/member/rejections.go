package member

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// Rejections records which namespaces the member rejects. leaf_namespace writes it, so that the
// controllers of claims and Pods can report it. After a restart of the link, the next attempt to
// create a namespace records it again. The zero value is ready for use.
type Rejections struct {
	mu sync.Mutex
	// why has an entry for each namespace that was tried and still exists in a cluster. It is nil if
	// the member does not reject the namespace.
	why     map[string]*mirror.Refusal
	changes route.Trigger
}

// Of returns why the member rejects the creation of a namespace, or nil.
func (r *Rejections) Of(namespace string) *mirror.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why[namespace]
}

// Attempted reports whether leaf_namespace has handled a namespace since the link started.
func (r *Rejections) Attempted(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, attempted := r.why[namespace]
	return attempted
}

// Set records why the member rejects the creation of a namespace. nil means that it does not.
func (r *Rejections) Set(namespace string, why *mirror.Refusal) {
	if r.set(namespace, why) {
		r.changes.Enqueue(namespace)
	}
}

// Forget removes the record of a namespace that exists in neither cluster.
func (r *Rejections) Forget(namespace string) {
	r.Set(namespace, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.why, namespace)
}

// set reports whether the record has changed.
func (r *Rejections) set(namespace string, why *mirror.Refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.why[namespace]
	if r.why == nil {
		r.why = map[string]*mirror.Refusal{}
	}
	r.why[namespace] = why
	return (was == nil) != (why == nil) || was != nil && *was != *why
}

// Changes returns a source that enqueues the requests for a namespace whenever its record changes.
func (r *Rejections) Changes(requests route.ByName) source.Source {
	return r.changes.SourceOf(requests)
}
