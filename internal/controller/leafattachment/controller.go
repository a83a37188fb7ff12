package leafattachment

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
)

const (
	// Name is the name of the controller in each member's Link.
	Name = "leaf_attachment"
	// actor is the field owner of the condition, for both controllers.
	actor = guarded.Actor("leaf-attachment")
	// workers is the number of claims of one member that are reconciled concurrently.
	workers = 2
)

type reconciler struct{ *member.Link }

// Setup adds the controller leaf_attachment to a member's Link.
func Setup(link *member.Link) error {
	r := &reconciler{link}
	return link.Controller(Name, workers, r,
		link.LeafAttachmentSource(&storagev1.VolumeAttachment{}, r.ofAttachment),
		link.Attachments.Changes(r.all),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofClaim, ofAttached)),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolume{}, link.Own(r.ofVolume), ofLeaf)),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.PersistentVolume{}, r.ofLeafVolume, route.Concerning(ofLeafVolume))),
	)
}

// ofAttached reports whether an update of a root claim changes its volume or the condition, which
// the other controller may have overwritten.
var ofAttached = route.Of(func(claim *corev1.PersistentVolumeClaim) [6]string {
	c := report.AttachedValue(claim)
	return [6]string{string(claim.UID), claim.Spec.VolumeName, string(claim.Status.Phase), c[0], c[1], c[2]}
})

// ofLeaf reports whether an update of a host PV changes the leaf PV that it represents, or its
// claim.
var ofLeaf = route.Of(func(pv *corev1.PersistentVolume) [4]string {
	cluster, leaf, uid, _ := hostpv.LeafOf(pv)
	return [4]string{cluster, leaf, string(uid), string(ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID)}
})

// ofLeafVolume reports whether an update of a leaf PV changes its host or its driver.
var ofLeafVolume = route.Of(func(pv *corev1.PersistentVolume) [3]string {
	return [3]string{string(pv.UID), pv.Labels[v1alpha1.LabelHost], driverOf(pv)}
})

func driverOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil {
		return ""
	}
	return pv.Spec.CSI.Driver
}

// ofAttachment enqueues the claim whose volume an attachment names.
func (r *reconciler) ofAttachment(ctx context.Context, obj client.Object) []reconcile.Request {
	a, ok := obj.(*storagev1.VolumeAttachment)
	if !ok || a.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	return r.claimsOfLeaf(ctx, *a.Spec.Source.PersistentVolumeName)
}

// claimsOfLeaf returns a request for the claim that uses the leaf PV with that name.
func (r *reconciler) claimsOfLeaf(ctx context.Context, leaf string) []reconcile.Request {
	found, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, leaf)
	return claimsOf(ctx, found, err)
}

// The functions below enqueue only reportable claims.

// all enqueues the claims of all of the member's volumes.
func (r *reconciler) all(ctx context.Context, _ string) []reconcile.Request {
	found, err := index.VolumesIn(ctx, r.Host, r.ClusterID)
	return r.reportable(ctx, claimsOf(ctx, found, err))
}

// ofLeafVolume enqueues the claim that uses a leaf PV.
func (r *reconciler) ofLeafVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetLabels()[v1alpha1.LabelHost] != r.HostID {
		return nil
	}
	return r.reportable(ctx, r.claimsOfLeaf(ctx, obj.GetName()))
}

// ofVolume enqueues the claim of a host PV.
func (r *reconciler) ofVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	return r.reportable(ctx, claimsOf(ctx, []corev1.PersistentVolume{*pv}, nil))
}

// ofClaim enqueues a claim.
func (r *reconciler) ofClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.reportable(ctx, member.SameKey(ctx, obj))
}

// reportable returns the requests for claims with a volume in this member that have the condition, or whose volume an
// attachment names. So a driver that attaches nothing causes no work.
func (r *reconciler) reportable(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(requests, func(request reconcile.Request) bool {
		claim, leaf, _, err := r.volumeOf(ctx, request.NamespacedName)
		return err == nil && (leaf == "" || report.Attached(claim) == nil && !r.isNamedByAttachment(ctx, leaf))
	})
}

