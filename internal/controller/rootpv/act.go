package rootpv

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/dropping"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// volumeProtection is the finalizer with which Kubernetes keeps a PV while it is Bound
// (k8s.io/component-helpers and kubernetes/pkg/volume/util: PVProtectionFinalizer).
const volumeProtection = "kubernetes.io/pv-protection"

// act takes the plan's step if this controller owns it.
func (r *reconciler) act(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) (reconcile.Result, error) {
	switch step := plan.By(lifecycle.RootPV); step {
	case lifecycle.None:
		if plan.Report != nil && plan.Owner == lifecycle.RootPV {
			return reconcile.Result{RequeueAfter: route.Sooner(r.warn(s.Host, plan.Report), r.lookAgain(s, plan))}, nil
		}
		return reconcile.Result{RequeueAfter: r.lookAgain(s, plan)}, nil
	case lifecycle.SetDelete:
		return unlessNeeded(r.setDelete(ctx, s))
	case lifecycle.DeleteClaim:
		return unlessNeeded(r.deleteClaim(ctx, s))
	case lifecycle.DeleteStale:
		return reconcile.Result{}, r.deleteStale(ctx, s)
	case lifecycle.DropHost:
		return reconcile.Result{}, r.unlessProtected(ctx, s, r.dropHost)
	case lifecycle.EndPromise:
		return reconcile.Result{}, r.unlessProtected(ctx, s, r.endPromise)
	case lifecycle.DropFinalizer:
		return reconcile.Result{}, r.unlessProtected(ctx, s, r.dropFinalizer)
	case lifecycle.DropKept:
		return reconcile.Result{}, r.unlessProtected(ctx, s, r.dropKept)
	case lifecycle.Unmark:
		return reconcile.Result{}, r.unmark(ctx, s)
	case lifecycle.MarkUnused:
		return r.unlessUsed(ctx, s, r.markUnused)
	case lifecycle.CountGrace:
		return r.countGrace(ctx, s)
	case lifecycle.MarkReleasing:
		return r.unlessUsed(ctx, s, r.markReleasing)
	case lifecycle.SetDeleteUnused:
		return r.unlessUsed(ctx, s, r.setDeleteUnused)
	case lifecycle.DeleteUnused:
		return unlessNeeded(r.deleteUnused(ctx, s))
	case lifecycle.Unfulfil:
		return reconcile.Result{}, r.unfulfil(ctx, s)
	default:
		return reconcile.Result{}, fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

// unlessNeeded returns the result of a step that destroys the volume. If live reads show that somebody
// needs its data, a later observation shows who, unless the need has ended by then.
func unlessNeeded(err error) (reconcile.Result, error) {
	if errors.Is(err, proof.ErrNeeded) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, err
}

// unneeded proves that nobody needs the data of the volume's claim, which is gone if this was proven.
func (r *reconciler) unneeded(ctx context.Context, s *volume.Observed, gone proof.RootGone) (proof.Unneeded, error) {
	return r.Proof().VolumeUnneeded(ctx, hostpv.ClaimKey(s.Host), s.Host.Spec.ClaimRef.UID, gone)
}

// setDelete sets the leaf PV to Delete once live reads prove that the root is gone. If the leaf
// PV's stamp names another root, that root must be gone, too. If the leaf claim must then be deleted,
// setDelete does this immediately, and shares the proof that stays true.
func (r *reconciler) setDelete(ctx context.Context, s *volume.Observed) error {
	if err := r.Leaf.Behind(s.Leaf); err != nil {
		return err
	}
	e, proven, err := r.rootGone(ctx, s)
	if err != nil || !proven {
		return err
	}
	if s.StampedForAnother() {
		if e.Stamped, proven, err = r.Proof().RootGone(ctx, s.Stamp.Root, s.Stamp.UID); err != nil || !proven {
			return err
		}
	}
	nobody, proven, err := r.released(ctx, s, &e)
	if err != nil || !proven {
		return err
	}
	after := *s // the volume as it is after the first step
	if after.Leaf, err = r.Leaf.SetDelete(ctx, actor, s.Leaf, nobody, e); err != nil {
		return err
	}
	if lifecycle.Next(&after).By(lifecycle.RootPV) != lifecycle.DeleteClaim {
		return nil
	}
	return r.destroyClaim(ctx, &after, e.Next())
}

func (r *reconciler) deleteClaim(ctx context.Context, s *volume.Observed) error {
	if err := r.Leaf.Behind(s.Claim); err != nil {
		return err
	}
	e, proven, err := r.rootGone(ctx, s)
	if err != nil || !proven {
		return err
	}
	return r.destroyClaim(ctx, s, e)
}

// destroyClaim deletes the leaf claim once live reads prove all else than that the root is gone.
func (r *reconciler) destroyClaim(ctx context.Context, s *volume.Observed, e proof.Destroying) (err error) {
	var proven bool
	if e.Leaf, proven, err = r.sameLeaf(ctx, s); err != nil || !proven {
		return err
	}
	nobody, proven, err := r.released(ctx, s, &e)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DestroyClaim(ctx, s.Claim, nobody, e))
}

// rootGone begins the evidence for I2 (a): the host PV's claim is gone.
func (r *reconciler) rootGone(ctx context.Context, s *volume.Observed) (e proof.Destroying, proven bool, err error) {
	e.Root, proven, err = r.Proof().RootGone(ctx, hostpv.ClaimKey(s.Host), s.Host.Spec.ClaimRef.UID)
	return e, proven, err
}

// released completes the evidence with what an admin or another controller may change until the write: the
// host PV was released, and nobody needs the data.
func (r *reconciler) released(ctx context.Context, s *volume.Observed, e *proof.Destroying) (nobody proof.Unneeded, proven bool, err error) {
	if e.Host, proven, err = r.Proof().HostReleased(ctx, s.Host); err != nil || !proven {
		return nobody, false, err
	}
	nobody, err = r.unneeded(ctx, s, e.Root)
	return nobody, err == nil, err
}

// unlessProtected takes a step once Kubernetes has removed its own finalizer from the host PV.
// That change enqueues the PV.
func (r *reconciler) unlessProtected(ctx context.Context, s *volume.Observed, step func(context.Context, *volume.Observed) error) error {
	if protected(s.Host) {
		return nil
	}
	return step(ctx, s)
}

// dropHost deletes the host PV first, and then removes Xylem's finalizer, so that the finalizer
// protects the PV until it is being deleted. Before that, live reads prove that the host no longer
// needs this record of the volume. In a restored cluster, absence is not evidence, and the host PV
// is the last record of the volume.
func (r *reconciler) dropHost(ctx context.Context, s *volume.Observed) error {
	if err := r.MayDestroy(); err != nil {
		return err
	}
	e, gone := r.leafGone.take(s.Host)
	if !gone {
		var err error
		if e, gone, err = dropping.LeafGone(ctx, r.Proof(), s.Host); err != nil {
			return err
		}
	}
	if !gone {
		return r.unlessUnseen(ctx, s)
	}
	if err := r.recordMissing(ctx, s); err != nil {
		return err
	}
	r.leafGone.keep(s.Host, e.OnceDeleting(s.Host))
	return r.deleteHost(ctx, s, e)
}

// recordMissing records and reports the disk of a host PV whose leaf PV the restored member may have
// lost, or was deleted while the host PV lacked Xylem's finalizer, unless another PV in the cluster still
// represents the disk.
func (r *reconciler) recordMissing(ctx context.Context, s *volume.Observed) error {
	host, restored := s.Host, r.LastRestores().MayLackLeaf(s.Host)
	if _, _, _, has := hostpv.LeafOf(host); !has || !restored && s.HasFinalizer() ||
		s.Twin != nil && s.Twin.DeletionTimestamp == nil || s.Recreated != nil && hostpv.SameDisk(host, s.Recreated) {
		return nil
	}
	disk, why := hostpv.Describe(host), "missing since the member was restored"
	if !restored { // for example, the cluster was deregistered in the meantime
		why = "missing, and Xylem did not protect the PersistentVolume"
	}
	missing, err := r.missing.Record(ctx, r.Root, r.ClusterID, host, disk+": "+why)
	if err != nil || !missing {
		return err
	}
	r.warn(host, mirror.Refuse(v1alpha1.ReasonVolumeLost, "%s in member %q: %s. Xylem has no record that it destroyed the disk. Check whether the disk still exists, and delete it if nobody needs it", disk, r.Registration, why))
	return nil
}

// endPromise does the same as dropHost for a promise without a disk, once live reads prove that
// the promise is unchanged and its claim is gone.
func (r *reconciler) endPromise(ctx context.Context, s *volume.Observed) error {
	if err := r.MayDestroy(); err != nil {
		return err
	}
	e, ended, left, err := dropping.PromiseEnded(ctx, r.Proof(), s.Host)
	switch {
	case err != nil:
		return err
	case left:
		return r.unlessUnseen(ctx, s)
	case !ended:
		return nil
	}
	return r.deleteHost(ctx, s, e)
}

// unlessUnseen is called if the member still has an object of a volume. A leaf that is not in the
// cache yet may be deleted before the cache observes it. No event would report this deletion, so
// unlessUnseen returns an error, and the controller retries.
func (r *reconciler) unlessUnseen(ctx context.Context, s *volume.Observed) error {
	if s.Leaf != nil {
		return nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Cache, hostpv.ClaimKey(s.Host))
	if err == nil && claim == nil {
		err = fmt.Errorf("the member has a leaf of volume %s that is not in the cache yet", s.Host.Name)
	}
	return err
}

func (r *reconciler) deleteHost(ctx context.Context, s *volume.Observed, e dropping.Droppable) error {
	if s.Host.DeletionTimestamp == nil {
		r.options.UnusedPromises.End(s.Host.UID)
		return client.IgnoreNotFound(r.Root.DeleteVolume(ctx, s.Host, e)) // the deletion's event enqueues the PV, to remove the finalizer
	}
	return r.removeFinalizer(ctx, s, e)
}

// dropFinalizer releases a free promise without a disk.
func (r *reconciler) dropFinalizer(ctx context.Context, s *volume.Observed) error {
	e, proven := dropping.NoDisk(r.Proof().Clock, s.Host)
	if !proven {
		return nil
	}
	return r.removeFinalizer(ctx, s, e)
}

func (r *reconciler) removeFinalizer(ctx context.Context, s *volume.Observed, e dropping.Droppable) error {
	r.options.UnusedPromises.End(s.Host.UID)
	after := s.Host.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
	return client.IgnoreNotFound(r.Root.DropVolume(ctx, actor, s.Host, after, e))
}

// dropKept removes Xylem's finalizer from a host PV whose disk is kept. If the restored member has
// lost the volume, nothing else names the disk, so dropKept records it first. The date of a restore is
// known only once the fence has detected it, so dropKept fails until then.
func (r *reconciler) dropKept(ctx context.Context, s *volume.Observed) error {
	e, missing, err := dropping.DiskKept(ctx, r.Proof(), s.Host)
	if err != nil {
		return err
	}
	if missing {
		if err := r.recordMissing(ctx, s); err != nil {
			return err
		}
	}
	return r.removeFinalizer(ctx, s, e)
}

// deleteStale deletes an earlier root's leaf claim that still has the volume.
func (r *reconciler) deleteStale(ctx context.Context, s *volume.Observed) error {
	claim := s.Stale()
	e, proven, err := r.Proof().Kept(ctx, s.Host, claim)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, claim, e))
}

// sameLeaf proves that the leaf claim's volume has not changed since it was observed: it is absent,
// or still the mirrored volume with the observed policy. If s.Recreated is set, the volume must be
// that one, and must outlive the claim.
func (r *reconciler) sameLeaf(ctx context.Context, s *volume.Observed) (proof.LeafVolume, bool, error) {
	return r.Proof().LeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
		switch {
		case leaf == nil:
			return true
		case s.Recreated != nil:
			return leaf.UID == s.Recreated.UID && s.Claim != nil && proof.Outlives(leaf, s.Claim)
		}
		return s.Leaf != nil && leaf.UID == s.UID && leaf.Spec.PersistentVolumeReclaimPolicy == s.Leaf.Spec.PersistentVolumeReclaimPolicy
	})
}

// protected reports whether Kubernetes is about to remove its own finalizer from a deleted PV. If
// Xylem removed its finalizer at the same time, one of the two writes would fail with a conflict.
// The PV stays until both finalizers are removed, in any order.
func protected(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound && controllerutil.ContainsFinalizer(pv, volumeProtection)
}
