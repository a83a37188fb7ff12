package rootpv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/proof"
)

// volumeProtection is the finalizer by which Kubernetes keeps a PV as long as it is
// Bound (k8s.io/component-helpers and kubernetes/pkg/volume/util: PVProtectionFinalizer).
const volumeProtection = "kubernetes.io/pv-protection"

func (r *reconciler) act(ctx context.Context, o observed, d decision) (reconcile.Result, error) {
	switch d := d.(type) {
	case nothing:
		return reconcile.Result{}, nil
	case await:
		return reconcile.Result{RequeueAfter: d.after}, nil
	case flip, deleteClaim, deleteStale, unsupported, release, releasePromise:
		return reconcile.Result{}, r.end(ctx, o, d)
	}
	return r.actUnused(ctx, o, d)
}

// end carries out what is decided on a host PV whose claim is gone.
func (r *reconciler) end(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case flip:
		return r.flipEnded(ctx, o)
	case deleteStale:
		return r.deleteStale(ctx, o)
	case unsupported:
		r.once(o.host, v1alpha1.ReasonReclaimPolicyUnsupported, func() { r.eventUnsupported(o) })
		return nil
	case deleteClaim:
		e, proven, err := r.destroying(ctx, o)
		if err != nil || !proven {
			return err
		}
		if e.Leaf, proven, err = r.sameLeaf(ctx, o); err != nil || !proven {
			return err
		}
		return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.claim, e))
	case release:
		return r.releaseEnded(ctx, o, d)
	case releasePromise:
		if protected(o.host) {
			return nil
		}
		return r.releasePromise(ctx, o)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// flipEnded sets the leaf PV to Delete, once the root is proven gone, and the one that
// the leaf PV has the stamp of, if that is another one.
func (r *reconciler) flipEnded(ctx context.Context, o observed) error {
	e, proven, err := r.destroying(ctx, o)
	if err != nil || !proven {
		return err
	}
	if o.stampedForAnother() {
		if e.Stamped, proven, err = r.Proof().RootGone(ctx, o.origin.Root, o.origin.UID); err != nil || !proven {
			return err
		}
	}
	return r.Leaf.SetDelete(ctx, actor, o.leaf, e)
}

// destroying begins the evidence of I2 (a): the host PV has ended, and its claim is gone.
func (r *reconciler) destroying(ctx context.Context, o observed) (proof.Destroying, bool, error) {
	host, proven, err := r.Proof().HostReleased(ctx, o.host)
	if err != nil || !proven {
		return proof.Destroying{}, false, err
	}
	gone, proven, err := r.Proof().RootGone(ctx, claimOf(o.host), o.host.Spec.ClaimRef.UID)
	return proof.Destroying{Host: host, Root: gone}, proven, err
}

func (r *reconciler) releaseEnded(ctx context.Context, o observed, d release) error {
	if protected(o.host) {
		return nil // the end of that wakes us
	}
	if d.leafGone {
		// In a cluster that was restored, absence is no evidence: the host PV is the last
		// that knows of the volume.
		if err := r.MayDestroy(); err != nil {
			return err
		}
		if gone, err := r.Proof().LeafGone(ctx, o.host); err != nil || !gone {
			return err
		}
	}
	r.idle.end(o.host.UID)
	return r.release(ctx, o.host, d.also)
}

// deleteStale deletes the leaf claim of an earlier root: if, by live reads, that root is
// gone, the host PV is for the one that was seen, and the leaf PV is kept.
func (r *reconciler) deleteStale(ctx context.Context, o observed) error {
	var e proof.Keeping
	var proven bool
	var err error
	if e.Host, proven, err = r.Proof().HostAssigned(ctx, o.host); err != nil || !proven {
		return err
	}
	if e.Root, proven, err = r.Proof().RootGone(ctx, o.staleOrigin.Root, o.staleOrigin.UID); err != nil || !proven {
		return err
	}
	if e.Leaf, proven, err = r.sameLeaf(ctx, o); err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.stale, e))
}

// sameLeaf proves that the leaf claim's volume is what it was decided on: the one that was
// mirrored, at the policy that was seen, or none. Another one by that name, which was
// re-created, is not ours to destroy: it is to be the one that was seen, and to outlive
// the claim.
func (r *reconciler) sameLeaf(ctx context.Context, o observed) (proof.LeafVolume, bool, error) {
	return r.Proof().LeafVolume(ctx, o.leafName, func(leaf *corev1.PersistentVolume) bool {
		switch {
		case leaf == nil:
			return true
		case o.replacement != nil:
			return leaf.UID == o.replacement.UID && o.claim != nil && proof.Outlives(leaf, o.claim)
		}
		return o.leaf != nil && leaf.UID == o.leafUID && leaf.Spec.PersistentVolumeReclaimPolicy == o.leaf.Spec.PersistentVolumeReclaimPolicy
	})
}

// protected reports whether Kubernetes is about to take its own finalizer off a PV that
// is deleted. Two that take one off at the same time collide, and the PV stays until
// both are gone whichever is first.
func protected(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound && controllerutil.ContainsFinalizer(pv, volumeProtection)
}

// release deletes the host PV, if it is to go, and drops our finalizer: in this
// order, so that no moment is left in which nobody holds or deletes it.
func (r *reconciler) release(ctx context.Context, pv *corev1.PersistentVolume, also bool) error {
	if also && pv.DeletionTimestamp == nil {
		return client.IgnoreNotFound(r.Root.Delete(ctx, pv)) // its event brings us back for the finalizer
	}
	after := pv.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
	return client.IgnoreNotFound(r.Root.Patch(ctx, actor, pv, after))
}
