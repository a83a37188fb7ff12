package rootpv

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// lookAgain is after how long a disk is looked at again that only Pods without a
// node could still want: where such a Pod goes, no event tells this member.
const lookAgain = 5 * time.Second

// Decisions on the promise of a claim that lives, whose disk goes with its last
// Pod. The evidence is I2 (c): a recorded consumer, and no consumer on two live
// lists a grace apart; a third one after the mark that holds new Pods off.
type (
	// await looks again after a time.
	await struct{ after time.Duration }
	// markUnused notes since when no Pod uses the claim, if a live list shows none.
	markUnused struct{}
	// listUnused begins the grace of this process, if a live list shows none: another
	// process made the mark, by another clock.
	listUnused struct{}
	// markReleasing keeps Pods from being pushed from now on, if a second one does.
	markReleasing struct{}
	// unmark takes both off: somebody uses the claim.
	unmark struct{}
	// flipUnused puts the leaf PV to Delete, if a third list shows no Pod.
	flipUnused struct{}
	// deleteUnused deletes the leaf claim.
	deleteUnused struct{}
	// unfulfil makes the promise one without a disk again, once leaf claim and leaf PV
	// are proven gone.
	unfulfil struct{}
	// keep says that the disk is not released, since somebody retains it.
	keep struct{}
)

func (await) decision()         {}
func (markUnused) decision()    {}
func (listUnused) decision()    {}
func (markReleasing) decision() {}
func (unmark) decision()        {}
func (flipUnused) decision()    {}
func (deleteUnused) decision()  {}
func (unfulfil) decision()      {}
func (keep) decision()          {}

// unused decides on a promise that is Bound, and whose disk goes with its last Pod.
func (o observed) unused() decision {
	switch {
	case o.leaf != nil && o.leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && mirror.Releasing(o.host),
		o.leaf == nil && mirror.Releasing(o.host):
		return o.releasing() // there is no way back
	case len(o.consumers) > 0 && (mirror.MarkedUnused(o.host) || mirror.Releasing(o.host)):
		return unmark{}
	case len(o.consumers) > 0 && !slices.ContainsFunc(o.consumers, func(pod corev1.Pod) bool { return pod.Spec.NodeName == o.node }):
		return await{lookAgain} // what becomes of Pods on other nodes, or on none, no event tells
	case len(o.consumers) > 0, o.host.Annotations[v1alpha1.AnnotationConsumer] == "", o.leaf == nil:
		return nothing{}
	case !o.destroys():
		return keep{}
	case mirror.Releasing(o.host):
		return flipUnused{}
	case !marked(o.host):
		return markUnused{}
	case !o.listed:
		return listUnused{}
	case o.idle < o.grace:
		return await{o.grace - o.idle}
	}
	return markReleasing{}
}

// releasing: the leaf PV is put to Delete, or gone.
func (o observed) releasing() decision {
	switch {
	case o.claim != nil && o.claim.DeletionTimestamp == nil:
		return deleteUnused{}
	case o.claim == nil && o.leaf == nil:
		return unfulfil{}
	}
	return nothing{} // their ends wake us
}

// marked reports whether a promise says since when nobody used its disk. What cannot be
// read was not written by us, and says nothing.
func marked(pv *corev1.PersistentVolume) bool {
	_, err := time.Parse(time.RFC3339, pv.Annotations[v1alpha1.AnnotationUnusedSince])
	return err == nil
}

func (r *reconciler) observeConsumers(ctx context.Context, o *observed) error {
	class, err := mirror.ReadClass(mirror.PromiseClass(o.host))
	if err != nil {
		return err
	}
	o.now, o.grace, o.node = r.Clock.Now(), class.ReleaseGrace, r.NodeName
	o.idle, o.listed = r.idle.since(o.host, o.now)
	pods, err := index.PodsOfClaim(ctx, r.Host, claimOf(o.host))
	if err != nil {
		return err
	}
	o.consumers, err = r.Proof().Using(ctx, r.Host, pods)
	return err
}

// claimOf a host PV that has a claimRef.
func claimOf(pv *corev1.PersistentVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}
}

// actUnused carries out what unused and releasing decide.
func (r *reconciler) actUnused(ctx context.Context, o observed, d decision) (reconcile.Result, error) {
	switch d := d.(type) {
	case markUnused:
		return r.unlessConsumed(ctx, o, func(proof.Releasing) error {
			listed, mark := r.Clock.Now(), o.now.UTC().Format(time.RFC3339)
			err := r.annotate(ctx, o, v1alpha1.AnnotationUnusedSince, mark)
			if err == nil {
				r.idle.begin(o.host.UID, mark, listed)
			}
			return err
		})
	case listUnused:
		result, err := r.unlessConsumed(ctx, o, func(proof.Releasing) error {
			r.idle.begin(o.host.UID, o.host.Annotations[v1alpha1.AnnotationUnusedSince], r.Clock.Now())
			return nil
		})
		if err == nil && result.RequeueAfter == 0 {
			result.RequeueAfter = o.grace
		}
		return result, err
	case markReleasing:
		return r.unlessConsumed(ctx, o, func(proof.Releasing) error {
			return r.annotate(ctx, o, v1alpha1.AnnotationReleasing, string(o.leafUID))
		})
	case flipUnused:
		return r.unlessConsumed(ctx, o, func(e proof.Releasing) error { return r.Leaf.SetDelete(ctx, actor, o.leaf, e) })
	case unmark:
		return reconcile.Result{}, r.unmark(ctx, o)
	case deleteUnused:
		return reconcile.Result{}, r.deleteUnused(ctx, o)
	case unfulfil:
		return reconcile.Result{}, r.unfulfil(ctx, o)
	case keep:
		r.once(o.host, v1alpha1.ReasonReleaseRefused, func() { r.eventKept(o.host) })
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("unknown decision %T", d)
	}
}

