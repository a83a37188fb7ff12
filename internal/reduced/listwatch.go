package reduced

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/weigh"
)

// ListWatch lists and watches one kind for a cache.
type ListWatch struct {
	toolscache.ListerWatcherWithContext
	// Reduce returns the part of an object that the cache keeps, or nil if it does not keep the object.
	Reduce toolscache.TransformFunc
	// NewObject, if set, returns an empty object of the type that Reduce returns. It is set if that is not the API's type,
	// because a reflector ignores events with an object of another type.
	NewObject func() client.Object
	// WaitBefore, if set, delays each list and watch until it returns. Reduce may depend on another cache.
	WaitBefore func(context.Context) error
	// OnSeen, if set, is called with each object that the server sends, or sends as deleted.
	OnSeen func(runtime.Object)
	// AddSize, if set, is called with each change of the estimated size of the kept objects, in bytes. If it
	// returns an error, the list fails, or the watch drops the event.
	AddSize func(int64) error

	mu sync.Mutex
	// present contains the objects in the cache, and coming contains those of a new list. While it
	// receives a list, the cache still has the objects of the previous list.
	present, coming objectSizes
	// outdated means that Reduce has changed since the last list began.
	outdated bool
	// stream is the last watch, unless a list has begun since.
	stream watch.Interface
}

// GetSharedInformer returns the informer of a kind that a cache does not divide by namespace. Its indexer has what Reduce
// returned, which a cache's reader cannot list if it is not of the API's type.
func GetSharedInformer(ctx context.Context, from cache.Cache, kind client.Object, opts ...cache.InformerGetOption) (toolscache.SharedIndexInformer, error) {
	found, err := from.GetInformer(ctx, kind, opts...)
	if err != nil {
		return nil, fmt.Errorf("get the informer for %T: %w", kind, err)
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer for %T has no indexer", kind)
	}
	return informer, nil
}

// objectSizes maps the hash of an object's name to the object's size.
type objectSizes map[uint64]int64

func (s objectSizes) totalSize() int64 {
	var sum int64
	for _, weight := range s {
		sum += weight
	}
	return sum
}

// ListAgain makes the cache list all objects again, because Reduce now keeps objects that it did not keep.
func (l *ListWatch) ListAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outdated = true
	if l.stream != nil {
		l.stream.Stop()
	}
}

// List implements toolscache.ListerWatcher.
func (l *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.TODO(), options) //nolint:forbidigo // the interface predates contexts, and reflectors do not use it
}

// Watch implements toolscache.ListerWatcher.
func (l *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.TODO(), options) //nolint:forbidigo // the interface predates contexts, and reflectors do not use it
}

// ListWithContext lists a page.
func (l *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := l.waitUntilReady(ctx); err != nil {
		return nil, err
	}
	if options.Continue == "" {
		l.beginList()
	}
	page, err := l.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // the reflector compares it
	}
	list, err := meta.ListAccessor(page)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of a list: %w", err)
	}
	objects, err := meta.ExtractListWithAlloc(page)
	if err != nil {
		return nil, fmt.Errorf("read the objects of a list: %w", err)
	}
	// What the cache keeps need not be of the API's type.
	kept := &metainternalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(),
	}}
	for _, object := range objects {
		reduced, err := l.keepObject(object)
		if err != nil {
			return nil, err
		}
		if reduced != nil {
			kept.Items = append(kept.Items, reduced)
		}
	}
	if kept.Continue == "" {
		l.endList()
	}
	return kept, nil
}

// WatchWithContext watches, or streams a list and then watches.
func (l *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := l.waitUntilReady(ctx); err != nil {
		return nil, err
	}
	streamsList := options.SendInitialEvents != nil && *options.SendInitialEvents
	if streamsList {
		l.beginList()
	}
	stream, err := l.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // the reflector compares it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outdated {
		stream.Stop()
		return nil, apierrors.NewResourceExpired("the cache keeps more objects than when it listed them")
	}
	l.stream = stream
	return drainedWatch{watch.Filter(stream, func(event watch.Event) (watch.Event, bool) {
		if !l.isCurrentStream(stream) {
			return event, false
		}
		return l.reduceEvent(event)
	})}, nil
}

// isCurrentStream reports whether the cache still receives a stream's events.
func (l *ListWatch) isCurrentStream(stream watch.Interface) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream == stream
}

