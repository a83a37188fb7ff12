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
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// RequestsOfObject maps a host object to the requests to enqueue. It may read caches, and must log its
// errors.
type RequestsOfObject func(context.Context, client.Object) []reconcile.Request

// routedKinds returns the routed kinds. Each kind has one handler for the lifetime of the manager.
func routedKinds() []client.Object {
	return []client.Object{
		&corev1.Pod{},
		&corev1.PersistentVolumeClaim{},
		&corev1.PersistentVolume{},
		&storagev1.StorageClass{},
		&corev1.Namespace{},
		&corev1.Node{},
		&policyv1.PodDisruptionBudget{},
		&corev1.Service{},
		&storagev1.CSIStorageCapacity{},
	}
}

// optionalKinds are the kinds that are routed once the host serves them.
func optionalKinds() []client.Object {
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

	// onDemand contains the kinds that OnDemandSource has begun to route, and indexed those whose index it has added.
	onDemandMu        sync.Mutex
	onDemand, indexed map[reflect.Type]bool

	mu            sync.RWMutex
	subscriptions map[reflect.Type]map[ownerKey]map[*subscription]struct{}
}

type subscription struct {
	ctx      context.Context //nolint:containedctx // of the subscribing controller: ends the subscription
	requests RequestsOfObject
	only     []ConcernsFunc
	queue    queue
}

// New creates a Router for the host's cache.
func New(hostCache cache.Cache) *Router {
	return &Router{cache: hostCache, onDemand: map[reflect.Type]bool{}, indexed: map[reflect.Type]bool{}, objects: map[reflect.Type]toolscache.Indexer{}, subscriptions: map[reflect.Type]map[ownerKey]map[*subscription]struct{}{}}
}

// ownerIndex is the name of the index by owner.
const ownerIndex = "xylem.by-owner"

// SetupHandlers adds the permanent handlers, and the index by owner, to the host's informers. Call it
// before the informers start.
func (r *Router) SetupHandlers(ctx context.Context) error { return r.addHandlers(ctx, routedKinds()) }

// SetupOptionalHandlers works like SetupHandlers, for optional kinds. Call it once the host serves these. Existing
// subscriptions receive the existing objects.
func (r *Router) SetupOptionalHandlers(ctx context.Context) error {
	return r.addHandlers(ctx, optionalKinds())
}

func (r *Router) addHandlers(ctx context.Context, kinds []client.Object) error {
	for _, object := range kinds {
		found, err := r.cache.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("route %T: get the informer: %w", object, err)
		}
		handlers := toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { r.deliverEvent(nil, objectOfEvent(obj)) },
			UpdateFunc: r.deliverUpdate,
			DeleteFunc: func(obj any) { r.deliverEvent(objectOfEvent(obj), nil) },
		}
		byOwners := toolscache.Indexers{ownerIndex: ownerIndexValues}
		if informer, ok := found.(toolscache.SharedIndexInformer); ok {
			err = informer.AddIndexers(byOwners)
			r.storeIndexer(object, informer.GetIndexer())
		} else {
			// An informer for several namespaces has no indexer.
			state := toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, byOwners)
			r.storeIndexer(object, state)
			handlers = storeAndForward(state, handlers)
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

func (r *Router) storeIndexer(object client.Object, objects toolscache.Indexer) {
	r.objectsMu.Lock()
	defer r.objectsMu.Unlock()
	r.objects[reflect.TypeOf(object)] = objects
}

// storeAndForward returns handlers that store the objects that an informer reports, and then call another
// handler.
func storeAndForward(store toolscache.Store, then toolscache.ResourceEventHandlerFuncs) toolscache.ResourceEventHandlerFuncs {
	// A store rejects only objects without a name, which an informer does not report.
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { utilruntime.HandleError(store.Add(obj)); then.OnAdd(obj, false) },
		UpdateFunc: func(before, after any) { utilruntime.HandleError(store.Update(after)); then.OnUpdate(before, after) },
		DeleteFunc: func(obj any) { utilruntime.HandleError(store.Delete(obj)); then.OnDelete(obj) },
	}
}

// deliverUpdate delivers an update unless it changes nothing.
func (r *Router) deliverUpdate(before, after any) {
	was, is := objectOfEvent(before), objectOfEvent(after)
	if was == nil || is == nil || objectChanged(was, is) {
		r.deliverEvent(was, is)
	}
}

// objectOfEvent returns the object that an informer reported, or nil.
func objectOfEvent(state any) client.Object {
	if tombstone, ok := state.(toolscache.DeletedFinalStateUnknown); ok {
		state = tombstone.Obj
	}
	obj, _ := state.(client.Object)
	return obj
}

// deliverEvent enqueues the requests for all owners of an object's two states; a state may be nil. If
// only one state concerns a member, the object counts as created or deleted for that member.
func (r *Router) deliverEvent(was, is client.Object) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	left := r.subscriptionsOf(was)
	for s := range r.subscriptionsOf(is) {
		if _, both := left[s]; !both {
			s.enqueueRequests(nil, is)
			continue
		}
		delete(left, s)
		if s.isConcerned(was, is) {
			s.enqueueRequests(was, is)
		}
	}
	for s := range left {
		s.enqueueRequests(was, nil)
	}
	if was != nil && (is == nil || was.GetUID() != is.GetUID()) {
		for s := range r.deletionSubscriptionsOf(was) {
			s.enqueueRequests(was, nil)
		}
	}
}

