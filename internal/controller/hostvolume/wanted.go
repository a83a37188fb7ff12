package hostvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// mayNeedStep reports whether this controller may have to act on a PV. Of tens of thousands of PVs,
// this is the case for only a few.
func mayNeedStep(obj client.Object) bool {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return false
	}
	_, _, asks := hostpv.RequestedImport(pv)
	return asks || hostpv.IsUnassignedPromise(pv) || hostpv.IsAbandonedVolume(pv)
}

// observeVolume returns the observation of a member's PV or of a promise, without the objects in the
// member, which may be unreachable. It returns nil if the PV does not concern this controller.
func (r *Reconciler) observeVolume(ctx context.Context, key types.NamespacedName) (*volume.Observed, error) {
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, r.Client, key)
	if err != nil || pv == nil || !mayNeedStep(pv) {
		return nil, err
	}
	if _, _, asks := hostpv.RequestedImport(pv); asks {
		return &volume.Observed{Host: pv}, nil
	}
	if _, _, _, ours := hostpv.LeafOfHostVolume(pv); !ours && !hostpv.IsUnfulfilledPromise(pv) {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	s := &volume.Observed{Host: pv}
	claim, err := claimNamedByVolume(ctx, r.Client, pv)
	switch {
	case claim == nil:
	case claim.UID == pv.Spec.ClaimRef.UID:
		s.Root = claim
	default:
		s.Successor = claim
	}
	return s, err
}

// claimNamedByVolume returns the claim with the name in a host PV's claimRef, whatever its UID.
func claimNamedByVolume(ctx context.Context, r client.Reader, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	if pv == nil || pv.Spec.ClaimRef == nil {
		return nil, nil
	}
	return index.FindObject[corev1.PersistentVolumeClaim](ctx, r, hostpv.ClaimRefKey(pv))
}

// claimToRequests enqueues the promise of a claim that has another volume, if the promise is in the cache.
// Otherwise, the promise's own event enqueues it later.
func claimToRequests(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == hostpv.PromiseName(claim.UID) {
			return nil
		}
		key := index.ClusterScopedKey(hostpv.PromiseName(claim.UID))
		if promise, err := index.FindObject[corev1.PersistentVolume](ctx, cache, key); promise == nil && err == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
}

// registrationToRequests enqueues the admins' host PVs for volumes of a registration's cluster.
func registrationToRequests(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		registration, ok := obj.(*v1alpha1.ClusterRegistration)
		if !ok || registration.Status.ClusterID == "" {
			return nil
		}
		imports, err := index.ImportsInCluster(ctx, cache, registration.Status.ClusterID)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes that admins import", "cluster", registration.Name)
			return nil
		}
		var requests []reconcile.Request
		for i := range imports {
			requests = append(requests, reconcile.Request{NamespacedName: index.ClusterScopedKey(imports[i].Name)})
		}
		return requests
	}
}

// clusterSetChanged selects the events that change the set of registered clusters.
func clusterSetChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // at startup, the PVs' own events enqueue them
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, wasOne := e.ObjectOld.(*v1alpha1.ClusterRegistration)
			after, isOne := e.ObjectNew.(*v1alpha1.ClusterRegistration)
			return wasOne && isOne && before.Status.ClusterID != after.Status.ClusterID
		},
	}
}
