package capacity

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name of the controller.
	Name  = "capacity"
	actor = guarded.Actor("capacity")

	// workers: classes are few, and a request is a few reads of caches.
	workers = 1
)

// reconciler keeps one member's CSIStorageCapacities.
type reconciler struct {
	*member.Link
	namespace string
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch

// Setup adds the controller to a Link; namespace is the manager's.
func Setup(link *member.Link, namespace string) error {
	r := &reconciler{link, namespace}
	return link.Controller(Name, workers, r,
		link.RootSource(&storagev1.StorageClass{}, member.SameKey),
		link.RootSource(&storagev1.CSIStorageCapacity{}, ofCapacity),
		link.LeafSource(&storagev1.StorageClass{}, r.ofLeafClass),
	)
}

// Reconcile brings what is published of one host class in line.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch d := decide(o); d.do {
	case nothing:
	case create:
		err = r.Root.Create(ctx, actor, d.after)
	case patch:
		err = r.Root.Patch(ctx, actor, o.capacity, d.after)
	case remove:
		err = r.Root.Delete(ctx, o.capacity)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err) // the watch is about to bring what is new
}

func (r *reconciler) observe(ctx context.Context, class string) (observed, error) {
	o := observed{member: r.Member, namespace: r.namespace}
	var err error
	if o.registration, err = index.Find[v1alpha1.ClusterRegistration](ctx, r.Host, index.Named(r.Registration)); err != nil {
		return o, err
	}
	if o.hostClass, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(class)); err != nil {
		return o, err
	}
	key := types.NamespacedName{Namespace: r.namespace, Name: nameOf(class, r.ClusterID)}
	if o.capacity, err = index.Find[storagev1.CSIStorageCapacity](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.hostClass != nil {
		name, _ := mirror.MemberClass(o.hostClass, r.Member)
		o.leaf, err = index.Get(ctx, r.Cache, index.Named(name), &storagev1.StorageClass{})
	}
	return o, err
}

// ofCapacity is the host class that a published object is about.
func ofCapacity(_ context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(capacity.StorageClassName)}
}

// ofLeafClass are the host classes that lead to a class of the member.
func (r *reconciler) ofLeafClass(ctx context.Context, leaf client.Object) []reconcile.Request {
	var list storagev1.StorageClassList
	if err := r.Host.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the host's StorageClasses")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if name, _ := mirror.MemberClass(&list.Items[i], r.Member); name == leaf.GetName() && mirrored(&list.Items[i]) {
			requests = append(requests, request(list.Items[i].Name))
		}
	}
	return requests
}

func request(class string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: class}}
}
