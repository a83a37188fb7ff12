package route

import (
	"context"
	"errors"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// OptionalCache is a cache of kinds that a cluster may not serve, or may not serve yet.
type OptionalCache struct {
	mu     sync.Mutex
	cache  cache.Cache
	absent bool
	served chan struct{}
}

// NewOptionalCache returns an OptionalCache that is not served yet.
func NewOptionalCache() *OptionalCache { return &OptionalCache{served: make(chan struct{})} }

// StartServing starts the sources. Call it once the cache is synced.
func (o *OptionalCache) StartServing(c cache.Cache) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache == nil {
		o.cache = c
		close(o.served)
	}
}

// MarkNotServed records that the cluster does not serve the kinds at present.
func (o *OptionalCache) MarkNotServed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.absent = true
}

// ErrServedUnknown means that it is not known yet whether a cluster serves the kinds.
var ErrServedUnknown = errors.New("it is not known yet whether the cluster serves snapshots")

// CheckServed reports whether the cluster serves the kinds. At first, this is not known, and the cluster may have
// objects of these kinds: Check then returns ErrServedUnknown. A nil OptionalCache is never served.
func (o *OptionalCache) CheckServed() (served bool, err error) {
	if o == nil {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache == nil && !o.absent {
		return false, ErrServedUnknown
	}
	return o.cache != nil, nil
}

// ServedCache returns the cache of the kinds, or nil if the kinds are not served or the OptionalCache is nil.
func (o *OptionalCache) ServedCache() cache.Cache {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cache
}

// ServedChannel returns a channel that is closed when the kinds are served.
func (o *OptionalCache) ServedChannel() <-chan struct{} { return o.served }

// EventSource returns a source of a kind's events. Once the kind is served, the source begins with the
// existing objects.
func (o *OptionalCache) EventSource(object client.Object, handled handler.EventHandler, only ...predicate.Predicate) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		begin := func() error {
			return source.Kind(o.ServedCache(), object, handled, append(slices.Clone(only), ChangedPredicate())...).Start(ctx, q)
		}
		select {
		case <-o.served:
			return begin()
		default:
		}
		go func() {
			select {
			case <-ctx.Done():
				return
			case <-o.served:
			}
			if err := begin(); err != nil && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "could not watch a kind that the host now serves")
			}
		}()
		return nil
	})
}
