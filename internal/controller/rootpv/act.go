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
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// protectionFinalizer is the finalizer with which Kubernetes keeps a PV while it is Bound
// (k8s.io/component-helpers and kubernetes/pkg/volume/util: PVProtectionFinalizer).
const protectionFinalizer = "kubernetes.io/pv-protection"

// executeStep takes the plan's step if this controller owns it.
func (r *reconciler) executeStep(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) (reconcile.Result, error) {
	switch step := plan.StepOwnedBy(lifecycle.RootPV); step {
	case lifecycle.None:
		if plan.Report != nil && plan.Owner == lifecycle.RootPV {
			return reconcile.Result{RequeueAfter: route.SoonerDelay(r.warnOnHostVolume(s.Host, plan.Report), r.requeueDelay(s, plan))}, nil
		}
		return reconcile.Result{RequeueAfter: r.requeueDelay(s, plan)}, nil
	case lifecycle.SetDelete:
		return requeueIfNeeded(r.setLeafVolumeDelete(ctx, s))
	case lifecycle.DeleteClaim:
		return requeueIfNeeded(r.deleteLeafClaim(ctx, s))
	case lifecycle.DeleteStale:
		return reconcile.Result{}, r.deleteStaleLeafClaim(ctx, s)
	case lifecycle.DropHost:
		return reconcile.Result{}, r.stepUnlessProtected(ctx, s, r.dropHostVolume)
	case lifecycle.EndPromise:
		return reconcile.Result{}, r.stepUnlessProtected(ctx, s, r.endUnfulfilledPromise)
	case lifecycle.DropFinalizer:
		return reconcile.Result{}, r.stepUnlessProtected(ctx, s, r.dropPromiseFinalizer)
	case lifecycle.DropKept:
		return reconcile.Result{}, r.stepUnlessProtected(ctx, s, r.dropKeptHostVolume)
	case lifecycle.Unmark:
		return reconcile.Result{}, r.removeUnusedMarks(ctx, s)
	case lifecycle.MarkUnused:
		return r.stepUnlessUsed(ctx, s, r.markPromiseUnused)
	case lifecycle.CountGrace:
		return r.restartGracePeriod(ctx, s)
	case lifecycle.MarkReleasing:
		return r.stepUnlessUsed(ctx, s, r.markPromiseReleasing)
	case lifecycle.SetDeleteUnused:
		return r.stepUnlessUsed(ctx, s, r.setUnusedVolumeDelete)
	case lifecycle.DeleteUnused:
		return requeueIfNeeded(r.deleteUnusedLeafClaim(ctx, s))
	case lifecycle.Unfulfil:
		return reconcile.Result{}, r.unfulfilPromise(ctx, s)
	default:
		return reconcile.Result{}, fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

// requeueIfNeeded returns the result of a step that destroys the volume. If live reads show that somebody
// needs its data, a later observation shows who, unless the need has ended by then.
func requeueIfNeeded(err error) (reconcile.Result, error) {
	if errors.Is(err, proof.ErrDataNeeded) {
		return reconcile.Result{RequeueAfter: neededCheckInterval}, nil
	}
	return reconcile.Result{}, err
}

// proveVolumeUnneeded proves that nobody needs the data of the volume's claim, which is gone if this was proven.
func (r *reconciler) proveVolumeUnneeded(ctx context.Context, s *volume.Observed, gone proof.RootGone) (proof.DataUnneeded, error) {
	return r.NewProver().ProveVolumeUnneeded(ctx, hostpv.ClaimRefKey(s.Host), s.Host.Spec.ClaimRef.UID, gone)
}

// setLeafVolumeDelete sets the leaf PV to Delete once live reads prove that the root is gone. If the leaf
// PV's stamp names another root, that root must be gone, too. If the leaf claim must then be deleted,
// setLeafVolumeDelete does this immediately, and shares the proof that stays true.
func (r *reconciler) setLeafVolumeDelete(ctx context.Context, s *volume.Observed) error {
	if err := r.MemberWriter.CheckNotOverwritten(s.Leaf); err != nil {
		return err
	}
	e, proven, err := r.proveRootGone(ctx, s)
	if err != nil || !proven {
		return err
	}
	if s.StampedForOtherRoot() {
		if e.StampedRoot, proven, err = r.NewProver().ProveRootGone(ctx, s.Stamp.Root, s.Stamp.UID); err != nil || !proven {
			return err
		}
	}
	nobody, proven, err := r.proveReleasedAndUnneeded(ctx, s, &e)
	if err != nil || !proven {
		return err
	}
	after := *s // the volume as it is after the first step
	if after.Leaf, err = r.MemberWriter.SetVolumePolicyDelete(ctx, actor, s.Leaf, nobody, e); err != nil {
		return err
	}
	if lifecycle.NextPlan(&after).StepOwnedBy(lifecycle.RootPV) != lifecycle.DeleteClaim {
		return nil
	}
	return r.destroyLeafClaim(ctx, &after, e.EvidenceForClaim())
}

func (r *reconciler) deleteLeafClaim(ctx context.Context, s *volume.Observed) error {
	if err := r.MemberWriter.CheckNotOverwritten(s.LeafClaim); err != nil {
		return err
	}
	e, proven, err := r.proveRootGone(ctx, s)
	if err != nil || !proven {
		return err
	}
	return r.destroyLeafClaim(ctx, s, e)
}

// destroyLeafClaim deletes the leaf claim once live reads prove all else than that the root is gone.
func (r *reconciler) destroyLeafClaim(ctx context.Context, s *volume.Observed, e proof.DestroyingVolume) (err error) {
	var proven bool
	if e.Leaf, proven, err = r.proveSameLeafVolume(ctx, s); err != nil || !proven {
		return err
	}
	nobody, proven, err := r.proveReleasedAndUnneeded(ctx, s, &e)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DestroyClaim(ctx, s.LeafClaim, nobody, e))
}

// proveRootGone begins the evidence for I2 (a): the host PV's claim is gone.
func (r *reconciler) proveRootGone(ctx context.Context, s *volume.Observed) (e proof.DestroyingVolume, proven bool, err error) {
	e.Root, proven, err = r.NewProver().ProveRootGone(ctx, hostpv.ClaimRefKey(s.Host), s.Host.Spec.ClaimRef.UID)
	return e, proven, err
}

// proveReleasedAndUnneeded completes the evidence with what an admin or another controller may change until the write: the
// host PV was released, and nobody needs the data.
func (r *reconciler) proveReleasedAndUnneeded(ctx context.Context, s *volume.Observed, e *proof.DestroyingVolume) (nobody proof.DataUnneeded, proven bool, err error) {
	if e.Host, proven, err = r.NewProver().ProveHostReleased(ctx, s.Host); err != nil || !proven {
		return nobody, false, err
	}
	nobody, err = r.proveVolumeUnneeded(ctx, s, e.Root)
	return nobody, err == nil, err
}

// stepUnlessProtected takes a step once Kubernetes has removed its own finalizer from the host PV.
// That change enqueues the PV.
func (r *reconciler) stepUnlessProtected(ctx context.Context, s *volume.Observed, step func(context.Context, *volume.Observed) error) error {
	if protectionPending(s.Host) {
		return nil
	}
	return step(ctx, s)
}

// dropHostVolume deletes the host PV first, and then removes Xylem's finalizer, so that the finalizer
// protects the PV until it is being deleted. Before that, live reads prove that the host no longer
// needs this record of the volume. In a restored cluster, absence is not evidence, and the host PV
// is the last record of the volume.
func (r *reconciler) dropHostVolume(ctx context.Context, s *volume.Observed) error {
	if err := r.CheckNotSuspended(); err != nil {
		return err
	}
	e, gone := r.leafGoneEvidence.takeEvidence(s.Host)
	if !gone {
		var err error
		if e, gone, err = proof.ProveLeafGone(ctx, r.NewProver(), s.Host); err != nil {
			return err
		}
	}
	if !gone {
		return r.errorIfLeafUncached(ctx, s)
	}
	if err := r.recordMissingDisk(ctx, s); err != nil {
		return err
	}
	r.leafGoneEvidence.keepEvidence(s.Host, e.OnceDeleting(s.Host))
	return r.deleteHostVolume(ctx, s, e)
}

// recordMissingDisk records and reports the disk of a host PV whose leaf PV the restored member may have
// lost, or was deleted while the host PV lacked Xylem's finalizer, unless another PV in the cluster still
// represents the disk.
func (r *reconciler) recordMissingDisk(ctx context.Context, s *volume.Observed) error {
	host, restored := s.Host, r.LastRestoreTimes().MayLackLeaf(s.Host)
	if _, _, _, has := hostpv.LeafOfHostVolume(host); !has || !restored && s.HasXylemFinalizer() ||
		s.TwinHost != nil && s.TwinHost.DeletionTimestamp == nil || s.Recreated != nil && hostpv.HasRecordedDisk(host, s.Recreated) {
		return nil
	}
	disk, why := hostpv.DescribeVolume(host), "missing since the member was restored"
	if !restored { // for example, the cluster was deregistered in the meantime
		why = "missing, and Xylem did not protect the PersistentVolume"
	}
	missing, err := r.missingDisks.RecordUnlessObserved(ctx, r.HostWriter, r.ClusterID, host, disk+": "+why)
	if err != nil || !missing {
		return err
	}
	r.warnOnHostVolume(host, mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "%s in member %q: %s. Xylem has no record that it destroyed the disk. Check whether the disk still exists, and delete it if nobody needs it", disk, r.Registration, why))
	return nil
}