// subscriptionsOf returns the sinks of an object's owners.
func (r *Router) subscriptionsOf(obj client.Object) map[*subscription]struct{} {
	byKey := r.subscriptions[reflect.TypeOf(obj)]
	if len(byKey) == 0 {
		return nil
	}
	found := map[*subscription]struct{}{}
	for _, k := range ownerKeysOf(obj) {
		maps.Copy(found, byKey[k])
	}
	return found
}

// deletionSubscriptionsOf returns the sinks of all members for deletions of the object's kind.
func (r *Router) deletionSubscriptionsOf(obj client.Object) map[*subscription]struct{} {
	return r.subscriptions[reflect.TypeOf(obj)][ownerKey{kind: byDeletion}]
}

// isConcerned reports whether an update concerns a controller.
func (s *subscription) isConcerned(was, is client.Object) bool {
	return was == is || !slices.ContainsFunc(s.only, func(concerns ConcernsFunc) bool { return !concerns(was, is) })
}

func (s *subscription) enqueueRequests(was, is client.Object) {
	EnqueueStates(s.ctx, s.queue, was, is, s.requests)
}

// MemberSource returns a controller's source of the events of a host kind that concern one member. It
// begins with the existing objects, skips updates that do not concern the controller, and ends when
// the controller's context ends.
func (r *Router) MemberSource(owner Owner, object client.Object, requests RequestsOfObject, only ...ConcernsFunc) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		s := &subscription{ctx: ctx, requests: requests, only: only, queue: q}
		r.addSubscription(owner.routingKeys(), reflect.TypeOf(object), s)
		return r.VisitObjects(owner, object, metav1.NamespaceAll, func(obj client.Object) { s.enqueueRequests(nil, obj) })
	})
}

// OnDemandSource is MemberSource for a kind that is routed only once a member needs it. The first source starts to
// watch the kind.
func (r *Router) OnDemandSource(owner Owner, object client.Object, addIndex AddIndexFunc, requests RequestsOfObject) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		if err := r.routeOnDemand(ctx, object, addIndex); err != nil {
			return err
		}
		return r.MemberSource(owner, object, requests).Start(ctx, q) //nolint:wrapcheck // the source's own
	})
}

// AddIndexFunc adds an index to the host's cache.
type AddIndexFunc func(context.Context, client.FieldIndexer) error

// routeOnDemand adds the index and the permanent handlers of a kind once.
func (r *Router) routeOnDemand(ctx context.Context, object client.Object, addIndex AddIndexFunc) error {
	r.onDemandMu.Lock()
	defer r.onDemandMu.Unlock()
	if r.onDemand[reflect.TypeOf(object)] {
		return nil
	}
	if !r.indexed[reflect.TypeOf(object)] { // adding an index again fails, but the handlers may fail and be added later
		if err := addIndex(ctx, r.cache); err != nil {
			return err
		}
		r.indexed[reflect.TypeOf(object)] = true
	}
	if err := r.addHandlers(ctx, []client.Object{object}); err != nil {
		return err
	}
	r.onDemand[reflect.TypeOf(object)] = true
	return nil
}

// DeletionsSource returns a controller's source of the deletions of a host kind, regardless of the member that
// the object names, because a member may have a leaf of a claim that names another member or none.
func (r *Router) DeletionsSource(object client.Object, requests RequestsOfObject) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		r.addSubscription([]ownerKey{{kind: byDeletion}}, reflect.TypeOf(object), &subscription{ctx: ctx, requests: requests, queue: q})
		return nil
	})
}

func (r *Router) addSubscription(keys []ownerKey, t reflect.Type, s *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.subscriptions[t] == nil {
		r.subscriptions[t] = map[ownerKey]map[*subscription]struct{}{}
	}
	for _, name := range keys {
		if r.subscriptions[t][name] == nil {
			r.subscriptions[t][name] = map[*subscription]struct{}{}
		}
		r.subscriptions[t][name][s] = struct{}{}
	}
	context.AfterFunc(s.ctx, func() { r.removeSubscription(keys, t, s) })
}

// VisitObjects visits the objects of a host kind that concern a member, in one namespace, or in all
// namespaces if it is empty. Do not modify the objects, because they belong to the cache.
func (r *Router) VisitObjects(owner Owner, object client.Object, namespace string, visit func(client.Object)) error {
	r.objectsMu.RLock()
	objects := r.objects[reflect.TypeOf(object)]
	r.objectsMu.RUnlock()
	if objects == nil {
		if slices.ContainsFunc(optionalKinds(), func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(object) }) {
			return nil // the host does not serve the kind
		}
		return fmt.Errorf("%T is not a routed kind", object)
	}
	names := owner.routingKeys()
	for i, name := range names {
		found, err := objects.ByIndex(ownerIndex, name.String())
		if err != nil {
			return fmt.Errorf("look up the %T of %s: %w", object, owner.NodeName, err)
		}
		for _, item := range found {
			obj, ok := item.(client.Object)
			if !ok || namespace != metav1.NamespaceAll && obj.GetNamespace() != namespace {
				continue
			}
			// Visit an object only once, even if it is found by several keys.
			if i == 0 || !concernsMember(names[:i], obj) {
				visit(obj)
			}
		}
	}
	return nil
}

func (r *Router) removeSubscription(keys []ownerKey, t reflect.Type, s *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range keys {
		delete(r.subscriptions[t][name], s)
		if len(r.subscriptions[t][name]) == 0 {
			delete(r.subscriptions[t], name)
		}
	}
}
