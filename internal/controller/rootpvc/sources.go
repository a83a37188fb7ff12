package rootpvc

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// chosen reports whether a claim names the member, with its selected node or its placement.
func chosen(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[route.AnnSelectedNode] == m.NodeName || claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID
}

// ofHostVolume enqueues the claim that a host PV is for.
func ofHostVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}}
}

// ofLeafClaim enqueues the root of a leaf claim, its siblings, and the root that has, or should
// have, the volume that the leaf claim names.
func (r *reconciler) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(r.WithSiblings(ctx, obj), r.clones(ctx, client.ObjectKeyFromObject(obj))...)
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
		requests = append(requests, r.ofLeaf(ctx, claim.Spec.VolumeName)...)
	}
	return requests
}

// ofLeafVolume enqueues the root of the leaf claim that a leaf PV is for, and the roots of host
// PVs that represent it.
func (r *reconciler) ofLeafVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(r.withClones(ctx, ofHostVolume(ctx, obj)), r.ofLeaf(ctx, obj.GetName())...)
}

// ofLeaf returns requests for the roots of the host PVs that represent a leaf PV.
func (r *reconciler) ofLeaf(ctx context.Context, name string) []reconcile.Request {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, name)
	imports, importsErr := index.ImportsOf(ctx, r.Host, r.ClusterID, name)
	if err := errors.Join(err, importsErr); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the host volumes of a leaf volume")
		return nil
	}
	hosts = slices.Concat(hosts, imports)
	var requests []reconcile.Request
	for i := range hosts {
		requests = append(requests, ofHostVolume(ctx, &hosts[i])...)
	}
	return requests
}

// waiting enqueues the claims that wait for an object here, because a created or deleted class
// may unblock them.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.claims(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		return r.asks(claim) || chosen(claim, r.Member) && (claim.Spec.VolumeName == "" || hostpv.NamesPromise(claim.Spec.VolumeName))
	})
}

// rivals enqueues the claims that request a volume by name, because another member may have
// found, or lost, an orphan of that name.
func (r *reconciler) rivals(ctx context.Context, registration string) []reconcile.Request {
	if registration == r.Registration {
		return nil
	}
	return r.claims(ctx, metav1.NamespaceAll, r.asks)
}

// asks reports whether a claim requests an existing volume that it does not have yet and may
// find here.
func (r *reconciler) asks(claim *corev1.PersistentVolumeClaim) bool {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	return claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && (placed == "" || placed == r.ClusterID)
}

// inNamespace enqueues the claims of a namespace of the member.
func (r *reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.claims(ctx, namespace.GetName(), func(claim *corev1.PersistentVolumeClaim) bool { return chosen(claim, r.Member) })
}

// inRootNamespace enqueues the claims of a host namespace that request a volume by name. The
// namespace's tenant determines whether they may have it.
func (r *reconciler) inRootNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.claims(ctx, namespace.GetName(), r.asks)
}

// claims returns requests for the claims of a namespace, or of all, that concern this member
// and that wanted accepts.
func (r *reconciler) claims(ctx context.Context, namespace string, wanted func(*corev1.PersistentVolumeClaim) bool) []reconcile.Request {
	var requests []reconcile.Request
	if err := r.Router.Each(r.Owner(), &corev1.PersistentVolumeClaim{}, namespace, func(obj client.Object) {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && wanted(claim) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claims of a member")
	}
	return requests
}

// ofWarning enqueues the claim that a provisioner in the member could not satisfy, while it is
// not bound there.
func (r *reconciler) ofWarning(ctx context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || !report.SaysProvisioningFailed(event) {
		return nil
	}
	return r.unboundLeaf(ctx, types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name})
}

// ofLeafPod enqueues the claims that a leaf Pod waits for.
func (r *reconciler) ofLeafPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		requests = append(requests, r.unboundLeaf(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name})...)
	}
	return requests
}

// unboundLeaf returns a request for one of Xylem's claims in the member that is not bound.
func (r *reconciler) unboundLeaf(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	leaf, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claim that something in the member is about", "leaf", key)
	}
	if leaf == nil || leaf.Spec.VolumeName != "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofPod enqueues the claims of a Pod that are bound to promises.
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

// ofRootClaim enqueues a claim, and the promises that a Pod uses in addition. The Pod is bound
// here because this member was selected for the claim.
func (r *reconciler) ofRootClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(member.SameKey(ctx, obj), r.ofSource(ctx, obj)...)
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !r.observer().SelectedHere(claim) {
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

// ofEnd enqueues a deleted claim if this member has a leaf claim of its name.
func (r *reconciler) ofEnd(ctx context.Context, root client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(root)
	leaf, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the leaf claim of a claim that is gone", "root", key)
	}
	if leaf == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofRootVolume enqueues the claim that a host PV is for: of promises that this member
// does not have, only if a Pod of it is here.
func (r *reconciler) ofRootVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.withClones(ctx, ofHostVolume(ctx, obj))
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		if leaf, asks := hostpv.ImportOfIn(pv, r.ClusterID); asks { // a second PV for the volume changes the report
			return append(requests, r.ofLeaf(ctx, leaf)...)
		}
	}
	if obj.GetLabels()[v1alpha1.LabelClusterID] == r.ClusterID || len(requests) == 0 {
		return requests
	}
	pods, err := r.observer().PodsHere(ctx, requests[0].NamespacedName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the Pods of a promise")
	}
	if len(pods) == 0 {
		return nil
	}
	return requests
}