// isNamedByAttachment reports whether an attachment names a leaf PV.
func (r *reconciler) isNamedByAttachment(ctx context.Context, leaf string) bool {
	if r.LeafAttachments() == nil {
		return false
	}
	found, err := index.AttachmentsOf(ctx, r.LeafAttachments(), leaf)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the attachments of a volume", "leaf", leaf)
	}
	return len(found) > 0
}

// claimsOf returns requests for the claims of host PVs.
func claimsOf(ctx context.Context, volumes []corev1.PersistentVolume, err error) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes that an event concerns")
	}
	var requests []reconcile.Request
	for i := range volumes {
		if ref := volumes[i].Spec.ClaimRef; ref != nil {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
		}
	}
	return requests
}

// Reconcile updates the condition of one root claim.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	root, name, uid, err := r.volumeOf(ctx, request.NamespacedName)
	if err != nil || name == "" {
		return reconcile.Result{}, err
	}
	problem, known := r.Attachments.Problem()
	if !known {
		return reconcile.Result{}, nil // the claim is enqueued again once it is known whether attachments can be read
	}
	o := observed{shown: report.Attached(root), unreadable: problem, member: r.Member, now: r.Clock.Now()}
	leaf, _, err := index.Leaf[corev1.PersistentVolume](ctx, r.Cache, r.HostID, index.Named(name))
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.gone = leaf == nil || leaf.UID != uid; !o.gone && problem == nil {
		o.driver = driverOf(leaf)
		if o.attachments, err = index.AttachmentsOf(ctx, r.LeafAttachments(), name); err != nil {
			return reconcile.Result{}, err
		}
	}
	should, again := decide(o)
	return reconcile.Result{RequeueAfter: again}, r.report(ctx, root, should)
}

// volumeOf returns a root claim, and the name and UID of the leaf PV that the claim's host PV
// represents. The name is empty unless this leaf PV is in this member.
func (r *reconciler) volumeOf(ctx context.Context, key types.NamespacedName) (root *corev1.PersistentVolumeClaim, name string, uid types.UID, err error) {
	root, pv, err := boundTo(ctx, r.Host, key)
	if err != nil || pv == nil {
		return nil, "", "", err
	}
	cluster, name, uid, ok := hostpv.LeafOf(pv)
	if !ok || cluster != r.ClusterID {
		return nil, "", "", nil
	}
	return root, name, uid, nil
}

// boundTo returns a root claim and the host PV to which it is bound. Each is nil if it does not
// exist.
func boundTo(ctx context.Context, host client.Reader, key types.NamespacedName) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	root, err := index.Find[corev1.PersistentVolumeClaim](ctx, host, key)
	if err != nil || root == nil || root.Status.Phase != corev1.ClaimBound {
		return root, nil, err
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, host, index.Named(root.Spec.VolumeName))
	if err != nil || pv == nil || ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID != root.UID {
		return root, nil, err
	}
	return root, pv, nil
}

// report sets the condition, and emits an event if a new problem begins.
func (r *reconciler) report(ctx context.Context, root *corev1.PersistentVolumeClaim, should *statement) error {
	written, err := apply(ctx, r.Root, root, should, r.Clock.Now())
	if err != nil || !written {
		return err
	}
	if before := report.Attached(root); before == nil || before.Reason != should.reason {
		r.eventFailed(root, should)
	}
	return nil
}

// apply writes the condition if it differs from the claim's, and reports whether it did.
func apply(ctx context.Context, to *guarded.Root, root *corev1.PersistentVolumeClaim, should *statement, now time.Time) (written bool, err error) {
	if should == nil {
		return false, nil
	}
	body := report.ClaimCondition(root, v1alpha1.ClaimAttached, nil, now)
	if should.status != "" {
		body = report.ClaimStatement(root, v1alpha1.ClaimAttached, should.status, should.reason, should.message, now)
	}
	if body == nil {
		return false, nil
	}
	return true, to.ApplyStatus(ctx, actor, root, body)
}
