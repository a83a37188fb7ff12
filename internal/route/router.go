package route

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/route/urgency"
)

// Requests maps a host object to the requests to enqueue. It may read caches, and must log its
// errors.
type Requests func(context.Context, client.Object) []reconcile.Request

// kinds returns the routed kinds. Each kind has one handler for the lifetime of the manager.
func kinds() []client.Object {
	return []client.Object{
		&corev1.Pod{},
		&corev1.PersistentVolumeClaim{},
		&corev1.PersistentVolume{},
		&storagev1.StorageClass{},
		&corev1.Namespace{},
		&corev1.Node{},
		&storagev1.CSIStorageCapacity{},
	}
}

// optional are the kinds that are routed once the host serves them.
func optional() []client.Object {
	return []client.Object{&snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}}
}

// Router forwards the host's events to subscriptions.
type Router struct {
	cache cache.Cache

	// objects contains the cached objects of each kind, indexed by owner and not copied. It has its
	// own lock, because handlers read it while an event is delivered under mu, and a read lock must
	// not be acquired twice while a subscription waits for the write lock.
	objectsMu sync.RWMutex
	objects   map[reflect.Type]toolscache.Indexer

	mu    sync.RWMutex
	sinks map[reflect.Type]map[key]map[*sink]struct{}
}

type sink struct {
	ctx      context.Context //nolint:containedctx // of the subscribing controller: ends the subscription
	requests Requests
	only     []Concerns
	queue    queue
}

// New creates a Router for the host's cache.
func New(hostCache cache.Cache) *Router {
	return &Router{cache: hostCache, objects: map[reflect.Type]toolscache.Indexer{}, sinks: map[reflect.Type]map[key]map[*sink]struct{}{}}
}

// byOwner is the name of the index by owner.
const byOwner = "xylem.by-owner"

// Setup adds the permanent handlers, and the index by owner, to the host's informers. Call it
// before the informers start.
func (r *Router) Setup(ctx context.Context) error { return r.route(ctx, kinds()) }

// SetupOptional works like Setup, for optional kinds. Call it once the host serves these. Existing
// subscriptions receive the existing objects.
func (r *Router) SetupOptional(ctx context.Context) error { return r.route(ctx, optional()) }

func (r *Router) route(ctx context.Context, kinds []client.Object) error {
	for _, object := range kinds {
		found, err := r.cache.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("route %T: get the informer: %w", object, err)
		}
		handlers := toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { r.deliver(nil, stateOf(obj)) },
			UpdateFunc: r.update,
			DeleteFunc: func(obj any) { r.deliver(stateOf(obj), nil) },
		}
		byOwners := toolscache.Indexers{byOwner: ownerNames}
		if informer, ok := found.(toolscache.SharedIndexInformer); ok {
			err = informer.AddIndexers(byOwners)
			r.has(object, informer.GetIndexer())
		} else {
			// An informer for several namespaces has no indexer.
			state := toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, byOwners)
			r.has(object, state)
			handlers = keeping(state, handlers)
		}
		if err != nil {
			return fmt.Errorf("route %T: add indexers: %w", object, err)
		}
		if _, err := found.AddEventHandler(handlers); err != nil {
			return fmt.Errorf("route %T: add a handler: %w", object, err)
		}
	}
	return nil
}

func (r *Router) has(object client.Object, objects toolscache.Indexer) {
	r.objectsMu.Lock()
	defer r.objectsMu.Unlock()
	r.objects[reflect.TypeOf(object)] = objects
}

// keeping returns handlers that store the objects that an informer reports, and then call another
// handler.
func keeping(store toolscache.Store, then toolscache.ResourceEventHandlerFuncs) toolscache.ResourceEventHandlerFuncs {
	// A store rejects only objects without a name, which an informer does not report.
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { utilruntime.HandleError(store.Add(obj)); then.OnAdd(obj, false) },
		UpdateFunc: func(before, after any) { utilruntime.HandleError(store.Update(after)); then.OnUpdate(before, after) },
		DeleteFunc: func(obj any) { utilruntime.HandleError(store.Delete(obj)); then.OnDelete(obj) },
	}
}

// update delivers an update unless it changes nothing.
func (r *Router) update(before, after any) {
	was, is := stateOf(before), stateOf(after)
	if was == nil || is == nil || changed(was, is) {
		r.deliver(was, is)
	}
}

// stateOf returns the object that an informer reported, or nil.
func stateOf(state any) client.Object {
	if tombstone, ok := state.(toolscache.DeletedFinalStateUnknown); ok {
		state = tombstone.Obj
	}
	obj, _ := state.(client.Object)
	return obj
}