// unlessConsumed does a step of the release if live reads show that the promise is
// as it was seen, and that no Pod uses the claim. Else both marks are taken off.
func (r *reconciler) unlessConsumed(ctx context.Context, o observed, step func(proof.Releasing) error) (reconcile.Result, error) {
	if err := r.MayDestroy(); err != nil {
		return reconcile.Result{}, err
	}
	promise, same, err := r.Proof().HostUnchanged(ctx, o.host)
	if err != nil || !same {
		return reconcile.Result{}, err
	}
	pods, unused, err := r.Proof().Unused(ctx, claimOf(o.host))
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !unused:
		return reconcile.Result{RequeueAfter: lookAgain}, r.unmark(ctx, o)
	}
	return reconcile.Result{}, step(proof.Releasing{Promise: promise, Pods: pods})
}

// deleteUnused deletes the leaf claim, if a live read shows that the promise is still marked:
// if a mark is gone, leaf_pv holds the leaf PV again.
func (r *reconciler) deleteUnused(ctx context.Context, o observed) error {
	promise, same, err := r.Proof().HostUnchanged(ctx, o.host)
	if err != nil || !same {
		return err
	}
	leaf, same, err := r.sameLeaf(ctx, o)
	if err != nil || !same {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.claim, proof.Releasing{Promise: promise, Leaf: leaf}))
}

func (r *reconciler) annotate(ctx context.Context, o observed, key, value string) error {
	after := o.host.DeepCopy()
	after.Annotations[key] = value
	return r.Root.Patch(ctx, actor, o.host, after)
}

// unmark takes both marks off, unless there is no way back: who puts the leaf PV to
// Delete may not have seen that in the cache yet.
func (r *reconciler) unmark(ctx context.Context, o observed) error {
	if mirror.Releasing(o.host) {
		if _, held, err := r.Proof().LeafVolume(ctx, o.leafName, o.held); err != nil || !held {
			return err // its event wakes us
		}
	}
	r.idle.end(o.host.UID)
	after := o.host.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationUnusedSince)
	delete(after.Annotations, v1alpha1.AnnotationReleasing)
	if len(after.Annotations) == len(o.host.Annotations) {
		return nil
	}
	return r.Root.Patch(ctx, actor, o.host, after)
}

// held reports whether a leaf PV is the one that was mirrored, and not put to Delete.
func (o observed) held(leaf *corev1.PersistentVolume) bool {
	return leaf != nil && leaf.UID == o.leafUID && leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete
}

func (r *reconciler) unfulfil(ctx context.Context, o observed) error {
	// In a cluster that was restored, absence is no evidence.
	if err := r.MayDestroy(); err != nil {
		return err
	}
	if gone, err := r.Proof().LeafGone(ctx, o.host); err != nil || !gone {
		return err
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, claimOf(o.host))
	if err != nil {
		return err
	}
	if claim != nil && claim.UID != o.host.Spec.ClaimRef.UID {
		claim = nil
	}
	if err := r.Root.Patch(ctx, actor, o.host, mirror.Unfulfil(o.host, claim)); err != nil {
		return err
	}
	r.idle.end(o.host.UID)
	r.eventReleased(o, claim)
	return nil
}

// releasePromise ends a promise whose claim is gone, and for which this member has
// made no disk: once live reads prove both.
func (r *reconciler) releasePromise(ctx context.Context, o observed) error {
	if err := r.MayDestroy(); err != nil {
		return err
	}
	if _, proven, err := r.destroying(ctx, o); err != nil || !proven {
		return err
	}
	if _, same, err := r.Proof().HostUnchanged(ctx, o.host); err != nil || !same {
		return err
	}
	if gone, err := r.Proof().LeafGone(ctx, o.host); err != nil || !gone {
		return err
	}
	return r.release(ctx, o.host, true)
}

// ofPod wakes the promises whose disks go with their last Pods.
func (r *reconciler) ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	for _, name := range mirror.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "look up the claims of a Pod", "root", client.ObjectKeyFromObject(pod))
		}
		if claim != nil && mirror.NamesPromise(claim.Spec.VolumeName) {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Spec.VolumeName}})
		}
	}
	return found
}
