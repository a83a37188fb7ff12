package leafcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/reduced"
)

const (
	// maxPageObjects is the number of objects in one page, if the member does not stream lists.
	maxPageObjects = 100
	// pageDivisor divides the number of objects in a page if the page exceeds the limit of a response.
	// A page of one object always fits, because etcd limits its size.
	pageDivisor = 4
)

// CacheBudget adds up the sizes of one member's cached objects, after reduction, and ends the link if they
// exceed the limit.
type CacheBudget struct {
	Limiter *budget.MemoryLimiter
	// OnObject, if set, is called with each object that the member sends, or sends as deleted.
	OnObject func(runtime.Object)

	mu    sync.Mutex
	total int64
}

// addWeight adds to the total, and returns an error if the caches exceed their limit.
func (h *CacheBudget) addWeight(weight int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total += weight
	if weight > 0 && h.total > h.Limiter.CacheBytes {
		return h.Limiter.EndLinkOverLimit("the member's objects that Xylem caches would take more than %s of memory (--member-cache-limit). If you expect so many objects, raise this limit and the manager's memory limit", budget.FormatBytes(h.Limiter.CacheBytes))
	}
	return nil
}

// kindReduction is what the cache keeps of a kind.
type kindReduction struct {
	// reduce returns nil for an object that the cache does not keep.
	reduce toolscache.TransformFunc
	// newEmpty returns an empty object of the type that reduce returns, if that is not the API's type.
	newEmpty func() client.Object
	// waitReady delays lists and watches until the informers that reduce reads are ready.
	waitReady func(context.Context) error
}

// newInformerFunc returns a cache option that creates informers.
func (h *CacheBudget) newInformerFunc(reductions map[reflect.Type]kindReduction) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		r := reductions[reflect.TypeOf(object)]
		if r.reduce == nil {
			r.reduce = dropManagedFields
		}
		if r.newEmpty != nil {
			object = r.newEmpty()
		}
		return toolscache.NewSharedIndexInformer(h.countedListWatch(from, r), object, resync, indexers)
	}
}

// countedListWatch returns a ListWatch that counts the objects that it keeps.
func (h *CacheBudget) countedListWatch(from toolscache.ListerWatcher, r kindReduction) *reduced.ListWatch {
	return &reduced.ListWatch{
		ListerWatcherWithContext: &pagedListWatch{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(from)},
		Reduce:                   r.reduce, NewObject: r.newEmpty, WaitBefore: r.waitReady, OnSeen: h.OnObject, AddSize: h.addWeight,
	}
}

// pagedListWatch lists in pages.
type pagedListWatch struct {
	toolscache.ListerWatcherWithContext

	// limit is the number of objects in a page of the current list. Only the reflector, which makes one
	// request at a time, uses it.
	limit int64
}

// ListWithContext lists a page. It removes resourceVersion from the request, because an API
// server may otherwise ignore the limit and return all objects at once.
func (p *pagedListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	if options.Continue == "" {
		p.limit = maxPageObjects
	}
	page, err := p.listPage(ctx, options)
	if options.Continue != "" && apierrors.IsResourceExpired(err) {
		// With the API's error, client-go's pager would request one more page, and take it for the whole list.
		return nil, fmt.Errorf("the member's list expired: %s", err.Error())
	}
	return page, err
}

// listPage lists a page, and divides it while it is too large. After each page, the next one may be larger
// again: a list that takes many requests may expire.
func (p *pagedListWatch) listPage(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for p.limit > 1 {
		options.Limit = p.limit
		page, err := p.ListerWatcherWithContext.ListWithContext(budget.WithDivisiblePage(ctx), options)
		if !errors.Is(err, budget.ErrPageTooLarge) {
			p.limit = min(maxPageObjects, p.limit*pageDivisor)
			return page, err
		}
		p.limit /= pageDivisor
	}
	options.Limit, p.limit = 1, pageDivisor
	return p.ListerWatcherWithContext.ListWithContext(ctx, options)
}
