package hostvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
)

// wanted reports whether the claim whose name a promise refers to, nil if there is
// none, has the promise or is still to have it. A claim may get another volume while
// it is made: one that an admin freed, of the same class. The host's PV controller
// then releases the promise or, where it is to be retained, takes the UID off its
// claimRef, and it would be bound to the next claim of that name.
func wanted(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	uid := pv.Spec.ClaimRef.UID
	switch {
	case claim == nil, uid != "" && uid != claim.UID:
		return false
	case claim.Spec.VolumeName != "":
		return claim.Spec.VolumeName == pv.Name
	}
	return uid != "" || pv.Name == mirror.PromiseName(claim.UID)
}

// superseded reports whether a promise that no member has is not its claim's, by
// what was seen, and never will be. Of one whose claim is gone, the host's PV
// controller says so.
func superseded(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv != nil && mirror.IsUnused(pv) && pv.Spec.ClaimRef != nil && (claim != nil || pv.Spec.ClaimRef.UID == "") && !wanted(pv, claim) &&
		(pv.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume))
}

// claimNamed is the claim whose name a host PV refers to, of whichever UID.
func claimNamed(ctx context.Context, r client.Reader, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	if pv == nil || pv.Spec.ClaimRef == nil {
		return nil, nil
	}
	return index.Find[corev1.PersistentVolumeClaim](ctx, r, types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name})
}

// ofClaim wakes the promise that was made for a claim that has another volume, if the
// cache has it. One that is seen later wakes itself.
func ofClaim(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == mirror.PromiseName(claim.UID) {
			return nil
		}
		key := index.Named(mirror.PromiseName(claim.UID))
		if promise, err := index.Find[corev1.PersistentVolume](ctx, cache, key); promise == nil && err == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
}
