package route

import (
	"context"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Optional is a cache of kinds that a cluster may not serve, or not yet.
type Optional struct {
	mu     sync.Mutex
	cache  cache.Cache
	served chan struct{}
}

// NewOptional is one that is not served.
func NewOptional() *Optional { return &Optional{served: make(chan struct{})} }

// Serve begins the sources: the cache has been filled with the kinds.
func (o *Optional) Serve(c cache.Cache) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache == nil {
		o.cache = c
		close(o.served)
	}
}

// Cache of the kinds; nil if they are not served, or if nobody looks whether they are.
func (o *Optional) Cache() cache.Cache {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cache
}

// Served is closed when they are.
func (o *Optional) Served() <-chan struct{} { return o.served }

// Events is a controller's source of the events of a kind, once it is served: beginning with
// the objects that there are then.
func (o *Optional) Events(object client.Object, handled handler.EventHandler, only ...predicate.Predicate) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		begin := func() error {
			return source.Kind(o.Cache(), object, handled, append(slices.Clone(only), Changed())...).Start(ctx, q)
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
				ctrl.LoggerFrom(ctx).Error(err, "watch a kind that is served now")
			}
		}()
		return nil
	})
}
