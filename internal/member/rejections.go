package member

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// NamespaceRejections records which namespaces the member rejects. leaf_namespace writes it, so that the
// controllers of claims and Pods can report it. After a restart of the link, the next attempt to
// create a namespace records it again. The zero value is ready for use.
type NamespaceRejections struct {
	mu sync.Mutex
	// byNamespace has an entry for each namespace that was tried and still exists in a cluster. It is nil if
	// the member does not reject the namespace.
	byNamespace map[string]*mirror.Refusal
	changes     route.Trigger
}

// RejectionOf returns why the member rejects the creation of a namespace, or nil.
func (r *NamespaceRejections) RejectionOf(namespace string) *mirror.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNamespace[namespace]
}

// Attempted reports whether leaf_namespace has handled a namespace since the link started.
func (r *NamespaceRejections) Attempted(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, attempted := r.byNamespace[namespace]
	return attempted
}

// SetRejection records why the member rejects the creation of a namespace. nil means that it does not.
func (r *NamespaceRejections) SetRejection(namespace string, why *mirror.Refusal) {
	if r.storeRejection(namespace, why) {
		r.changes.Enqueue(namespace)
	}
}

// ForgetNamespace removes the record of a namespace that exists in neither cluster.
func (r *NamespaceRejections) ForgetNamespace(namespace string) {
	r.SetRejection(namespace, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byNamespace, namespace)
}

// storeRejection reports whether the record has changed.
func (r *NamespaceRejections) storeRejection(namespace string, why *mirror.Refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.byNamespace[namespace]
	if r.byNamespace == nil {
		r.byNamespace = map[string]*mirror.Refusal{}
	}
	r.byNamespace[namespace] = why
	return (was == nil) != (why == nil) || was != nil && *was != *why
}

// RejectionChangeSource returns a source that enqueues the requests for a namespace whenever its record changes.
func (r *NamespaceRejections) RejectionChangeSource(requests route.RequestsByName) source.Source {
	return r.changes.RequestsSource(requests)
}
