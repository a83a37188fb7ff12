package rootpv

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// neededCheckInterval is the interval at which a disk is checked if only Pods that are not on this member's
// node, or other objects, still need it, because their events do not enqueue the host PV.
const neededCheckInterval = 5 * time.Second

// A disk that is released with its last Pod is destroyed according to I2 (c): a consumer was
// recorded, and two live lists a grace period apart show no consumer. A third list follows the mark
// that keeps new Pods from being pushed. After a restore of the host, marks of an earlier process are
// removed first, because they may come from the backup.

// stepNeedsGracePeriod reports whether a step of the release needs the grace period.
func stepNeedsGracePeriod(step lifecycle.Step) bool {
	switch step {
	case lifecycle.MarkUnused, lifecycle.CountGrace, lifecycle.MarkReleasing, lifecycle.SetDeleteUnused:
		return true
	default:
		return false
	}
}

func (r *reconciler) markPromiseUnused(ctx context.Context, s *volume.Observed, _ proof.ReleasingPromise, _ proof.DataUnneeded) error {
	start := r.Clock.Now()
	mark := start.UTC().Format(time.RFC3339)
	if err := r.annotateHostVolume(ctx, s.Host, v1alpha1.AnnotationUnusedSince, mark); err != nil {
		return err
	}
	r.options.UnusedPromises.Begin(s.Host.UID, mark, start)
	return nil
}

// restartGracePeriod starts the grace period again, because another process, with another clock, set the
// mark.
func (r *reconciler) restartGracePeriod(ctx context.Context, s *volume.Observed) (reconcile.Result, error) {
	result, err := r.stepUnlessUsed(ctx, s, func(context.Context, *volume.Observed, proof.ReleasingPromise, proof.DataUnneeded) error {
		r.options.UnusedPromises.Begin(s.Host.UID, s.Host.Annotations[v1alpha1.AnnotationUnusedSince], r.Clock.Now())
		return nil
	})
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = s.Unused.GracePeriod
	}
	return result, err
}

func (r *reconciler) markPromiseReleasing(ctx context.Context, s *volume.Observed, _ proof.ReleasingPromise, _ proof.DataUnneeded) error {
	return r.annotateHostVolume(ctx, s.Host, v1alpha1.AnnotationReleasing, string(s.UID))
}

func (r *reconciler) setUnusedVolumeDelete(ctx context.Context, s *volume.Observed, e proof.ReleasingPromise, nobody proof.DataUnneeded) error {
	_, err := r.MemberWriter.SetVolumePolicyDelete(ctx, actor, s.Leaf, nobody, e)
	return err
}

// requeueDelay returns when to reconcile a host PV again, or 0: after a promise's grace period, or soon if
// what needs the disk does not enqueue the host PV.
func (r *reconciler) requeueDelay(s *volume.Observed, plan lifecycle.Plan) time.Duration {
	if s.AwaitsSnapshotOrClone() {
		return neededCheckInterval
	}
	if plan.Phase == lifecycle.Idle && plan.Owner == lifecycle.RootPV && plan.Report == nil {
		return s.Unused.GracePeriod - s.Unused.Duration
	}
	if len(s.PromiseUsers) == 0 || slices.ContainsFunc(s.PromiseUsers, func(pod corev1.Pod) bool { return r.HasNode(pod.Spec.NodeName) }) {
		return 0
	}
	return neededCheckInterval
}