// drainedWatch discards the events that arrive after Stop. Otherwise, the goroutine of watch.Filter could wait for a reader
// forever, and would keep the whole cache in memory.
type drainedWatch struct{ watch.Interface }

func (d drainedWatch) Stop() {
	d.Interface.Stop()
	go func() {
		for range d.ResultChan() {
		}
	}()
}

func (l *ListWatch) waitUntilReady(ctx context.Context) error {
	if l.WaitBefore == nil {
		return nil
	}
	return l.WaitBefore(ctx)
}

// reduceEvent reduces one event. If the cache no longer keeps an object, this is a deletion. event drops what
// the cache never had, and what exceeds the limit.
func (l *ListWatch) reduceEvent(event watch.Event) (watch.Event, bool) {
	switch event.Type {
	case watch.Added, watch.Modified:
		object, err := l.keepObject(event.Object)
		if err != nil {
			return event, false
		}
		if object == nil {
			return watch.Event{Type: watch.Deleted, Object: l.asKeptType(event.Object)}, l.dropObject(event.Object)
		}
		event.Object = object
	case watch.Deleted:
		if l.OnSeen != nil {
			l.OnSeen(event.Object)
		}
		return watch.Event{Type: watch.Deleted, Object: l.asKeptType(event.Object)}, l.dropObject(event.Object)
	case watch.Bookmark:
		if object, failed := meta.Accessor(event.Object); failed == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			l.endList()
		}
		event.Object = l.asKeptType(event.Object)
	case watch.Error:
	}
	return event, true
}

// asKeptType returns an object that the server sent as deleted or in a bookmark, as one of the kept type.
func (l *ListWatch) asKeptType(object runtime.Object) runtime.Object {
	from, err := meta.Accessor(object)
	if l.NewObject == nil || err != nil {
		return object
	}
	to := l.NewObject()
	to.SetNamespace(from.GetNamespace())
	to.SetName(from.GetName())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetAnnotations(from.GetAnnotations())
	return to
}

// beginList starts a list, before its first object.
func (l *ListWatch) beginList() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outdated, l.stream = false, nil
	_ = l.reportSizeChange(-l.coming.totalSize()) // an incomplete list's objects
	l.coming = objectSizes{}
}

// endList ends a list, after its last object. The list replaces the previous one.
func (l *ListWatch) endList() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.coming == nil {
		return
	}
	_ = l.reportSizeChange(-l.present.totalSize())
	l.present, l.coming = l.coming, nil
}

// reportSizeChange reports a change of the size. Less is never an error.
func (l *ListWatch) reportSizeChange(weight int64) error {
	if l.AddSize == nil {
		return nil
	}
	return l.AddSize(weight)
}

// keepObject reduces an object and counts it. It returns nil if the cache does not keep the object.
func (l *ListWatch) keepObject(object runtime.Object) (runtime.Object, error) {
	if l.OnSeen != nil {
		l.OnSeen(object)
	}
	reduced, err := l.Reduce(object)
	if err != nil || reduced == nil {
		return nil, err
	}
	kept, ok := reduced.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an API object", reduced)
	}
	var weight int64
	if l.AddSize != nil {
		weight = weigh.WeighObject(kept)
	}
	key := hashObjectName(object)
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.objectsBeingFilled()
	before := objects[key]
	objects[key] = weight
	return kept, l.reportSizeChange(weight - before)
}

// dropObject reports whether the cache had an object that it no longer keeps.
func (l *ListWatch) dropObject(object runtime.Object) bool {
	key := hashObjectName(object)
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.objectsBeingFilled()
	weight, there := objects[key]
	_ = l.reportSizeChange(-weight)
	delete(objects, key)
	return there
}

// objectsBeingFilled returns the shelf that is being filled. The caller must hold the lock.
func (l *ListWatch) objectsBeingFilled() objectSizes {
	if l.coming != nil {
		return l.coming
	}
	if l.present == nil {
		l.present = objectSizes{}
	}
	return l.present
}

var hashSeed = maphash.MakeSeed()

// hashObjectName returns a seeded hash of an object's name, so that a member cannot cause collisions.
func hashObjectName(object runtime.Object) uint64 {
	var name types.NamespacedName
	if o, err := meta.Accessor(object); err == nil {
		name = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return maphash.Comparable(hashSeed, name)
}
