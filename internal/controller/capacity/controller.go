package capacity

import (
	"cmp"
	"context"
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "capacity"
	actor = guarded.Actor("capacity")

	// workers is the number of concurrent reconciles. One is enough: there are few classes, and each
	// reconcile makes a few cached reads.
	workers = 1
	// minWriteInterval is the minimum time between two writes for a class. A driver may report a new capacity
	// after each volume and for each node, but the scheduler reads the capacity only once for each
	// Pod. Deletions, and corrections of a capacity that is known to be too high, do not wait.
	minWriteInterval = 2 * time.Second
)

// Options configures the controller of one member.
type Options struct {
	// Namespace is the manager's namespace, where the controller creates the objects.
	Namespace string
	// Exhausted contains the sizes that the member's drivers rejected for lack of space.
	Exhausted *account.RejectedSizes
}

// reconciler manages the CSIStorageCapacities of one member.
type reconciler struct {
	*member.Link
	Options
	// lastWritten records when each class's object was last patched or deleted. It needs no lock, because
	// there is one worker.
	lastWritten map[string]time.Time
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch

// SetupWithLink adds the controller to a Link.
func SetupWithLink(link *member.Link, o Options) error {
	r := &reconciler{link, o, map[string]time.Time{}}
	return link.AddController(Name, workers, r,
		link.RootObjectSource(&storagev1.StorageClass{}, member.RequestOfSameKey),
		link.RootObjectSource(&storagev1.CSIStorageCapacity{}, requestOfCapacity),
		link.LeafObjectSource(&storagev1.StorageClass{}, func(ctx context.Context, leaf client.Object) []reconcile.Request {
			return r.memberClassToRequests(ctx, leaf.GetName())
		}),
		link.LeafObjectSource(&storagev1.CSIStorageCapacity{}, r.segmentToRequests),
		o.Exhausted.LimitChangeSource(r.memberClassToRequests),
	)
}

// Reconcile creates, updates or deletes the CSIStorageCapacity of one host class.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, again, err := r.observeClass(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideCapacity(o)
	now := r.Clock.Now()
	wait := max(0, r.lastWritten[request.Name].Add(minWriteInterval).Sub(now))
	switch {
	case d.action == actionCreate && wait > 0, d.action == actionPatch && wait > 0 && !o.publishesTooMuch():
		return reconcile.Result{RequeueAfter: wait}, nil
	case d.action == actionPatch, d.action == actionDelete:
		maps.DeleteFunc(r.lastWritten, func(_ string, at time.Time) bool { return now.Sub(at) > minWriteInterval })
		r.lastWritten[request.Name] = now
	}
	switch d.action {
	case actionNone:
	case actionCreate:
		err = r.HostWriter.CreateOwned(ctx, actor, d.after)
	case actionPatch:
		err = r.HostWriter.PatchOwned(ctx, actor, o.capacity, d.after)
	case actionDelete:
		err = r.HostWriter.DeleteOwned(ctx, o.capacity)
	}
	return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err) // if the object is gone, the watch enqueues the class
}

// observeClass reads the input of decide for a class. It also returns the time after which this input
// may change without an event, or 0.
func (r *reconciler) observeClass(ctx context.Context, class string) (observed, time.Duration, error) {
	o := observed{member: r.Member, namespace: r.Namespace}
	var err error
	if o.registration, err = index.FindObject[v1alpha1.ClusterRegistration](ctx, r.Host, index.ClusterScopedKey(r.Registration)); err != nil {
		return o, 0, err
	}
	if o.hostClass, err = index.FindObject[storagev1.StorageClass](ctx, r.Host, index.ClusterScopedKey(class)); err != nil {
		return o, 0, err
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: capacityNameOf(class, r.ClusterID)}
	if o.capacity, err = index.FindObject[storagev1.CSIStorageCapacity](ctx, r.Host, key); err != nil || o.hostClass == nil {
		return o, 0, err
	}
	name, _ := r.PlacementMember().StorageClassFor(o.hostClass)
	if o.leafClassExists, err = index.GetIfExists(ctx, r.Cache, index.ClusterScopedKey(name), &storagev1.StorageClass{}); err != nil || !o.leafClassExists {
		return o, 0, err
	}
	now := r.Clock.Now()
	limit, until, limited := r.Exhausted.MaxRequestSize(name, now)
	if o.segments, err = index.CapacitySegmentsOf(ctx, r.Cache, name); err != nil {
		return o, 0, err
	}
	var again time.Duration
	if limited {
		o.limit, again = &limit, until.Sub(now)
	}
	if len(o.segments) == 0 {
		// The changes of other members do not enqueue requests here, because each would enqueue one for
		// every member (I7).
		again = min(cmp.Or(again, r.RecheckInterval), r.RecheckInterval)
		o.others, err = index.CapacitySegmentsOf(ctx, r.Host, class)
	}
	return o, again, err
}

// requestOfCapacity enqueues the host class of a CSIStorageCapacity in the host.
func requestOfCapacity(_ context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(capacity.StorageClassName)}}
}

// segmentToRequests enqueues the host classes that are mapped to the class of a CSIStorageCapacity in the
// member.
func (r *reconciler) segmentToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	segment, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return nil
	}
	return r.memberClassToRequests(ctx, segment.StorageClassName)
}

// memberClassToRequests enqueues the host classes that are mapped to one of the member's classes.
func (r *reconciler) memberClassToRequests(ctx context.Context, class string) []reconcile.Request {
	var list storagev1.StorageClassList
	err := r.Host.List(ctx, &list)
	return route.RequestsFor(ctx, list.Items, err, func(host *storagev1.StorageClass) bool {
		name, _ := r.PlacementMember().StorageClassFor(host)
		return name == class && hostpv.IsMirrorClass(host)
	})
}
