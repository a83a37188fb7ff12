package leafcache

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/weigh"
)

// pageLimit of the objects of one page, where a member does not stream lists: a
// page of the largest objects is as long as an answer may be.
const pageLimit = 100

// Held adds up what the objects of one member take in its caches, reduced as they
// are kept there, and ends the link when that is too much.
type Held struct {
	Limiter *budget.Limiter

	mu    sync.Mutex
	total int64
}

// add reports whether the caches may hold so much more.
func (h *Held) add(weight int64) error {
	h.total += weight
	if weight > 0 && h.total > h.Limiter.Cache {
		return h.Limiter.Exceed("the member's objects that Xylem caches would take more than %s of memory (--member-cache-limit). If that is right, raise the flag and the manager's memory limit", budget.Size(h.Limiter.Cache))
	}
	return nil
}

// shelf has the weight of each object of a kind, by the hash of its name.
type shelf map[uint64]int64

func (s shelf) sum() int64 {
	var sum int64
	for _, weight := range s {
		sum += weight
	}
	return sum
}

// counted lists and watches one kind for a cache. It reduces each object before
// the next one is decoded, and counts what is kept: of a list that is being
// received beside those of the list before, which the cache has until then.
type counted struct {
	toolscache.ListerWatcherWithContext
	held   *Held
	reduce toolscache.TransformFunc
	seed   maphash.Seed

	// present are the objects in the cache, coming those of a new list; by held.mu.
	present, coming shelf
}

// newInformer is of a cache's options: how it makes an informer. Kinds are reduced
// by their transforms.
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
	return c.ListWithContext(context.TODO(), options) //nolint:forbidigo // an interface from before contexts, which reflectors do not use
}

// Watch implements toolscache.ListerWatcher.
func (c *counted) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.TODO(), options) //nolint:forbidigo // an interface from before contexts, which reflectors do not use
}

// ListWithContext lists a page. API servers send all objects at once to anybody who
// takes any version, so none is named.
func (c *counted) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = pageLimit, "", ""
	page, err := c.ListerWatcherWithContext.ListWithContext(ctx, options)
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

// WatchWithContext watches, or streams a list and watches then.
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

// event counts and reduces one event; what is too much is not passed on.
func (c *counted) event(event watch.Event) (watch.Event, bool) {
	var err error
	switch event.Type {
	case watch.Added, watch.Modified:
		event.Object, err = c.keep(event.Object)
	case watch.Deleted:
		c.drop(event.Object)
	case watch.Bookmark:
		if object, failed := meta.Accessor(event.Object); failed == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			c.end()
		}
	case watch.Error:
	}
	return event, err == nil
}

// begin is before the first object of a list.
func (c *counted) begin() {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	c.held.total -= c.coming.sum() // of a list that was not received to its end
	c.coming = shelf{}
}

// end is after the last object of a list: it takes the place of the one before.
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
	reduced, err := c.reduce(object)
	if err != nil {
		return nil, err
	}
	object, ok := reduced.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no API object", reduced)
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

// shelf that objects are put on at present; the caller has the lock.
func (c *counted) shelf() shelf {
	if c.coming != nil {
		return c.coming
	}
	return c.present
}

// key of an object, which a member cannot make another one's.
func (c *counted) key(object runtime.Object) uint64 {
	var name types.NamespacedName
	if o, err := meta.Accessor(object); err == nil {
		name = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return maphash.Comparable(c.seed, name)
}
