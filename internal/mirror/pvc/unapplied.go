package pvc

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// UnappliedChanges returns why Xylem cannot pass a changed VolumeAttributesClass, or a changed size, of a bound
// root to its leaf claim. Either is nil if there is no such problem. A rejection concerns the size if both
// change, because root_pvc may not have tried to pass the class yet.
func UnappliedChanges(root, leaf *corev1.PersistentVolumeClaim) (class, size *mirror.Refusal) {
	problem := report.ClaimConditionProblem(root, v1alpha1.ClaimPlaced)
	if problem == nil {
		return nil, nil
	}
	changes := AttributesClassChangeOf(root, leaf) == AttributesChange && ptr.Deref(root.Spec.VolumeAttributesClassName, "") != ""
	_, grows := LeafStorageRequest(root, leaf)
	switch problem.Reason {
	case v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonAttributesClassMismatch:
		if changes {
			class = problem
		}
	case v1alpha1.ReasonRefusedByMember, v1alpha1.ReasonQuantityOutOfRange:
		if grows {
			size = problem
		} else if changes && problem.Reason == v1alpha1.ReasonRefusedByMember {
			class = problem
		}
	}
	return class, size
}

// ShowUnmodified shows in a root's new status that the volume does not get the root's class, as
// external-resizer does (pkg/modifycontroller): a class that the host lacks is Pending, without
// conditions, and any other is Infeasible.
func ShowUnmodified(root *corev1.PersistentVolumeClaim, status *corev1.PersistentVolumeClaimStatus, problem *mirror.Refusal, hostHasClass bool) {
	class := *root.Spec.VolumeAttributesClassName
	status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: class, Status: corev1.PersistentVolumeClaimModifyVolumePending}
	if !hostHasClass {
		return
	}
	status.ModifyVolumeStatus.Status = corev1.PersistentVolumeClaimModifyVolumeInfeasible
	replaceCondition(root, status, corev1.PersistentVolumeClaimVolumeModifyVolumeError, problem.Reason, problem.Message)
	replaceCondition(root, status, corev1.PersistentVolumeClaimVolumeModifyingVolume, "", fmt.Sprintf("Modifying volume to %q failed. Waiting for retry.", class))
}

// ShowUnexpanded shows in a root's new status that the volume does not get the root's size, as
// external-resizer does after an error that a retry does not solve (pkg/controller/resize_status.go).
func ShowUnexpanded(root *corev1.PersistentVolumeClaim, status *corev1.PersistentVolumeClaimStatus, problem *mirror.Refusal) {
	status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: root.Spec.Resources.Requests[corev1.ResourceStorage]}
	status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible}
	keepStorageOnly(status) // the status cannot have a size that is out of range
	replaceCondition(root, status, corev1.PersistentVolumeClaimControllerResizeError, problem.Reason, "failed to expand pvc with "+problem.Message)
}

// replaceCondition replaces a condition of a root's new status. Its times are those of the condition Placed.
func replaceCondition(root *corev1.PersistentVolumeClaim, status *corev1.PersistentVolumeClaimStatus, kind corev1.PersistentVolumeClaimConditionType, reason, message string) {
	condition := corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	for _, c := range root.Status.Conditions {
		if c.Type == v1alpha1.ClaimPlaced {
			condition.LastProbeTime, condition.LastTransitionTime = c.LastTransitionTime, c.LastTransitionTime
		}
	}
	status.Conditions = append(slices.DeleteFunc(status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind }), condition)
	mirror.MemberValue(status)
}