// deliver enqueues the requests for all owners of an object's two states; a state may be nil. If
// only one state concerns a member, the object counts as created or deleted for that member.
func (r *Router) deliver(was, is client.Object) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	left := r.sinksOf(was)
	for s := range r.sinksOf(is) {
		if _, both := left[s]; !both {
			s.enqueue(nil, is)
			continue
		}
		delete(left, s)
		if s.concerned(was, is) {
			s.enqueue(was, is)
		}
	}
	for s := range left {
		s.enqueue(was, nil)
	}
	if was != nil && (is == nil || was.GetUID() != is.GetUID()) {
		for s := range r.endsOf(was) {
			s.enqueue(was, nil)
		}
	}
}

// sinksOf returns the sinks of an object's owners.
func (r *Router) sinksOf(obj client.Object) map[*sink]struct{} {
	byKey := r.sinks[reflect.TypeOf(obj)]
	if len(byKey) == 0 {
		return nil
	}
	found := map[*sink]struct{}{}
	for _, k := range ownersOf(obj) {
		maps.Copy(found, byKey[k])
	}
	return found
}

// endsOf returns the sinks of all members for deletions of the object's kind.
func (r *Router) endsOf(obj client.Object) map[*sink]struct{} {
	return r.sinks[reflect.TypeOf(obj)][key{kind: byEnd}]
}

// concerned reports whether an update concerns a controller.
func (s *sink) concerned(was, is client.Object) bool {
	return was == is || !slices.ContainsFunc(s.only, func(concerns Concerns) bool { return !concerns(was, is) })
}

func (s *sink) enqueue(was, is client.Object) { urgency.Enqueue(s.ctx, s.queue, was, is, s.requests) }

// Source returns a controller's source of the events of a host kind that concern one member. It
// begins with the existing objects, skips updates that do not concern the controller, and ends when
// the controller's context ends.
func (r *Router) Source(owner Owner, object client.Object, requests Requests, only ...Concerns) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		s := &sink{ctx: ctx, requests: requests, only: only, queue: q}
		r.subscribe(owner.keys(), reflect.TypeOf(object), s)
		return r.Each(owner, object, metav1.NamespaceAll, func(obj client.Object) { s.enqueue(nil, obj) })
	})
}

// Ends returns a controller's source of the deletions of a host kind, regardless of the member that
// the object names, because a member may have a leaf of a claim that names another member or none.
func (r *Router) Ends(object client.Object, requests Requests) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		r.subscribe([]key{{kind: byEnd}}, reflect.TypeOf(object), &sink{ctx: ctx, requests: requests, queue: q})
		return nil
	})
}

func (r *Router) subscribe(keys []key, t reflect.Type, s *sink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sinks[t] == nil {
		r.sinks[t] = map[key]map[*sink]struct{}{}
	}
	for _, name := range keys {
		if r.sinks[t][name] == nil {
			r.sinks[t][name] = map[*sink]struct{}{}
		}
		r.sinks[t][name][s] = struct{}{}
	}
	context.AfterFunc(s.ctx, func() { r.unsubscribe(keys, t, s) })
}

// Each visits the objects of a host kind that concern a member, in one namespace, or in all
// namespaces if it is empty. Do not modify the objects, because they belong to the cache.
func (r *Router) Each(owner Owner, object client.Object, namespace string, visit func(client.Object)) error {
	r.objectsMu.RLock()
	objects := r.objects[reflect.TypeOf(object)]
	r.objectsMu.RUnlock()
	if objects == nil {
		if slices.ContainsFunc(optional(), func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(object) }) {
			return nil // the host does not serve the kind
		}
		return fmt.Errorf("%T is not a routed kind", object)
	}
	names := owner.keys()
	for i, name := range names {
		found, err := objects.ByIndex(byOwner, name.String())
		if err != nil {
			return fmt.Errorf("look up the %T of %s: %w", object, owner.NodeName, err)
		}
		for _, item := range found {
			obj, ok := item.(client.Object)
			if !ok || namespace != metav1.NamespaceAll && obj.GetNamespace() != namespace {
				continue
			}
			// Visit an object only once, even if it is found by several keys.
			if i == 0 || !concerns(names[:i], obj) {
				visit(obj)
			}
		}
	}
	return nil
}

func (r *Router) unsubscribe(keys []key, t reflect.Type, s *sink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range keys {
		delete(r.sinks[t][name], s)
		if len(r.sinks[t][name]) == 0 {
			delete(r.sinks[t], name)
		}
	}
}
