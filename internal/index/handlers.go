package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GetInformer returns an informer whose handlers share one listener.
func (c *Cache) GetInformer(ctx context.Context, kind client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := c.Cache.GetInformer(ctx, kind, opts...)
	if err != nil {
		return nil, err //nolint:wrapcheck // as without Cache
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return found, nil // an informer for several namespaces
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.sharedInformers[informer]; h != nil {
		return h, nil
	}
	h := &sharedInformer{SharedIndexInformer: informer}
	if h.registration, err = informer.AddEventHandler(h); err != nil {
		return nil, fmt.Errorf("add a handler for %T: %w", kind, err)
	}
	c.sharedInformers[informer] = h
	return h, nil
}

// sharedInformer is an informer whose handlers share one listener. client-go gives each handler a listener with two
// goroutines and a buffer that never shrinks. After a start, this buffer may contain all objects. A member
// has forty handlers.
type sharedInformer struct {
	toolscache.SharedIndexInformer
	registration toolscache.ResourceEventHandlerRegistration

	mu       sync.RWMutex
	handlers []*registeredHandler
}

// registeredHandler is one handler. It has received the initial list when the shared listener has.
type registeredHandler struct {
	toolscache.ResourceEventHandlerRegistration
	toolscache.ResourceEventHandler
}

// AddEventHandler adds a handler, and calls it for each existing object.
func (h *sharedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	if h.IsStopped() {
		return nil, errors.New("the informer has stopped")
	}
	r := &registeredHandler{h.registration, handler}
	h.mu.Lock()
	defer h.mu.Unlock() // events wait until the handler has received the existing objects
	h.handlers = append(h.handlers, r)
	for _, item := range h.GetIndexer().List() {
		handler.OnAdd(item, true)
	}
	return r, nil
}

// AddEventHandlerWithOptions works like AddEventHandler.
func (h *sharedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if options.ResyncPeriod != nil {
		return h.SharedIndexInformer.AddEventHandlerWithOptions(handler, options) //nolint:wrapcheck // as without Cache
	}
	return h.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler.
func (h *sharedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registeredHandler)
	if !ok {
		return h.SharedIndexInformer.RemoveEventHandler(handle) //nolint:wrapcheck // as without Cache
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = slices.DeleteFunc(h.handlers, func(other *registeredHandler) bool { return other == r })
	return nil
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h *sharedInformer) OnAdd(obj any, isInInitialList bool) {
	h.forEachHandler(func(r *registeredHandler) { r.OnAdd(obj, isInInitialList) })
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h *sharedInformer) OnUpdate(before, after any) {
	h.forEachHandler(func(r *registeredHandler) { r.OnUpdate(before, after) })
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h *sharedInformer) OnDelete(obj any) {
	h.forEachHandler(func(r *registeredHandler) { r.OnDelete(obj) })
}

func (h *sharedInformer) forEachHandler(call func(*registeredHandler)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.handlers {
		call(r)
	}
}
