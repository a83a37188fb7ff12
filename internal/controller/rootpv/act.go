package rootpv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
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
		if proven, err := r.proven(ctx, o); err != nil || !proven {
			return err
		}
		if same, err := r.sameLeaf(ctx, o); err != nil || !same {
			return err
		}
		return client.IgnoreNotFound(r.Leaf.Delete(ctx, o.claim))
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
	if proven, err := r.proven(ctx, o); err != nil || !proven {
		return err
	}
	if o.stampedForAnother() {
		if gone, err := r.rootGone(ctx, o.origin.Root, o.origin.UID); err != nil || !gone {
			return err
		}
	}
	return r.flip(ctx, o)
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
		if gone, err := r.leafGone(ctx, o); err != nil || !gone {
			return err
		}
	}
	r.idle.end(o.host.UID)
	return r.release(ctx, o.host, d.also)
}

// flip puts the leaf PV to Delete.
func (r *reconciler) flip(ctx context.Context, o observed) error {
	after := o.leaf.DeepCopy()
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	return r.Leaf.PatchVolume(ctx, actor, o.leaf, after, nil)
}

// proven is the evidence of I2 (a), by live reads at this moment: the host PV is
// Released from the claim that we saw (or Failed since), its policy is what we saw, and
// no claim of that UID is left.
func (r *reconciler) proven(ctx context.Context, o observed) (bool, error) {
	ref := o.host.Spec.ClaimRef
	var pv corev1.PersistentVolume
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(o.host), &pv); err != nil {
		return false, fmt.Errorf("prove that volume %s is released: %w", o.host.Name, err)
	}
	if pv.UID != o.host.UID || abandoned(&pv) || !mirror.Ended(&pv) || pv.Spec.ClaimRef.UID != ref.UID ||
		pv.Spec.PersistentVolumeReclaimPolicy != o.host.Spec.PersistentVolumeReclaimPolicy {
		return false, nil // the cache was behind; its event wakes us
	}
	return r.rootGone(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID)
}

// rootGone proves by a live read that no claim of a UID is left.
func (r *reconciler) rootGone(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.HostLive, key)
	if err != nil {
		return false, fmt.Errorf("prove that claim %s is gone: %w", key, err)
	}
	return claim == nil || claim.UID != uid, nil
}

// deleteStale deletes the leaf claim of an earlier root: if, by live reads, that root is
// gone, the host PV is for the one that was seen, and the leaf PV is kept.
func (r *reconciler) deleteStale(ctx context.Context, o observed) error {
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.HostLive, index.Named(o.host.Name))
	if err != nil {
		return fmt.Errorf("prove whose volume %s is: %w", o.host.Name, err)
	}
	if pv == nil || pv.UID != o.host.UID || abandoned(pv) || rootOf(pv) != rootOf(o.host) {
		return nil // the cache was behind; its event enqueues the PV
	}
	if gone, err := r.rootGone(ctx, o.staleOrigin.Root, o.staleOrigin.UID); err != nil || !gone {
		return err
	}
	if same, err := r.sameLeaf(ctx, o); err != nil || !same {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteUnchanged(ctx, o.stale))
}

// rootOf is the UID of the claim that a host PV is for, if any.
func rootOf(pv *corev1.PersistentVolume) types.UID {
	if pv.Spec.ClaimRef == nil {
		return ""
	}
	return pv.Spec.ClaimRef.UID
}

// sameLeaf proves by a live read that the leaf claim's volume is what it was
// decided on: the one that was mirrored, at the policy that was seen, or none.
// Another one by that name, which was re-created, is not ours to destroy: it is to be
// the one that was seen, and to outlive the claim.
func (r *reconciler) sameLeaf(ctx context.Context, o observed) (bool, error) {
	var leaf corev1.PersistentVolume
	err := r.Live.Get(ctx, types.NamespacedName{Name: o.leafName}, &leaf)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read leaf volume %s: %w", o.leafName, err)
	}
	if o.replacement != nil {
		return leaf.UID == o.replacement.UID && o.claim != nil && outlives(&leaf, o.claim), nil
	}
	return o.leaf != nil && leaf.UID == o.leafUID && leaf.Spec.PersistentVolumeReclaimPolicy == o.leaf.Spec.PersistentVolumeReclaimPolicy, nil
}

// leafGone proves by live reads that neither the leaf claim nor the leaf PV is left.
func (r *reconciler) leafGone(ctx context.Context, o observed) (bool, error) {
	var leaf corev1.PersistentVolume
	err := r.Live.Get(ctx, types.NamespacedName{Name: o.leafName}, &leaf)
	if err == nil && leaf.UID == o.leafUID {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("prove that leaf volume %s is gone: %w", o.leafName, err)
	}
	return r.leafClaimGone(ctx, o)
}

// leafClaimGone proves by a live read that the leaf claim is gone, from a member that has
// forgotten nothing.
func (r *reconciler) leafClaimGone(ctx context.Context, o observed) (bool, error) {
	ref := o.host.Spec.ClaimRef
	var claim corev1.PersistentVolumeClaim
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &claim)
	if err == nil && claim.Annotations[v1alpha1.AnnotationRootUID] == string(ref.UID) {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("prove that leaf claim %s/%s is gone: %w", ref.Namespace, ref.Name, err)
	}
	if err := r.MemberCurrent(ctx); err != nil {
		return false, err
	}
	return true, nil
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
