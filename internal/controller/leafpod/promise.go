package leafpod

import (
	"context"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/route"
)

// boundClaim is a claim with the volume to which it is bound.
type boundClaim struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// boundClaimsOf iterates over those claims of a Pod whose volumes exist. It stops after the first error.
func (r *reconciler) boundClaimsOf(ctx context.Context, root *corev1.Pod) iter.Seq2[boundClaim, error] {
	return func(yield func(boundClaim, error) bool) {
		for _, name := range podspec.ClaimNamesOfPod(root) {
			claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: root.Namespace, Name: name})
			if err == nil && (claim == nil || claim.Spec.VolumeName == "") {
				continue
			}
			var volume *corev1.PersistentVolume
			if err == nil {
				volume, err = index.FindObject[corev1.PersistentVolume](ctx, r.Host, index.ClusterScopedKey(claim.Spec.VolumeName))
			}
			if err == nil && volume == nil {
				continue
			}
			if !yield(boundClaim{claim, volume}, err) || err != nil {
				return
			}
		}
	}
}

// findStrandingPromise reports which promise of a Pod was permanently fulfilled in another member. A
// disk that is released when unused does not count, because the Pod can wait for its release.
func (r *reconciler) findStrandingPromise(ctx context.Context, root *corev1.Pod) (*mirror.Refusal, error) {
	for p, err := range r.boundClaimsOf(ctx, root) {
		if err != nil {
			return nil, err
		}
		if p.volume.Spec.ClaimRef != nil && p.volume.Spec.ClaimRef.UID == p.claim.UID && r.isFulfilledElsewhere(p.volume) {
			return mirror.NewRefusal(v1alpha1.ReasonVolumeElsewhere, "the volume of claim %q was provisioned in another member, to which another Pod that uses the claim was bound first: Xylem fails this Pod. Its owner replaces it, and the scheduler places the new Pod in that member", p.claim.Name), nil
		}
	}
	return nil, nil
}

// isFulfilledElsewhere reports whether a PV is a promise that another member has permanently
// fulfilled.
func (r *reconciler) isFulfilledElsewhere(pv *corev1.PersistentVolume) bool {
	cluster, _, _, ours := hostpv.LeafOfHostVolume(pv)
	return ours && cluster != r.ClusterID && hostpv.IsPromise(pv) && !hostpv.ReleasesWhenUnused(pv)
}

// promiseToRequests enqueues the Pods in this member that wait for a promise that another member has
// fulfilled.
func (r *reconciler) promiseToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || !r.isFulfilledElsewhere(pv) {
		return nil
	}
	return r.podRequestsOfClaim(ctx, hostpv.ClaimRefKey(pv))
}

// podRequestsOfClaim enqueues the Pods in this member that use a claim.
func (r *reconciler) podRequestsOfClaim(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	pods, err := index.PodsOfClaim(ctx, r.Host, claim)
	return route.RequestsFor(ctx, pods, err, func(pod *corev1.Pod) bool { return r.HasNode(pod.Spec.NodeName) })
}
