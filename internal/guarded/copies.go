package guarded

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// CreateVolumeCopy creates the claim or the PV of a copy of a shared volume. The PV has policy Retain, and
// can be bound only to one existing claim. The claim can be bound only to one PV. CreateVolumeCopy returns
// AlreadyExists unchanged.
func (l *MemberWriter) CreateVolumeCopy(ctx context.Context, by Actor, obj client.Object) error {
	if _, ours := mirror.VolumeCopyFromHost(l.hostID, obj); !ours {
		return newForeignError(obj, "it is not stamped as a copy of a shared volume")
	}
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		if obj.Spec.CSI == nil || obj.Spec.ClaimRef == nil || obj.Spec.ClaimRef.UID == "" || !proof.IsLeafRetained(obj) {
			return newForeignError(obj, "a copy must have a CSI source, the UID of its claim and policy Retain")
		}
	case *corev1.PersistentVolumeClaim:
		if obj.Spec.VolumeName == "" {
			return newForeignError(obj, "a copy must name its volume")
		}
	default:
		return newForeignError(obj, "a copy is a claim or a volume")
	}
	return l.createObject(ctx, by, obj)
}

// RetainVolumeCopy sets the reclaim policy of a copy's PV to Retain, because the member could otherwise
// destroy the shared volume when the copy's claim is deleted.
func (l *MemberWriter) RetainVolumeCopy(ctx context.Context, by Actor, pv *corev1.PersistentVolume) error {
	if _, ours := mirror.VolumeCopyFromHost(l.hostID, pv); !ours {
		return newForeignError(pv, "it is not stamped as a copy of a shared volume")
	}
	after := pv.DeepCopy()
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return l.patchObject(ctx, by, pv, after)
}

// DeleteVolumeCopy deletes the claim or the PV of a copy of a shared volume, if the evidence covers it,
// destruction is allowed, and the object is unchanged.
func (l *MemberWriter) DeleteVolumeCopy(ctx context.Context, obj client.Object, evidence proof.CopyObsolete) error {
	if _, ours := mirror.VolumeCopyFromHost(l.hostID, obj); !ours {
		return newForeignError(obj, "it is not stamped as a copy of a shared volume")
	}
	if err := proof.SpendEvidence(evidence, proof.DeleteCopy, obj); err != nil {
		return err
	}
	if err := l.checkDestructionAllowed(ctx); err != nil {
		return err
	}
	return l.deleteObject(ctx, obj, IfUnchanged(obj))
}
