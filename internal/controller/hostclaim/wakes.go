package hostclaim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// ofClaim enqueues the claims whose data source is the claim.
func (r *Reconciler) ofClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	return r.clones(ctx, client.ObjectKeyFromObject(claim))
}

// ofVolume enqueues the claims whose data source is the volume's claim.
func (r *Reconciler) ofVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return r.clones(ctx, hostpv.ClaimKey(pv))
}

// ofSnapshot enqueues the claims whose data source is a VolumeSnapshot. For a
// VolumeSnapshotContent, it uses the content's VolumeSnapshot.
func (r *Reconciler) ofSnapshot(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.RestoresOf(ctx, r.Client, index.SnapshotNamed(obj))
	return requests(ctx, claims, err)
}

func (r *Reconciler) clones(ctx context.Context, source types.NamespacedName) []reconcile.Request {
	claims, err := index.ClaimsFrom(ctx, r.Client, source.Namespace, datasource.ClaimKey(source.Name))
	return requests(ctx, claims, err)
}

// concerns reports whether a claim waits, or still reports a problem. The condition of a claim that was just bound is
// then removed.
func concerns(claim *corev1.PersistentVolumeClaim) bool {
	return waiting(claim) || report.ClaimProblem(claim, v1alpha1.ClaimPlaceable) != nil
}

// ofPod enqueues the claims of a Pod that cannot be scheduled.
func ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !unschedulable(pod) {
		return nil
	}
	return member.ClaimsOfWaiting(ctx, pod)
}

// ofNode enqueues the claims for which the node was selected. For a virtual node, it also enqueues
// claims without a selected node, because the node's labels determine whether their classes allow
// it.
func (r *Reconciler) ofNode(ctx context.Context, node client.Object) []reconcile.Request {
	virtual := node.GetLabels()[v1alpha1.LabelVirtualNode] == "true"
	claims, err := index.Waiting(ctx, r.Client)
	return requests(ctx, slices.DeleteFunc(claims, func(claim corev1.PersistentVolumeClaim) bool {
		selected := claim.Annotations[route.AnnSelectedNode]
		return selected != node.GetName() && (selected != "" || !virtual)
	}), err)
}

func (r *Reconciler) ofClass(ctx context.Context, class client.Object) []reconcile.Request {
	claims, err := index.WaitingForClass(ctx, r.Client, class.GetName())
	return requests(ctx, claims, err)
}

// inNamespace enqueues the waiting claims in a namespace whose labels have changed.
func (r *Reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	claims, err := index.WaitingIn(ctx, r.Client, namespace.GetName())
	return requests(ctx, claims, err)
}

func (r *Reconciler) ofCapacity(ctx context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok || capacity.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return nil
	}
	claims, err := index.WaitingForClass(ctx, r.Client, capacity.StorageClassName)
	return requests(ctx, claims, err)
}

func (r *Reconciler) ofRegistration(ctx context.Context, _ client.Object) []reconcile.Request {
	claims, err := index.Waiting(ctx, r.Client)
	return requests(ctx, claims, err)
}

// requests returns requests for those claims that wait or report a problem.
func requests(ctx context.Context, claims []corev1.PersistentVolumeClaim, err error) []reconcile.Request {
	return route.RequestsFor(ctx, claims, err, concerns)
}
