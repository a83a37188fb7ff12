package leafpvc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
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
	)
}

// Reconcile brings the status of one root claim up to date.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var root, leaf corev1.PersistentVolumeClaim
	if err := r.Host.Get(ctx, request.NamespacedName, &root); err != nil {
		return reconcile.Result{}, ignoreNotFound(request, err)
	}
	if err := r.Cache.Get(ctx, request.NamespacedName, &leaf); err != nil {
		return reconcile.Result{}, ignoreNotFound(request, err)
	}
	origin, ours := mirror.OriginIn(r.HostID, &leaf)
	if !ours || origin.UID != root.UID || !r.mirrors(ctx, &root, &leaf) {
		return reconcile.Result{}, nil
	}
	want := mirror.RootClaimStatus(&root, &leaf)
	if mirror.ClaimStatusCurrent(&root, want) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.Root.ApplyStatus(ctx, actor, mirror.ClaimStatusApply(&root, want))
}

// mirrors reports whether the root is bound to the mirror of the leaf's volume:
// the status of a surplus leaf is nothing to show.
func (r *reconciler) mirrors(ctx context.Context, root, leaf *corev1.PersistentVolumeClaim) bool {
	if root.Spec.VolumeName == "" || leaf.Spec.VolumeName == "" || root.Status.Phase != corev1.ClaimBound || leaf.Status.Phase != corev1.ClaimBound {
		return false
	}
	var pv corev1.PersistentVolume
	if err := r.Host.Get(ctx, client.ObjectKey{Name: root.Spec.VolumeName}, &pv); err != nil {
		return false
	}
	cluster, leafName, _, ok := mirror.LeafVolumeOf(&pv)
	return ok && cluster == r.ClusterID && leafName == leaf.Spec.VolumeName
}

func ignoreNotFound(request reconcile.Request, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("read claim %s: %w", request, err)
}
