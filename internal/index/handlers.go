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
	if h := c.informers[informer]; h != nil {
		return h, nil
	}
	h := &handlers{SharedIndexInformer: informer}
	if h.shared, err = informer.AddEventHandler(h); err != nil {
		return nil, fmt.Errorf("add a handler for %T: %w", kind, err)
	}
	c.informers[informer] = h
	return h, nil
}

// handlers is an informer whose handlers share one listener. client-go gives each handler a listener with two
// goroutines and a buffer that never shrinks. After a start, this buffer may contain all objects. A member
// has forty handlers.
type handlers struct {
	toolscache.SharedIndexInformer
	shared toolscache.ResourceEventHandlerRegistration

	mu    sync.RWMutex
	added []*registered
}

// registered is one handler. It has received the initial list when the shared listener has.
type registered struct {
	toolscache.ResourceEventHandlerRegistration
	toolscache.ResourceEventHandler
}

// AddEventHandler adds a handler, and calls it for each existing object.
func (h *handlers) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	if h.IsStopped() {
		return nil, errors.New("the informer has stopped")
	}
	r := &registered{h.shared, handler}
	h.mu.Lock()
	defer h.mu.Unlock() // events wait until the handler has received the existing objects
	h.added = append(h.added, r)
	for _, item := range h.GetIndexer().List() {
		handler.OnAdd(item, true)
	}
	return r, nil
}

// AddEventHandlerWithOptions works like AddEventHandler.
func (h *handlers) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if options.ResyncPeriod != nil {
		return h.SharedIndexInformer.AddEventHandlerWithOptions(handler, options) //nolint:wrapcheck // as without Cache
	}
	return h.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler.
func (h *handlers) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registered)
	if !ok {
		return h.SharedIndexInformer.RemoveEventHandler(handle) //nolint:wrapcheck // as without Cache
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.added = slices.DeleteFunc(h.added, func(other *registered) bool { return other == r })
	return nil
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h *handlers) OnAdd(obj any, isInInitialList bool) {
	h.each(func(r *registered) { r.OnAdd(obj, isInInitialList) })
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h *handlers) OnUpdate(before, after any) {
	h.each(func(r *registered) { r.OnUpdate(before, after) })
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h *handlers) OnDelete(obj any) { h.each(func(r *registered) { r.OnDelete(obj) }) }

func (h *handlers) each(call func(*registered)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.added {
		call(r)
	}
}
