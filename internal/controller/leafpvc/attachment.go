package leafpvc

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// attachmentActor is the field owner of the condition Attached.
const attachmentActor = guarded.Actor("leaf-attachment")

// leafVolumeChanged reports whether an update of a leaf PV changes its host or its driver.
var leafVolumeChanged = route.PartChanged(func(pv *corev1.PersistentVolume) [3]string {
	return [3]string{string(pv.UID), pv.Labels[v1alpha1.LabelHost], csiDriverOf(pv)}
})

func csiDriverOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil {
		return ""
	}
	return pv.Spec.CSI.Driver
}

// attachmentToRequests enqueues the claim whose volume an attachment names.
func (r *reconciler) attachmentToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	a, ok := obj.(*storagev1.VolumeAttachment)
	if !ok || a.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	found, err := index.HostVolumesOfLeaf(ctx, r.Host, r.ClusterID, *a.Spec.Source.PersistentVolumeName)
	return claimRequestsOf(ctx, found, err)
}

// leafVolumeToRequests enqueues the claim that uses a leaf PV.
func (r *reconciler) leafVolumeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetLabels()[v1alpha1.LabelHost] != r.HostID {
		return nil
	}
	found, err := index.HostVolumesOfLeaf(ctx, r.Host, r.ClusterID, obj.GetName())
	return claimRequestsOf(ctx, found, err)
}

// withAttached enqueues the claims that have the condition. It is called when attachments can be read, or can no longer
// be read. The attachments enqueue the other claims.
func (r *reconciler) withAttached(ctx context.Context, _ string) []reconcile.Request {
	found, err := index.HostVolumesIn(ctx, r.Host, r.ClusterID)
	return slices.DeleteFunc(claimRequestsOf(ctx, found, err), func(request reconcile.Request) bool {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, request.NamespacedName)
		return err == nil && (claim == nil || report.Attached(claim) == nil)
	})
}

// claimRequestsOf returns requests for the claims of host PVs.
func claimRequestsOf(ctx context.Context, volumes []corev1.PersistentVolume, err error) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes that an event concerns")
	}
	var requests []reconcile.Request
	for i := range volumes {
		if volumes[i].Spec.ClaimRef != nil {
			requests = append(requests, reconcile.Request{NamespacedName: hostpv.ClaimRefKey(&volumes[i])})
		}
	}
	return requests
}

// reportAttached sets the condition Attached of a root claim whose volume is in this member, and emits an event if a new
// problem begins. It returns when the condition may change without an event, or 0.
func (r *reconciler) reportAttached(ctx context.Context, root *corev1.PersistentVolumeClaim) (time.Duration, error) {
	o, err := r.observeAttachments(ctx, root)
	if err != nil || o == nil {
		return 0, err
	}
	should, again := decideAttached(*o)
	if should == nil {
		return again, nil
	}
	body := should.ApplyBody(root, r.Clock.Now())
	if body == nil {
		return again, nil
	}
	if err := r.HostWriter.ApplyStatus(ctx, attachmentActor, root, body); err != nil {
		return again, err
	}
	failed := should.Reason == v1alpha1.ReasonAttachFailed || should.Reason == v1alpha1.ReasonDetachFailed
	if before := report.Attached(root); failed && (before == nil || before.Reason != should.Reason) {
		r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, should.Reason, "Attach", "%s", should.Message)
	}
	return again, nil
}

// observeAttachments returns the attachments of a root claim's volume. It returns nil if the volume is not in this member,
// or if it is not known yet whether attachments can be read, because the claim is enqueued again then.
func (r *reconciler) observeAttachments(ctx context.Context, root *corev1.PersistentVolumeClaim) (*attachments, error) {
	pv, err := index.VolumeOf(ctx, r.Host, root)
	if err != nil || pv == nil {
		return nil, err
	}
	cluster, name, uid, ok := hostpv.LeafOfHostVolume(pv)
	problem, known := r.Attachments.ReadProblem()
	if !ok || cluster != r.ClusterID || name == "" || !known {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	o := &attachments{shown: report.Attached(root), unreadable: problem, member: r.Member, now: r.Clock.Now()}
	leaf, _, err := index.FindStamped[corev1.PersistentVolume](ctx, r.Cache, r.HostID, index.ClusterScopedKey(name))
	if err != nil {
		return nil, err
	}
	if o.gone = leaf == nil || leaf.UID != uid; !o.gone && problem == nil {
		o.driver = csiDriverOf(leaf)
		o.found, err = index.AttachmentsOfVolume(ctx, r.LeafAttachmentCache(), name)
	}
	return o, err
}
