package capacity

import (
	"context"
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account/exhausted"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name of the controller.
	Name  = "capacity"
	actor = guarded.Actor("capacity")

	// workers: classes are few, and a request is a few reads of caches.
	workers = 1
	// pause between two changes of what is published of a class: drivers may say
	// something new for each node, and after each volume, while the scheduler looks
	// once for a Pod. What is withdrawn, or known to fail, cannot wait.
	pause = 2 * time.Second
)

// Options of the controller in one member.
type Options struct {
	// Namespace of the manager, where it publishes.
	Namespace string
	// Exhausted is what the member's drivers said they have no capacity for.
	Exhausted *exhausted.Sizes
}

// reconciler keeps one member's CSIStorageCapacities.
type reconciler struct {
	*member.Link
	Options
	// written is when a class's object was last changed or removed. One worker.
	written map[string]time.Time
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch

// Setup adds the controller to a Link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{link, o, map[string]time.Time{}}
	return link.Controller(Name, workers, r,
		link.RootSource(&storagev1.StorageClass{}, member.SameKey),
		link.RootSource(&storagev1.CSIStorageCapacity{}, ofCapacity),
		link.LeafSource(&storagev1.StorageClass{}, func(ctx context.Context, leaf client.Object) []reconcile.Request {
			return r.ofMemberClass(ctx, leaf.GetName())
		}),
		link.LeafSource(&storagev1.CSIStorageCapacity{}, r.ofSegment),
		o.Exhausted.SourceOf(r.ofMemberClass),
	)
}

// Reconcile brings what is published of one host class in line.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, again, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	now := r.Clock.Now()
	wait := max(0, r.written[request.Name].Add(pause).Sub(now))
	switch {
	case d.do == create && wait > 0, d.do == patch && wait > 0 && !o.promisesTooMuch():
		return reconcile.Result{RequeueAfter: wait}, nil
	case d.do == patch, d.do == remove:
		maps.DeleteFunc(r.written, func(_ string, at time.Time) bool { return now.Sub(at) > pause })
		r.written[request.Name] = now
	}
	switch d.do {
	case nothing:
	case create:
		err = r.Root.Create(ctx, actor, d.after)
	case patch:
		err = r.Root.Patch(ctx, actor, o.capacity, d.after)
	case remove:
		err = r.Root.Delete(ctx, o.capacity)
	}
	return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err) // the watch is about to bring what is new
}

// observe reads what is published of a class, and what should be; and after how
// long that changes by itself, 0 for never.
func (r *reconciler) observe(ctx context.Context, class string) (observed, time.Duration, error) {
	o := observed{member: r.Member, namespace: r.Namespace}
	var err error
	if o.registration, err = index.Find[v1alpha1.ClusterRegistration](ctx, r.Host, index.Named(r.Registration)); err != nil {
		return o, 0, err
	}
	if o.hostClass, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(class)); err != nil {
		return o, 0, err
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: nameOf(class, r.ClusterID)}
	if o.capacity, err = index.Find[storagev1.CSIStorageCapacity](ctx, r.Host, key); err != nil || o.hostClass == nil {
		return o, 0, err
	}
	name, _ := r.Place().ClassFor(o.hostClass)
	if o.leaf, err = index.Get(ctx, r.Cache, index.Named(name), &storagev1.StorageClass{}); err != nil || !o.leaf {
		return o, 0, err
	}
	now := r.Clock.Now()
	limit, until, limited := r.Exhausted.Limit(name, now)
	o.segments, err = index.SegmentsOf(ctx, r.Cache, name)
	if !limited {
		return o, 0, err
	}
	o.limit = &limit
	return o, until.Sub(now), err
}

// ofCapacity is the host class that a published object is about.
func ofCapacity(_ context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.Named(capacity.StorageClassName)}}
}

// ofSegment are the host classes that a member's CSIStorageCapacity is about.
func (r *reconciler) ofSegment(ctx context.Context, obj client.Object) []reconcile.Request {
	segment, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return nil
	}
	return r.ofMemberClass(ctx, segment.StorageClassName)
}

// ofMemberClass are the host classes that lead to a class of the member.
func (r *reconciler) ofMemberClass(ctx context.Context, class string) []reconcile.Request {
	var list storagev1.StorageClassList
	err := r.Host.List(ctx, &list)
	return route.RequestsFor(ctx, list.Items, err, func(host *storagev1.StorageClass) bool {
		name, _ := r.Place().ClassFor(host)
		return name == class && hostclass.Mirrors(host)
	})
}
