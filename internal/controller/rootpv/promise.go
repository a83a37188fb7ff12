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
	"github.com/xylem-io/xylem/internal/proof/dropping"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// lookAgain is the interval at which a disk is checked if only Pods that are not on this member's
// node, or other objects, still need it, because their events do not enqueue the host PV.
const lookAgain = 5 * time.Second

// A disk that is released with its last Pod is destroyed according to I2 (c): a consumer was
// recorded, and two live lists a grace period apart show no consumer. A third list follows the mark
// that keeps new Pods from being pushed. After a restore of the host, marks of an earlier process are
// removed first, because they may come from the backup.

// releases reports whether a step of the release needs the grace period.
func releases(step lifecycle.Step) bool {
	switch step {
	case lifecycle.MarkUnused, lifecycle.CountGrace, lifecycle.MarkReleasing, lifecycle.SetDeleteUnused:
		return true
	default:
		return false
	}
}

func (r *reconciler) markUnused(ctx context.Context, s *volume.Observed, _ proof.Releasing, _ proof.Unneeded) error {
	start := r.Clock.Now()
	mark := start.UTC().Format(time.RFC3339)
	if err := r.annotate(ctx, s.Host, v1alpha1.AnnotationUnusedSince, mark); err != nil {
		return err
	}
	r.options.UnusedPromises.Begin(s.Host.UID, mark, start)
	return nil
}

// countGrace starts the grace period again, because another process, with another clock, set the
// mark.
func (r *reconciler) countGrace(ctx context.Context, s *volume.Observed) (reconcile.Result, error) {
	result, err := r.unlessUsed(ctx, s, func(context.Context, *volume.Observed, proof.Releasing, proof.Unneeded) error {
		r.options.UnusedPromises.Begin(s.Host.UID, s.Host.Annotations[v1alpha1.AnnotationUnusedSince], r.Clock.Now())
		return nil
	})
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = s.Unused.Grace
	}
	return result, err
}

func (r *reconciler) markReleasing(ctx context.Context, s *volume.Observed, _ proof.Releasing, _ proof.Unneeded) error {
	return r.annotate(ctx, s.Host, v1alpha1.AnnotationReleasing, string(s.UID))
}

func (r *reconciler) setDeleteUnused(ctx context.Context, s *volume.Observed, e proof.Releasing, nobody proof.Unneeded) error {
	_, err := r.Leaf.SetDelete(ctx, actor, s.Leaf, nobody, e)
	return err
}

// lookAgain returns when to reconcile a host PV again, or 0: after a promise's grace period, or soon if
// what needs the disk does not enqueue the host PV.
func (r *reconciler) lookAgain(s *volume.Observed, plan lifecycle.Plan) time.Duration {
	if s.Saved() {
		return lookAgain
	}
	if plan.Phase == lifecycle.Idle && plan.Owner == lifecycle.RootPV && plan.Report == nil {
		return s.Unused.Grace - s.Unused.For
	}
	if len(s.Users) == 0 || slices.ContainsFunc(s.Users, func(pod corev1.Pod) bool { return pod.Spec.NodeName == r.NodeName }) {
		return 0
	}
	return lookAgain
}

// unlessUsed takes a step of the release if live reads show that the promise is unchanged, no Pod uses
// the claim, and nobody else needs its data. Otherwise, unlessUsed removes both marks.
func (r *reconciler) unlessUsed(ctx context.Context, s *volume.Observed, step func(context.Context, *volume.Observed, proof.Releasing, proof.Unneeded) error) (reconcile.Result, error) {
	if err := r.MayDestroy(); err != nil {
		return reconcile.Result{}, err
	}
	promise, same, err := r.Proof().HostUnchanged(ctx, s.Host)
	if err != nil || !same {
		return reconcile.Result{}, err
	}
	pods, unused, err := r.Proof().Unused(ctx, hostpv.ClaimKey(s.Host))
	if err != nil {
		return reconcile.Result{}, err
	}
	nobody, err := r.unneeded(ctx, s, proof.RootGone{})
	switch {
	case !unused, errors.Is(err, proof.ErrNeeded):
		return reconcile.Result{RequeueAfter: lookAgain}, r.unmark(ctx, s)
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, step(ctx, s, proof.Releasing{Promise: promise, Pods: pods}, nobody)
}

// deleteUnused deletes the leaf claim if live reads show that the promise and its leaf PV are
// unchanged. If a mark is gone, leaf_pv sets the leaf PV to Retain again.
func (r *reconciler) deleteUnused(ctx context.Context, s *volume.Observed) error {
	promise, same, err := r.Proof().HostUnchanged(ctx, s.Host)
	if err != nil || !same {
		return err
	}
	leaf, same, err := r.sameLeaf(ctx, s)
	if err != nil || !same {
		return err
	}
	nobody, err := r.unneeded(ctx, s, proof.RootGone{})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DestroyClaim(ctx, s.Claim, nobody, proof.Releasing{Promise: promise, Leaf: leaf}))
}

func (r *reconciler) annotate(ctx context.Context, host *corev1.PersistentVolume, key, value string) error {
	after := host.DeepCopy()
	after.Annotations[key] = value
	return r.Root.Patch(ctx, actor, host, after)
}

// unmark removes both marks, unless the leaf PV already has policy Delete, which the cache may not
// show yet.
func (r *reconciler) unmark(ctx context.Context, s *volume.Observed) error {
	if hostpv.Releasing(s.Host) {
		if _, held, err := r.Proof().LeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
			return leaf != nil && leaf.UID == s.UID && leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete
		}); err != nil || !held {
			return err // the leaf PV's event enqueues the promise
		}
	}
	r.options.UnusedPromises.End(s.Host.UID)
	after := s.Host.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationUnusedSince)
	delete(after.Annotations, v1alpha1.AnnotationReleasing)
	if len(after.Annotations) == len(s.Host.Annotations) {
		return nil
	}
	return r.Root.Patch(ctx, actor, s.Host, after)
}

func (r *reconciler) unfulfil(ctx context.Context, s *volume.Observed) error {
	// In a restored cluster, absence is not evidence.
	if err := r.MayDestroy(); err != nil {
		return err
	}
	e, gone, err := dropping.LeafGone(ctx, r.Proof(), s.Host)
	if err != nil || !gone {
		return err
	}
	if err := r.recordMissing(ctx, s); err != nil {
		return err
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, hostpv.ClaimKey(s.Host))
	if err != nil {
		return err
	}
	if claim != nil && claim.UID != s.Host.Spec.ClaimRef.UID {
		claim = nil
	}
	if err := r.Root.DropVolume(ctx, actor, s.Host, hostpv.Unfulfil(s.Host, claim), e); err != nil {
		return err
	}
	r.options.UnusedPromises.End(s.Host.UID)
	r.eventReleased(s, claim)
	return nil
}

// ofPod enqueues the promises that a Pod uses.
func (r *reconciler) ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up the claims of a Pod", "root", client.ObjectKeyFromObject(pod))
		}
		if claim != nil && hostpv.NamesPromise(claim.Spec.VolumeName) {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Spec.VolumeName}})
		}
	}
	return found
}
