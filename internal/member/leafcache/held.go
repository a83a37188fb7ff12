package leafcache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/weigh"
)

const (
	// pageLimit is the number of objects in one page, if the member does not stream lists.
	pageLimit = 100
	// pageDivisor divides the number of objects in a page if the page exceeds the limit of a response.
	// A page of one object always fits, because etcd limits its size.
	pageDivisor = 4
)

// Held adds up the sizes of one member's cached objects, after reduction, and ends the link if they
// exceed the limit.
type Held struct {
	Limiter *budget.Limiter
	// Seen, if set, is called with each object that the member sends, or sends as deleted.
	Seen func(runtime.Object)

	mu    sync.Mutex
	total int64
}

func (h *Held) see(object runtime.Object) {
	if h.Seen != nil {
		h.Seen(object)
	}
}

// add adds to the total, and returns an error if the caches exceed their limit.
func (h *Held) add(weight int64) error {
	h.total += weight
	if weight > 0 && h.total > h.Limiter.Cache {
		return h.Limiter.Exceed("the member's objects that Xylem caches would take more than %s of memory (--member-cache-limit). If you expect so many objects, raise this limit and the manager's memory limit", budget.Size(h.Limiter.Cache))
	}
	return nil
}

// shelf maps the hash of an object's name to the object's size, for one kind.
type shelf map[uint64]int64

func (s shelf) sum() int64 {
	var sum int64
	for _, weight := range s {
		sum += weight
	}
	return sum
}

// counted lists and watches one kind for a cache. It reduces each object before it decodes the
// next one, and counts the reduced objects. While it receives a list, it also counts the
// objects of the previous list, because the cache still has them.
type counted struct {
	toolscache.ListerWatcherWithContext
	held   *Held
	reduce toolscache.TransformFunc
	seed   maphash.Seed

	// present contains the objects in the cache, and coming contains those of a new list. held.mu
	// guards both.
	present, coming shelf

	// limit is the number of objects in a page of the current list. Only the reflector, which makes one
	// request at a time, uses it.
	limit int64
}

// newInformer returns a cache option that creates informers. reduce contains each kind's transform.
func (h *Held) newInformer(reduce map[reflect.Type]toolscache.TransformFunc) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		transform := reduce[reflect.TypeOf(object)]
		if transform == nil {
			transform = dropManagedFields
		}
		return toolscache.NewSharedIndexInformer(h.newCounted(from, transform), object, resync, indexers)
	}
}

func (h *Held) newCounted(from toolscache.ListerWatcher, reduce toolscache.TransformFunc) *counted {
	return &counted{
		ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(from),
		held:                     h, reduce: reduce, seed: maphash.MakeSeed(), present: shelf{},
	}
}

// List implements toolscache.ListerWatcher.
func (c *counted) List(options metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(context.TODO(), options) //nolint:forbidigo // the interface predates contexts, and reflectors do not use it
}

// Watch implements toolscache.ListerWatcher.
func (c *counted) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.TODO(), options) //nolint:forbidigo // the interface predates contexts, and reflectors do not use it
}

// ListWithContext lists a page. It removes resourceVersion from the request, because an API
// server may otherwise ignore the limit and return all objects at once.
func (c *counted) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	if options.Continue == "" {
		c.limit = pageLimit
	}
	page, err := c.page(ctx, options)
	if options.Continue != "" && apierrors.IsResourceExpired(err) {
		// With the API's error, client-go's pager would request one more page, and take it for the whole list.
		return nil, fmt.Errorf("the member's list expired: %s", err.Error())
	}
	if err != nil {
		return nil, err
	}
	if options.Continue == "" {
		c.begin()
	}
	objects, err := meta.ExtractList(page)
	if err != nil {
		return nil, fmt.Errorf("read a page of the member's list: %w", err)
	}
	for i := range objects {
		if objects[i], err = c.keep(objects[i]); err != nil {
			return nil, err
		}
	}
	if err := meta.SetList(page, objects); err != nil {
		return nil, fmt.Errorf("reduce a page of the member's list: %w", err)
	}
	if list, err := meta.ListAccessor(page); err == nil && list.GetContinue() == "" {
		c.end()
	}
	return page, nil
}

// page lists a page, and divides it while it is too large. After each page, the next one may be larger
// again: a list that takes many requests may expire.
func (c *counted) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for c.limit > 1 {
		options.Limit = c.limit
		page, err := c.ListerWatcherWithContext.ListWithContext(budget.Divisible(ctx), options)
		if !errors.Is(err, budget.ErrDivide) {
			c.limit = min(pageLimit, c.limit*pageDivisor)
			return page, err
		}
		c.limit /= pageDivisor
	}
	options.Limit, c.limit = 1, pageDivisor
	return c.ListerWatcherWithContext.ListWithContext(ctx, options)
}

// WatchWithContext watches, or streams a list and then watches.
func (c *counted) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := c.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		c.begin()
	}
	return watch.Filter(stream, c.event), nil
}

// event counts and reduces one event. It drops an event that exceeds the limit.
func (c *counted) event(event watch.Event) (watch.Event, bool) {
	var err error
	switch event.Type {
	case watch.Added, watch.Modified:
		event.Object, err = c.keep(event.Object)
	case watch.Deleted:
		c.held.see(event.Object)
		c.drop(event.Object)
	case watch.Bookmark:
		if object, failed := meta.Accessor(event.Object); failed == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			c.end()
		}
	case watch.Error:
	}
	return event, err == nil
}

// begin starts a list, before its first object.
func (c *counted) begin() {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	c.held.total -= c.coming.sum() // an incomplete list's objects
	c.coming = shelf{}
}

// end ends a list, after its last object. The list replaces the previous one.
func (c *counted) end() {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	if c.coming == nil {
		return
	}
	c.held.total -= c.present.sum()
	c.present, c.coming = c.coming, nil
}

// keep reduces an object and counts it.
func (c *counted) keep(object runtime.Object) (runtime.Object, error) {
	c.held.see(object)
	reduced, err := c.reduce(object)
	if err != nil {
		return nil, err
	}
	object, ok := reduced.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an API object", reduced)
	}
	key, weight := c.key(object), weigh.Object(object)
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	shelf := c.shelf()
	before := shelf[key]
	shelf[key] = weight
	return object, c.held.add(weight - before)
}

func (c *counted) drop(object runtime.Object) {
	key := c.key(object)
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	shelf := c.shelf()
	c.held.total -= shelf[key]
	delete(shelf, key)
}

// shelf returns the shelf that is being filled. The caller must hold the lock.
func (c *counted) shelf() shelf {
	if c.coming != nil {
		return c.coming
	}
	return c.present
}

// key returns a seeded hash of an object's name, so that a member cannot cause collisions.
func (c *counted) key(object runtime.Object) uint64 {
	var name types.NamespacedName
	if o, err := meta.Accessor(object); err == nil {
		name = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return maphash.Comparable(c.seed, name)
}
