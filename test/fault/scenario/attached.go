package scenario

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// attached returns the scenarios in which a member attaches or detaches a volume in use. The rig's
// drivers do not attach volumes, so the scenarios write the VolumeAttachment as
// kube-controller-manager and csi-attacher would.
func attached() []Scenario {
	return []Scenario{
		{
			Name: "attach", About: "the driver fails to attach a volume in use, and later attaches it",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.attach(ctx, storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "the cable is loose"}}); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the driver's error", func(ctx context.Context) error {
					return w.showsAttachment(ctx, corev1.ConditionFalse, v1alpha1.ReasonAttachFailed)
				}); err != nil {
					return err
				}
				return w.attach(ctx, storagev1.VolumeAttachmentStatus{Attached: true})
			},
			Settled: do((*World).shownAttached),
			Restore: do((*World).detach),
		},
		{
			Name: "detach", About: "a volume in use is detached",
			Setup: func(ctx context.Context, w *World) error {
				if err := w.up(ctx, rig.ClassDelete); err != nil {
					return err
				}
				if err := w.attach(ctx, storagev1.VolumeAttachmentStatus{Attached: true}); err != nil {
					return err
				}
				return harness.Await(ctx, "the attachment", w.shownAttached)
			},
			Act: do((*World).detach),
			Settled: func(ctx context.Context, w *World) error {
				if err := w.showsAttachment(ctx, corev1.ConditionFalse, v1alpha1.ReasonDetached); err != nil {
					return err
				}
				return w.upAndBound(ctx)
			},
			Restore: do((*World).detach),
		},
	}
}

func (w *World) attachment() *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{}
	a.Name = w.Namespace
	return a
}

// attach sets the status of the VolumeAttachment for the claim's volume. It creates the
// VolumeAttachment if necessary.
func (w *World) attach(ctx context.Context, status storagev1.VolumeAttachmentStatus) error {
	api, a := w.Member(rig.One).API, w.attachment()
	err := api.Get(ctx, client.ObjectKeyFromObject(a), a)
	if apierrors.IsNotFound(err) {
		if a.Spec, err = w.attaches(ctx); err == nil {
			err = api.Create(ctx, a)
		}
	}
	if err != nil {
		return fmt.Errorf("read or create the attachment: %w", err)
	}
	a.Status = status
	if err := api.Status().Update(ctx, a); err != nil {
		return fmt.Errorf("set the status of the attachment: %w", err)
	}
	return nil
}

// attaches returns the spec of a VolumeAttachment that attaches the claim's volume to its Pod's
// node.
func (w *World) attaches(ctx context.Context) (spec storagev1.VolumeAttachmentSpec, err error) {
	member := w.Member(rig.One)
	pod, err := get[corev1.Pod](ctx, w, member, app)
	if err != nil {
		return spec, err
	}
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, member, data)
	if err != nil {
		return spec, err
	}
	pv, err := get[corev1.PersistentVolume](ctx, w, member, claim.Spec.VolumeName)
	if err != nil {
		return spec, err
	}
	return storagev1.VolumeAttachmentSpec{
		Attacher: pv.Spec.CSI.Driver, NodeName: pod.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
	}, nil
}

// detach deletes the VolumeAttachment, if it exists.
func (w *World) detach(ctx context.Context) error {
	return client.IgnoreNotFound(w.delete(ctx, w.Member(rig.One), w.attachment()))
}

// shownAttached returns nil once the claim reports that its volume is attached, and its Pod runs.
func (w *World) shownAttached(ctx context.Context) error {
	if err := w.showsAttachment(ctx, corev1.ConditionTrue, v1alpha1.ReasonAttached); err != nil {
		return err
	}
	return w.upAndBound(ctx)
}

// showsAttachment returns nil once the user's claim has the condition Attached with this status and
// reason.
func (w *World) showsAttachment(ctx context.Context, status corev1.ConditionStatus, reason string) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	if c := report.Attached(claim); c == nil || c.Status != status || c.Reason != reason {
		return fmt.Errorf("claim %s reports the attachment as %+v, want %s", data, c, reason)
	}
	return nil
}
