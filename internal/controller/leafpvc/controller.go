package leafpvc

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_pvc"
	actor = guarded.Actor("leaf-pvc")
	// workers is the number of statuses of one member that are mirrored concurrently.
	workers = 4
)

type reconciler struct {
	*member.Link
	Options
}

// Options contains what the controllers of all members share.
type Options struct {
	// Latency measures provisioning latency. This controller's event handlers record when root and
	// leaf are observed to be bound, before the claim waits in a queue.
	Latency *account.ProvisioningLatency
}

// SetupWithLink adds the controller to a member's link.
func SetupWithLink(link *member.Link, o Options) error {
	r := &reconciler{link, o}
	o.Latency.CreateSeries(link.Registration)
	return link.AddController(Name, workers, r,
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, r.boundLeafClaimToRoot, route.ConcernsPredicate(mirroredFieldsChanged))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.boundRootClaimToRequest, mirroredFieldsChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolume{}, link.OnlyOwnObjects(r.hostVolumeToClaim), hostVolumeChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.PersistentVolume{}, r.leafVolumeToRequests, route.ConcernsPredicate(leafVolumeChanged))),
		link.LeafAttachmentSource(&storagev1.VolumeAttachment{}, r.attachmentToRequests),
		link.Attachments.ProblemChangeSource(r.withAttached),
	)
}

// mirroredFieldsChanged reports whether an update of a claim changes its volume, its request, its status, or its
// VolumeAttributesClasses and their recorded host names.
func mirroredFieldsChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || was.UID != is.UID || was.Spec.VolumeName != is.Spec.VolumeName ||
		was.Annotations[v1alpha1.AnnotationAttributesClasses] != is.Annotations[v1alpha1.AnnotationAttributesClasses] ||
		ptr.Deref(was.Spec.VolumeAttributesClassName, "") != ptr.Deref(is.Spec.VolumeAttributesClassName, "") ||
		!equality.Semantic.DeepEqual(was.Spec.Resources, is.Spec.Resources) || !equality.Semantic.DeepEqual(was.Status, is.Status)
}

// hostVolumeChanged reports whether an update of a host PV changes the leaf PV that it represents, or
// its claim.
var hostVolumeChanged = route.PartChanged(func(pv *corev1.PersistentVolume) volumeIdentity {
	cluster, leaf, uid, _ := hostpv.LeafOfHostVolume(pv)
	return volumeIdentity{cluster, leaf, uid, ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID}
})

type volumeIdentity struct {
	cluster, leaf string
	uid, claim    types.UID
}

// boundLeafClaimToRoot enqueues the root of a leaf claim that is Bound. Before that, its status is not
// mirrored.
func (r *reconciler) boundLeafClaimToRoot(ctx context.Context, obj client.Object) []reconcile.Request {
	leaf, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || leaf.Status.Phase != corev1.ClaimBound {
		return nil
	}
	if origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf); ours {
		r.Latency.RecordLeafBound(r.Registration, origin.UID)
	}
	return member.RequestOfSameKey(ctx, obj)
}

// boundRootClaimToRequest enqueues a root claim that is Bound.
func (r *reconciler) boundRootClaimToRequest(ctx context.Context, obj client.Object) []reconcile.Request {
	root, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || root.Status.Phase != corev1.ClaimBound {
		return nil
	}
	if !hostpv.IsPromiseName(root.Spec.VolumeName) {
		r.Latency.RecordHostBound(r.Registration, root.UID)
	}
	return member.RequestOfSameKey(ctx, obj)
}

// hostVolumeToClaim enqueues the claim of a host PV, because the PV may reach the cache later than the
// claim.
func (r *reconciler) hostVolumeToClaim(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	if _, _, _, fulfilled := hostpv.LeafOfHostVolume(pv); fulfilled && hostpv.IsPromise(pv) {
		r.Latency.RecordHostBound(r.Registration, pv.Spec.ClaimRef.UID)
	}
	return []reconcile.Request{{NamespacedName: hostpv.ClaimRefKey(pv)}}
}

// Reconcile updates the status of one root claim: what its leaf reports, and to which nodes its volume is attached. The
// failure of one does not delay the other.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	root, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, request.NamespacedName)
	if err != nil || root == nil {
		return reconcile.Result{}, err
	}
	again, err := r.reportAttached(ctx, root)
	return reconcile.Result{RequeueAfter: again}, errors.Join(err, r.mirrorStatus(ctx, root))
}

// mirrorStatus updates the parts of a root claim's status that its leaf reports.
func (r *reconciler) mirrorStatus(ctx context.Context, root *corev1.PersistentVolumeClaim) error {
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, client.ObjectKeyFromObject(root))
	if err != nil || leaf == nil || origin.UID != root.UID {
		return err
	}
	if mirrors, err := r.boundToMirrorOfLeaf(ctx, root, leaf); err != nil || !mirrors {
		return err
	}
	want := pvc.TranslateClaimStatus(root, leaf)
	if err := r.showUnappliedChanges(ctx, root, leaf, &want); err != nil {
		return err
	}
	if pvc.IsClaimStatusCurrent(root, want) {
		return nil
	}
	return r.HostWriter.ApplyStatus(ctx, actor, root, pvc.ClaimStatusApplyBody(root, want))
}

// showUnappliedChanges shows the changes of a root that root_pvc cannot pass to the leaf claim. The member's
// resizer does not know about them. root_pvc explains the cause in the condition Placed.
func (r *reconciler) showUnappliedChanges(ctx context.Context, root, leaf *corev1.PersistentVolumeClaim, want *corev1.PersistentVolumeClaimStatus) error {
	class, size := pvc.UnappliedChanges(root, leaf)
	if size != nil {
		pvc.ShowUnexpanded(root, want, size)
	}
	if class == nil {
		return nil
	}
	there, err := index.FindObject[storagev1.VolumeAttributesClass](ctx, r.HostLive, index.ClusterScopedKey(*root.Spec.VolumeAttributesClassName))
	if err == nil {
		pvc.ShowUnmodified(root, want, class, there != nil)
	}
	return err
}

// boundToMirrorOfLeaf reports whether the root is bound to the mirror of the leaf's volume. The status of a
// surplus leaf is not mirrored.
func (r *reconciler) boundToMirrorOfLeaf(ctx context.Context, root, leaf *corev1.PersistentVolumeClaim) (bool, error) {
	if root.Spec.VolumeName == "" || leaf.Spec.VolumeName == "" || root.Status.Phase != corev1.ClaimBound || leaf.Status.Phase != corev1.ClaimBound {
		return false, nil
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, r.Host, index.ClusterScopedKey(root.Spec.VolumeName))
	if err != nil || pv == nil {
		return false, err
	}
	cluster, leafName, _, ok := hostpv.LeafOfHostVolume(pv)
	return ok && cluster == r.ClusterID && leafName == leaf.Spec.VolumeName, nil
}