// endUnfulfilledPromise does the same as dropHostVolume for a promise without a disk, once live reads prove that
// the promise is unchanged and its claim is gone.
func (r *reconciler) endUnfulfilledPromise(ctx context.Context, s *volume.Observed) error {
	if err := r.CheckNotSuspended(); err != nil {
		return err
	}
	e, ended, left, err := proof.ProvePromiseEnded(ctx, r.NewProver(), s.Host)
	switch {
	case err != nil:
		return err
	case left:
		return r.errorIfLeafUncached(ctx, s)
	case !ended:
		return nil
	}
	return r.deleteHostVolume(ctx, s, e)
}

// errorIfLeafUncached is called if the member still has an object of a volume. A leaf that is not in the
// cache yet may be deleted before the cache observes it. No event would report this deletion, so
// errorIfLeafUncached returns an error, and the controller retries.
func (r *reconciler) errorIfLeafUncached(ctx context.Context, s *volume.Observed) error {
	if s.Leaf != nil {
		return nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Cache, hostpv.ClaimRefKey(s.Host))
	if err == nil && claim == nil {
		err = fmt.Errorf("the member has a leaf of volume %s that is not in the cache yet", s.Host.Name)
	}
	return err
}

func (r *reconciler) deleteHostVolume(ctx context.Context, s *volume.Observed, e proof.DroppableVolume) error {
	if s.Host.DeletionTimestamp == nil {
		r.options.UnusedPromises.ForgetPromise(s.Host.UID)
		return client.IgnoreNotFound(r.HostWriter.DeleteHostVolume(ctx, s.Host, e)) // the deletion's event enqueues the PV, to remove the finalizer
	}
	return r.removeFinalizer(ctx, s, e)
}

