package rootpvc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// label records on the promise that this member has it, and for which Pod: what
// is left of the placement when the claim is gone.
type label struct{ consumer *corev1.Pod }

// unlabel takes that off, once the member is proven empty of the claim.
type unlabel struct{}

func (label) decision()   {}
func (unlabel) decision() {}

// promised: the root is bound to a promise that has no disk. It is placed where a
// Pod of it lands, and let go of when none is left there before the disk is made.
// The order: placed-in, which one member wins; the label on the promise; the leaf
// claim. Back: the leaf claim, the label, placed-in.
func (o observed) promised() decision {
	labelled := o.promise.Labels[v1alpha1.LabelClusterID]
	switch placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]; {
	case placed != "" && placed != o.member.ClusterID:
		return o.promisedElsewhere(placed)
	case placed == "" && o.wanted():
		return place{}
	case placed == "" && o.left():
		return o.unplaced()
	case labelled != "" && labelled != o.member.ClusterID:
		return nothing{} // about to be let go of there
	case labelled == "" && placed == "":
		return nothing{}
	case labelled == "" && (o.wanted() || o.left()):
		return label{o.consumer()}
	case labelled == "":
		return unplace{}
	}
	return o.promisedHere()
}

// wanted reports whether a Pod here waits for the disk.
func (o observed) wanted() bool { return len(o.landed) > 0 && o.root.DeletionTimestamp == nil }

// left reports whether a leaf claim shows that the member had the promise, and was to
// keep it: not one that an admin has let go of.
func (o observed) left() bool {
	return o.leaf != nil && !hostpv.LetGoIn(o.promise, o.member.ClusterID)
}

// promisedHere: the member has the promise.
func (o observed) promisedHere() decision {
	switch {
	case o.leaf == nil && o.wanted():
		return o.createFor("")
	case o.leaf == nil:
		return unlabel{}
	case o.leaf.Spec.VolumeName != "" && !terminating(o.leafVolume):
		return nothing{} // leaf_pv fulfils the promise
	case o.leaf.Spec.VolumeName == "" && len(o.landed) == 0:
		return withdraw{}
	}
	return o.made()
}

// promisedElsewhere: what is here of a promise that another member has is taken
// back, or is a surplus.
func (o observed) promisedElsewhere(placed string) decision {
	switch {
	case o.leaf != nil && o.leaf.Spec.VolumeName == "":
		return withdraw{}
	case o.leaf == nil && o.promise.Labels[v1alpha1.LabelClusterID] == o.member.ClusterID:
		return unlabel{}
	case len(o.landed) > 0 || o.leaf != nil:
		return o.elsewhere(placed)
	}
	return nothing{}
}

// consumer is the Pod that the disk is made for: the first that landed.
func (o observed) consumer() *corev1.Pod {
	if len(o.landed) == 0 {
		return nil
	}
	first := slices.MinFunc(o.landed, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return &first
}

// awaited proves by a live read of a promise, before a leaf claim is made for it, that it is
// to have a disk here; or, where the leaf claim of its disk was lost, that it still has it.
func (r *reconciler) awaited(ctx context.Context, o observed) (bool, error) {
	switch {
	case o.promise != nil:
		return r.Proof().Promised(ctx, o.promise, "")
	case o.volume != nil && hostpv.WhenUnused(o.volume.Host):
		return r.Proof().Promised(ctx, o.volume.Host, o.volume.Name)
	}
	return true, nil
}

// observePromise looks up the Pods of the root that have landed in the member. The
// class is the one of the time when the promise was made.
func (r *reconciler) observePromise(ctx context.Context, o *observed, pv *corev1.PersistentVolume) error {
	o.promise = pv
	var err error
	o.landed, err = r.landed(ctx, client.ObjectKeyFromObject(o.root))
	return err
}

// promiseClass is the class that a promise is to be kept by.
func (r *reconciler) promiseClass(ctx context.Context, promise *corev1.PersistentVolume) (*storagev1.StorageClass, error) {
	present, err := index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(promise.Spec.StorageClassName))
	return placement.PromisedClass(promise, present), err
}

// uses reports whether a Pod can be what a disk is made for: it has neither ended
// nor is it being deleted, and may be pushed.
func uses(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !podstatus.Finished(pod) && !podstatus.KeptOut(pod)
}