// stepUnlessUsed takes a step of the release if live reads show that the promise is unchanged, no Pod uses
// the claim, and nobody else needs its data. Otherwise, stepUnlessUsed removes both marks.
func (r *reconciler) stepUnlessUsed(ctx context.Context, s *volume.Observed, step func(context.Context, *volume.Observed, proof.ReleasingPromise, proof.DataUnneeded) error) (reconcile.Result, error) {
	if err := r.CheckNotSuspended(); err != nil {
		return reconcile.Result{}, err
	}
	promise, same, err := r.NewProver().ProveHostUnchanged(ctx, s.Host)
	if err != nil || !same {
		return reconcile.Result{}, err
	}
	pods, unused, err := r.NewProver().ProveClaimUnused(ctx, hostpv.ClaimRefKey(s.Host))
	if err != nil {
		return reconcile.Result{}, err
	}
	nobody, err := r.proveVolumeUnneeded(ctx, s, proof.RootGone{})
	switch {
	case !unused, errors.Is(err, proof.ErrDataNeeded):
		return reconcile.Result{RequeueAfter: neededCheckInterval}, r.removeUnusedMarks(ctx, s)
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, step(ctx, s, proof.ReleasingPromise{Promise: promise, NoPods: pods}, nobody)
}

// deleteUnusedLeafClaim deletes the leaf claim if live reads show that the promise and its leaf PV are
// unchanged. If a mark is gone, leaf_pv sets the leaf PV to Retain again.
func (r *reconciler) deleteUnusedLeafClaim(ctx context.Context, s *volume.Observed) error {
	promise, same, err := r.NewProver().ProveHostUnchanged(ctx, s.Host)
	if err != nil || !same {
		return err
	}
	leaf, same, err := r.proveSameLeafVolume(ctx, s)
	if err != nil || !same {
		return err
	}
	nobody, err := r.proveVolumeUnneeded(ctx, s, proof.RootGone{})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DestroyClaim(ctx, s.LeafClaim, nobody, proof.ReleasingPromise{Promise: promise, Leaf: leaf}))
}

func (r *reconciler) annotateHostVolume(ctx context.Context, host *corev1.PersistentVolume, key, value string) error {
	after := host.DeepCopy()
	after.Annotations[key] = value
	return r.HostWriter.PatchOwned(ctx, actor, host, after)
}

// removeUnusedMarks removes both marks, unless the leaf PV already has policy Delete, which the cache may not
// show yet.
func (r *reconciler) removeUnusedMarks(ctx context.Context, s *volume.Observed) error {
	if hostpv.IsReleasingDisk(s.Host) {
		if _, held, err := r.NewProver().ProveLeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
			return leaf != nil && leaf.UID == s.UID && leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete
		}); err != nil || !held {
			return err // the leaf PV's event enqueues the promise
		}
	}
	r.options.UnusedPromises.ForgetPromise(s.Host.UID)
	after := s.Host.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationUnusedSince)
	delete(after.Annotations, v1alpha1.AnnotationReleasing)
	if len(after.Annotations) == len(s.Host.Annotations) {
		return nil
	}
	return r.HostWriter.PatchOwned(ctx, actor, s.Host, after)
}

func (r *reconciler) unfulfilPromise(ctx context.Context, s *volume.Observed) error {
	// In a restored cluster, absence is not evidence.
	if err := r.CheckNotSuspended(); err != nil {
		return err
	}
	e, gone, err := proof.ProveLeafGone(ctx, r.NewProver(), s.Host)
	if err != nil || !gone {
		return err
	}
	if err := r.recordMissingDisk(ctx, s); err != nil {
		return err
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, hostpv.ClaimRefKey(s.Host))
	if err != nil {
		return err
	}
	if claim != nil && claim.UID != s.Host.Spec.ClaimRef.UID {
		claim = nil
	}
	if err := r.HostWriter.DropHostVolume(ctx, actor, s.Host, hostpv.UnfulfillPromise(s.Host, claim), e); err != nil {
		return err
	}
	r.options.UnusedPromises.ForgetPromise(s.Host.UID)
	r.emitVolumeReleased(s, claim)
	return nil
}

// podToPromises enqueues the promises that a Pod uses.
func (r *reconciler) podToPromises(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up the claims of a Pod", "root", client.ObjectKeyFromObject(pod))
		}
		if claim != nil && hostpv.IsPromiseName(claim.Spec.VolumeName) {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Spec.VolumeName}})
		}
	}
	return found
}
