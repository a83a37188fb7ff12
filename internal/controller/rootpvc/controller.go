package rootpvc

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name of the controller.
	Name  = "root_pvc"
	actor = guarded.Actor("root-pvc")
	// workers push claims of one member side by side; each is at most a write
	// or two away from waiting for a watch.
	workers = 8
)

// reconciler reconciles the claims of the host that concern one member, by the
// name that root and leaf have in common.
type reconciler struct{ *member.Link }

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := &reconciler{link}
	return link.Controller(Name, workers, r,
		link.RootSource(&corev1.PersistentVolumeClaim{}, member.SameKey),
		link.RootSource(&corev1.PersistentVolume{}, ofHostVolume),
		link.RootSource(&storagev1.StorageClass{}, r.waiting),
		link.LeafSource(&corev1.PersistentVolumeClaim{}, member.SameKey),
		link.LeafSource(&corev1.PersistentVolume{}, r.ofLeafVolume),
		link.LeafSource(&storagev1.StorageClass{}, r.waiting),
		link.LeafSource(&corev1.Namespace{}, r.inNamespace),
	)
}

// Reconcile brings one claim a step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.act(ctx, o, decide(o))
}

func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member}
	var err error
	if o.root, err = index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.leaf, o.origin, err = index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key); err != nil {
		return o, err
	}
	if o.leaf != nil {
		if o.leafVolume, err = index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(o.leaf.Spec.VolumeName)); err != nil {
			return o, err
		}
		if o.mirrored, err = r.mirrored(ctx, o.leafVolume); err != nil {
			return o, err
		}
	}
	if o.root == nil {
		return o, nil
	}
	if err := r.observeVolume(ctx, &o); err != nil {
		return o, err
	}
	return o, r.observePlace(ctx, &o)
}

// mirrored reports whether a host PV stands for a leaf PV and is held for it.
func (r *reconciler) mirrored(ctx context.Context, leaf *corev1.PersistentVolume) (bool, error) {
	if leaf == nil {
		return false, nil
	}
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, leaf.Name)
	return slices.ContainsFunc(hosts, func(host corev1.PersistentVolume) bool {
		return controllerutil.ContainsFinalizer(&host, v1alpha1.FinalizerLeafVolume)
	}), err
}

// observeVolume looks up the host PV that the root is bound to, and the leaf PV
// that it stands for.
func (r *reconciler) observeVolume(ctx context.Context, o *observed) error {
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(o.root.Spec.VolumeName))
	if err != nil || pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != o.root.UID {
		return err
	}
	cluster, leafName, uid, ours := mirror.LeafVolumeOf(pv)
	if o.boundAway = !ours || cluster != r.ClusterID; o.boundAway {
		return nil
	}
	o.hostVolume = pv
	o.boundTo = leafName
	leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(leafName))
	if err != nil {
		return err
	}
	if leaf != nil && leaf.UID == uid {
		o.boundLeaf = leaf
	}
	return nil
}

// observePlace looks up the classes on both sides and the member's namespace.
func (r *reconciler) observePlace(ctx context.Context, o *observed) error {
	var err error
	if o.class, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(ptr.Deref(o.root.Spec.StorageClassName, ""))); err != nil {
		return err
	}
	if o.class != nil && o.class.Provisioner == v1alpha1.ProvisionerName {
		var classes storagev1.StorageClassList
		if err := r.Cache.List(ctx, &classes); err != nil {
			return fmt.Errorf("list the member's storage classes: %w", err)
		}
		for i := range classes.Items {
			o.memberClasses = append(o.memberClasses, classes.Items[i].Name)
		}
	}
	o.namespace, err = index.Find[corev1.Namespace](ctx, r.Cache, index.Named(o.root.Namespace))
	return err
}

// ofHostVolume wakes the claim that a host PV is for.
func ofHostVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}}
}

// ofLeafVolume wakes the root of the leaf claim that a leaf PV is for, and those
// of host PVs that stand for it.
func (r *reconciler) ofLeafVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := ofHostVolume(ctx, obj)
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, obj.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the host volumes of a leaf volume")
		return requests
	}
	for i := range hosts {
		requests = append(requests, ofHostVolume(ctx, &hosts[i])...)
	}
	return requests
}

// waiting wakes the claims that wait for something here: a class that came or
// went may let them go on.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.claims(ctx, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == "" && chosen(claim, r.Member)
	})
}

func (r *reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.claims(ctx, func(claim *corev1.PersistentVolumeClaim) bool { return chosen(claim, r.Member) }, client.InNamespace(namespace.GetName()))
}

func (r *reconciler) claims(ctx context.Context, match func(*corev1.PersistentVolumeClaim) bool, opts ...client.ListOption) []reconcile.Request {
	var list corev1.PersistentVolumeClaimList
	if err := r.Host.List(ctx, &list, opts...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list claims")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
