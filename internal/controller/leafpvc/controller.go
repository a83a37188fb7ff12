package leafpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name of the controller.
	Name  = "leaf_pvc"
	actor = guarded.Actor("leaf-pvc")
	// workers carry statuses of one member up side by side.
	workers = 4
)

type reconciler struct{ *member.Link }

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	return link.Controller(Name, workers, &reconciler{link},
		link.LeafSource(&corev1.PersistentVolumeClaim{}, member.SameKey),
		link.RootSource(&corev1.PersistentVolumeClaim{}, member.SameKey),
		link.RootSource(&corev1.PersistentVolume{}, link.Own(ofClaimRef)),
	)
}

// ofClaimRef wakes the claim that a host PV is for: its volume may be seen after
// the claim was seen to be bound to it.
func ofClaimRef(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}}
}

// Reconcile brings the status of one root claim up to date.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	root, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, request.NamespacedName)
	if err != nil || root == nil {
		return reconcile.Result{}, err
	}
	leaf, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, request.NamespacedName)
	if err != nil || leaf == nil || origin.UID != root.UID {
		return reconcile.Result{}, err
	}
	if mirrors, err := r.mirrors(ctx, root, leaf); err != nil || !mirrors {
		return reconcile.Result{}, err
	}
	want := mirror.RootClaimStatus(root, leaf)
	if mirror.ClaimStatusCurrent(root, want) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.Root.ApplyStatus(ctx, actor, mirror.ClaimStatusApply(root, want))
}

// mirrors reports whether the root is bound to the mirror of the leaf's volume:
// the status of a surplus leaf is nothing to show.
func (r *reconciler) mirrors(ctx context.Context, root, leaf *corev1.PersistentVolumeClaim) (bool, error) {
	if root.Spec.VolumeName == "" || leaf.Spec.VolumeName == "" || root.Status.Phase != corev1.ClaimBound || leaf.Status.Phase != corev1.ClaimBound {
		return false, nil
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(root.Spec.VolumeName))
	if err != nil || pv == nil {
		return false, err
	}
	cluster, leafName, _, ok := mirror.LeafVolumeOf(pv)
	return ok && cluster == r.ClusterID && leafName == leaf.Spec.VolumeName, nil
}