// landed are the Pods that use a claim and are bound to the member's node, or about
// to be.
func (r *reconciler) landed(ctx context.Context, claim types.NamespacedName) ([]corev1.Pod, error) {
	pods, err := index.PodsOfClaim(ctx, r.Host, claim)
	if err != nil {
		return nil, err
	}
	return r.landedOf(ctx, r.Host, pods)
}

// landedOf are those of some Pods that have landed, by a reader of the host.
func (r *reconciler) landedOf(ctx context.Context, host client.Reader, pods []corev1.Pod) ([]corev1.Pod, error) {
	var landed []corev1.Pod
	for i := range pods {
		if !uses(&pods[i]) {
			continue
		}
		here := pods[i].Spec.NodeName == r.NodeName
		if !here {
			var err error
			if here, err = r.landing(ctx, host, &pods[i]); err != nil {
				return nil, err
			}
		}
		if here {
			landed = append(landed, pods[i])
		}
	}
	return landed, nil
}

// landing reports whether a Pod is about to be bound to the member's node, and
// waits, or has waited, for the volume of another claim that was asked for here.
func (r *reconciler) landing(ctx context.Context, host client.Reader, pod *corev1.Pod) (bool, error) {
	if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != r.NodeName {
		return false, nil
	}
	for _, name := range podspec.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return false, err
		}
		if claim != nil && r.askedHere(claim) {
			return true, nil
		}
	}
	return false, nil
}

// askedHere reports whether the scheduler has asked for a claim's volume on the
// member's node. It may be bound by now: the Pod is not, until the scheduler looks
// again. Of a promise, a selected node says nothing.
func (r *reconciler) askedHere(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[route.AnnSelectedNode] == r.NodeName && !hostpv.NamesPromise(claim.Spec.VolumeName)
}

// stands proves, of a promise, by a live list of Pods that what is taken back of it
// is not wanted: in a cache that was filled by an API server that lags behind, after
// a restart, the Pod that it is made for may be missing.
func (r *reconciler) stands(ctx context.Context, o observed, d decision) (bool, error) {
	if o.promise == nil || o.root == nil {
		return true, nil
	}
	key := client.ObjectKeyFromObject(o.root)
	using, err := r.Proof().LivePodsOfClaim(ctx, key)
	if err != nil {
		return false, fmt.Errorf("prove that no Pod here waits for claim %s: %w", key, err)
	}
	if o.landed, err = r.landedOf(ctx, r.HostLive, using); err != nil {
		return false, err
	}
	return decide(o) == d, nil // else the cache is behind, and the Pod's event wakes us
}

// ofPod wakes the claims of a Pod that are bound to promises.
func (r *reconciler) ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != r.NodeName && pod.Status.NominatedNodeName != r.NodeName {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, key)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "look up the claims of a Pod", "root", key)
		}
		if claim != nil && hostpv.NamesPromise(claim.Spec.VolumeName) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// ofRootClaim wakes a claim, and the promises that a Pod uses beside it which lands
// because this one was asked for here.
func (r *reconciler) ofRootClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := member.SameKey(ctx, obj)
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !r.askedHere(claim) {
		return requests
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the Pods of a claim", "root", client.ObjectKeyFromObject(claim))
	}
	for i := range pods {
		requests = append(requests, r.ofPod(ctx, &pods[i])...)
	}
	return requests
}

// ofRootVolume wakes the claim that a host PV is for: of promises that this member
// does not have, only where a Pod has landed here.
func (r *reconciler) ofRootVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := ofHostVolume(ctx, obj)
	if obj.GetLabels()[v1alpha1.LabelClusterID] == r.ClusterID || len(requests) == 0 {
		return requests
	}
	landed, err := r.landed(ctx, requests[0].NamespacedName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the Pods of a promise")
	}
	if len(landed) == 0 {
		return nil
	}
	return requests
}

// unlabel proves by a live read that the member is empty of the claim. What was
// said of it here is taken back first: nobody speaks of a claim that none has.
func (r *reconciler) unlabel(ctx context.Context, o observed) error {
	if gone, err := r.Proof().LeafClaimGone(ctx, o.root); err != nil || !gone {
		return err
	}
	if o.speaks() {
		if err := r.tell(ctx, o.root, nil); err != nil {
			return err
		}
	}
	return r.Root.Patch(ctx, actor, o.promise, hostpv.WithoutMember(o.promise))
}
