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
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// claimToClones enqueues the claims whose data source is the claim.
func (r *Reconciler) claimToClones(ctx context.Context, claim client.Object) []reconcile.Request {
	return r.requestsForClones(ctx, client.ObjectKeyFromObject(claim))
}

// volumeToClones enqueues the claims whose data source is the volume's claim.
func (r *Reconciler) volumeToClones(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return r.requestsForClones(ctx, hostpv.ClaimRefKey(pv))
}

// snapshotToClaims enqueues the claims whose data source is a VolumeSnapshot. For a
// VolumeSnapshotContent, it uses the content's VolumeSnapshot.
func (r *Reconciler) snapshotToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.UnfilledClaimsFromSnapshot(ctx, r.Client, index.SnapshotKeyOf(obj))
	return requestsForClaims(ctx, claims, err)
}

func (r *Reconciler) requestsForClones(ctx context.Context, source types.NamespacedName) []reconcile.Request {
	claims, err := index.UnfilledClaimsFrom(ctx, r.Client, source.Namespace, mirror.ClaimDataSourceKey(source.Name))
	return requestsForClaims(ctx, claims, err)
}

// waitsOrShowsProblem reports whether a claim waits, or still reports a problem. The condition of a claim that was just bound is
// then removed.
func waitsOrShowsProblem(claim *corev1.PersistentVolumeClaim) bool {
	return waitsForVolume(claim) || report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaceable) != nil
}

// podToClaims enqueues the claims of a Pod that cannot be scheduled.
func podToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !isUnschedulable(pod) {
		return nil
	}
	return member.ClaimsOfUnboundPod(ctx, pod)
}

// nodeToClaims enqueues the claims for which the node was selected. For a virtual node, it also enqueues
// claims without a selected node, because the node's labels determine whether their classes allow
// it.
func (r *Reconciler) nodeToClaims(ctx context.Context, node client.Object) []reconcile.Request {
	virtual := node.GetLabels()[v1alpha1.LabelVirtualNode] == "true"
	claims, err := index.WaitingClaims(ctx, r.Client)
	return requestsForClaims(ctx, slices.DeleteFunc(claims, func(claim corev1.PersistentVolumeClaim) bool {
		selected := claim.Annotations[route.AnnSelectedNode]
		return selected != node.GetName() && (selected != "" || !virtual)
	}), err)
}

func (r *Reconciler) classToWaitingClaims(ctx context.Context, class client.Object) []reconcile.Request {
	claims, err := index.WaitingClaimsOfClass(ctx, r.Client, class.GetName())
	return requestsForClaims(ctx, claims, err)
}

// namespaceToWaitingClaims enqueues the waiting claims in a namespace whose labels have changed.
func (r *Reconciler) namespaceToWaitingClaims(ctx context.Context, namespace client.Object) []reconcile.Request {
	claims, err := index.WaitingClaimsIn(ctx, r.Client, namespace.GetName())
	return requestsForClaims(ctx, claims, err)
}

func (r *Reconciler) capacityToWaitingClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok || capacity.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return nil
	}
	claims, err := index.WaitingClaimsOfClass(ctx, r.Client, capacity.StorageClassName)
	return requestsForClaims(ctx, claims, err)
}

func (r *Reconciler) objectToWaitingClaims(ctx context.Context, _ client.Object) []reconcile.Request {
	claims, err := index.WaitingClaims(ctx, r.Client)
	return requestsForClaims(ctx, claims, err)
}

// requestsForClaims returns requests for those claims that wait or report a problem.
func requestsForClaims(ctx context.Context, claims []corev1.PersistentVolumeClaim, err error) []reconcile.Request {
	return route.RequestsFor(ctx, claims, err, waitsOrShowsProblem)
}