// dropPromiseFinalizer releases a free promise without a disk.
func (r *reconciler) dropPromiseFinalizer(ctx context.Context, s *volume.Observed) error {
	e, proven := proof.DroppableIfNoDisk(r.NewProver().Clock, s.Host)
	if !proven {
		return nil
	}
	return r.removeFinalizer(ctx, s, e)
}

func (r *reconciler) removeFinalizer(ctx context.Context, s *volume.Observed, e proof.DroppableVolume) error {
	r.options.UnusedPromises.ForgetPromise(s.Host.UID)
	after := s.Host.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
	return client.IgnoreNotFound(r.HostWriter.DropHostVolume(ctx, actor, s.Host, after, e))
}

// dropKeptHostVolume removes Xylem's finalizer from a host PV whose disk is kept. If the restored member has
// lost the volume, nothing else names the disk, so dropKeptHostVolume records it first. The date of a restore is
// known only once the fence has detected it, so dropKeptHostVolume fails until then.
func (r *reconciler) dropKeptHostVolume(ctx context.Context, s *volume.Observed) error {
	e, missing, err := proof.ProveDiskKept(ctx, r.NewProver(), s.Host)
	if err != nil {
		return err
	}
	if missing {
		if err := r.recordMissingDisk(ctx, s); err != nil {
			return err
		}
	}
	return r.removeFinalizer(ctx, s, e)
}

// deleteStaleLeafClaim deletes an earlier root's leaf claim that still has the volume.
func (r *reconciler) deleteStaleLeafClaim(ctx context.Context, s *volume.Observed) error {
	claim := s.StaleLeafClaim()
	e, proven, err := r.NewProver().ProveVolumeKept(ctx, s.Host, claim)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DeleteClaim(ctx, claim, e))
}

// proveSameLeafVolume proves that the leaf claim's volume has not changed since it was observed: it is absent,
// or still the mirrored volume with the observed policy. If s.Recreated is set, the volume must be
// that one, and must outlive the claim.
func (r *reconciler) proveSameLeafVolume(ctx context.Context, s *volume.Observed) (proof.LeafVolume, bool, error) {
	return r.NewProver().ProveLeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
		switch {
		case leaf == nil:
			return true
		case s.Recreated != nil:
			return leaf.UID == s.Recreated.UID && s.LeafClaim != nil && proof.OutlivesClaim(leaf, s.LeafClaim)
		}
		return s.Leaf != nil && leaf.UID == s.UID && leaf.Spec.PersistentVolumeReclaimPolicy == s.Leaf.Spec.PersistentVolumeReclaimPolicy
	})
}

// protectionPending reports whether Kubernetes is about to remove its own finalizer from a deleted PV. If
// Xylem removed its finalizer at the same time, one of the two writes would fail with a conflict.
// The PV stays until both finalizers are removed, in any order.
func protectionPending(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound && controllerutil.ContainsFinalizer(pv, protectionFinalizer)
}
