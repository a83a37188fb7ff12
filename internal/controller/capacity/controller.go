package capacity

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
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
	link *member.Link
	// host reads the host's cache.
	host      client.Reader
	namespace string
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch

// Setup adds the controller to a Link; host reads the host's cache, namespace
// is the manager's.
func Setup(link *member.Link, host client.Reader, router *route.Router, namespace string) error {
	r := &reconciler{link: link, host: host, namespace: namespace}
	return link.Controller(Name, workers, r,
		router.Source(link.Owner(), &storagev1.StorageClass{}, member.SameKey),
		router.Source(link.Owner(), &storagev1.CSIStorageCapacity{}, ofCapacity),
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
		err = r.link.Root.Create(ctx, actor, d.after)
	case patch:
		err = r.link.Root.Patch(ctx, actor, o.capacity, d.after)
	case remove:
		err = r.link.Root.Delete(ctx, o.capacity)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil // the watch is about to bring what is new
	}
	return reconcile.Result{}, err
}

func (r *reconciler) observe(ctx context.Context, class string) (observed, error) {
	o := observed{member: r.link.Member, namespace: r.namespace}
	var (
		registration v1alpha1.ClusterRegistration
		hostClass    storagev1.StorageClass
		capacity     storagev1.CSIStorageCapacity
	)
	if there, err := get(ctx, r.host, client.ObjectKey{Name: r.link.Registration}, &registration); err != nil {
		return o, err
	} else if there {
		o.registration = &registration
	}
	if there, err := get(ctx, r.host, client.ObjectKey{Name: class}, &hostClass); err != nil {
		return o, err
	} else if there {
		o.hostClass = &hostClass
	}
	key := client.ObjectKey{Namespace: r.namespace, Name: nameOf(class, r.link.ClusterID)}
	if there, err := get(ctx, r.host, key, &capacity); err != nil {
		return o, err
	} else if there {
		o.capacity = &capacity
	}
	if o.hostClass != nil {
		name, _ := mirror.MemberClass(o.hostClass, r.link.Member)
		var err error
		if o.leaf, err = get(ctx, r.link.Cache, client.ObjectKey{Name: name}, &storagev1.StorageClass{}); err != nil {
			return o, err
		}
	}
	return o, nil
}

func get(ctx context.Context, from client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := from.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
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
	if err := r.host.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the host's StorageClasses")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if name, _ := mirror.MemberClass(&list.Items[i], r.link.Member); name == leaf.GetName() && mirrored(&list.Items[i]) {
			requests = append(requests, request(list.Items[i].Name))
		}
	}
	return requests
}

func request(class string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: class}}
}
