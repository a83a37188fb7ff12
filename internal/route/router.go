package route

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Requests maps an object of the host to the requests that it wakes. It may
// read caches; an error is for it to log.
type Requests func(context.Context, client.Object) []reconcile.Request

// kind is a routed kind: an object to get its informer by, a list to fill a
// new subscription from.
type kind struct {
	object client.Object
	list   client.ObjectList
}

// kinds are routed. Each has one handler for the life of the manager.
func kinds() []kind {
	return []kind{
		{&corev1.Pod{}, &corev1.PodList{}},
		{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}},
		{&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}},
		{&storagev1.StorageClass{}, &storagev1.StorageClassList{}},
		{&corev1.Namespace{}, &corev1.NamespaceList{}},
		{&storagev1.CSIStorageCapacity{}, &storagev1.CSIStorageCapacityList{}},
	}
}

// Router hands the host's events to subscriptions.
type Router struct {
	cache cache.Cache

	mu    sync.RWMutex
	sinks map[reflect.Type]map[key]map[*sink]struct{}
}

type sink struct {
	ctx      context.Context //nolint:containedctx // of the subscribing controller: ends the subscription
	requests Requests
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New makes a router on the host's cache.
func New(hostCache cache.Cache) *Router {
	return &Router{cache: hostCache, sinks: map[reflect.Type]map[key]map[*sink]struct{}{}}
}

// byOwner is the index of the host's cache by the names of members.
const byOwner = "xylem.by-owner"

// Setup adds the permanent handlers, and the index by owner, to the host's informers;
// before these start.
func (r *Router) Setup(ctx context.Context) error {
	for _, k := range kinds() {
		if err := r.cache.IndexField(ctx, k.object, byOwner, ownerNames); err != nil {
			return fmt.Errorf("route %T: index it: %w", k.object, err)
		}
		informer, err := r.cache.GetInformer(ctx, k.object)
		if err != nil {
			return fmt.Errorf("route %T: get its informer: %w", k.object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { r.deliver(obj) },
			UpdateFunc: r.update,
			DeleteFunc: func(obj any) { r.deliver(obj) },
		}); err != nil {
			return fmt.Errorf("route %T: add a handler: %w", k.object, err)
		}
	}
	return nil
}

// update delivers an update that is one.
func (r *Router) update(before, after any) {
	was, known := before.(client.Object)
	is, ok := after.(client.Object)
	if !known || !ok || changed(was, is) {
		r.deliver(before, after)
	}
}

// deliver wakes the sinks of all owners of all states of an object, each sink
// once a state at most.
func (r *Router) deliver(states ...any) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, state := range states {
		if tombstone, ok := state.(toolscache.DeletedFinalStateUnknown); ok {
			state = tombstone.Obj
		}
		obj, ok := state.(client.Object)
		if !ok {
			continue
		}
		byKey := r.sinks[reflect.TypeOf(obj)]
		if len(byKey) == 0 {
			continue
		}
		woken := map[*sink]struct{}{}
		for _, k := range ownersOf(obj) {
			for s := range byKey[k] {
				if _, done := woken[s]; !done {
					woken[s] = struct{}{}
					s.wake(obj)
				}
			}
		}
	}
}

func (s *sink) wake(obj client.Object) {
	for _, request := range s.requests(s.ctx, obj) {
		s.queue.Add(request)
	}
}

// Source is a controller's source of the events of a host kind that concern
// one member, beginning with the objects that are there. It ends with the
// controller's context.
func (r *Router) Source(owner Owner, object client.Object, requests Requests) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		k, err := kindOf(object)
		if err != nil {
			return err
		}
		return r.subscribe(ctx, owner, k, &sink{ctx: ctx, requests: requests, queue: queue})
	})
}

func kindOf(object client.Object) (kind, error) {
	for _, k := range kinds() {
		if reflect.TypeOf(k.object) == reflect.TypeOf(object) {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("%T is not a routed kind", object)
}

func (r *Router) subscribe(ctx context.Context, owner Owner, k kind, s *sink) error {
	t := reflect.TypeOf(k.object)
	r.mu.Lock()
	if r.sinks[t] == nil {
		r.sinks[t] = map[key]map[*sink]struct{}{}
	}
	for _, name := range owner.keys() {
		if r.sinks[t][name] == nil {
			r.sinks[t][name] = map[*sink]struct{}{}
		}
		r.sinks[t][name][s] = struct{}{}
	}
	r.mu.Unlock()
	context.AfterFunc(ctx, func() { r.unsubscribe(owner, t, s) })
	return r.each(ctx, owner, k, metav1.NamespaceAll, s.wake)
}

// Each visits the objects of a host kind that concern a member, in one namespace or,
// if that is empty, in all. They are the cache's own: not to be changed, or kept.
func (r *Router) Each(ctx context.Context, owner Owner, object client.Object, namespace string, visit func(client.Object)) error {
	k, err := kindOf(object)
	if err != nil {
		return err
	}
	return r.each(ctx, owner, k, namespace, visit)
}

func (r *Router) each(ctx context.Context, owner Owner, k kind, namespace string, visit func(client.Object)) error {
	names := owner.keys()
	for _, name := range names {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("%T is no list", k.list)
		}
		if err := r.cache.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{byOwner: name.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the %T of %s: %w", k.object, owner.NodeName, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return nil
			}
			// One that is listed by several names is visited by the first.
			if first, owned := firstOf(names, obj); owned && first == name {
				visit(obj)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("visit the %T of %s: %w", k.object, owner.NodeName, err)
		}
	}
	return nil
}

func (r *Router) unsubscribe(owner Owner, t reflect.Type, s *sink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range owner.keys() {
		delete(r.sinks[t][name], s)
		if len(r.sinks[t][name]) == 0 {
			delete(r.sinks[t], name)
		}
	}
}
