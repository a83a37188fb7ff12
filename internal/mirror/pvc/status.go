package pvc

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/weigh"
)

// volumeConditions are the claim conditions that resizers and kubelets set.
var volumeConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing,
	corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError,
	corev1.PersistentVolumeClaimNodeResizeError,
	corev1.PersistentVolumeClaimVolumeModifyVolumeError,
	corev1.PersistentVolumeClaimVolumeModifyingVolume,
}

// TranslateClaimStatus returns the part of a root's status that Xylem mirrors from the leaf claim,
// according to FIELDS.md. It is empty until both the leaf and the root are bound, because the
// host's PV controller owns these fields until then.
func TranslateClaimStatus(root, leaf *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimStatus {
	if leaf.Status.Phase != corev1.ClaimBound || root.Status.Phase != corev1.ClaimBound {
		return corev1.PersistentVolumeClaimStatus{}
	}
	want := ownedClaimStatus(leaf)
	useHostAttributesClasses(leaf, &want)
	want.AllocatedResources = mirror.CapToRequested(want.AllocatedResources, root.Spec.Resources.Requests)
	return want
}

// ownedClaimStatus returns the part of a root's status that Xylem owns.
func ownedClaimStatus(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimStatus {
	own := *claim.Status.DeepCopy()
	fields.ApplyDecisions(claimStatusDecisions, &own, ClaimStatusFieldTable.PathPrefix)
	own.Conditions = slices.DeleteFunc(own.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return !slices.Contains(volumeConditions, c.Type)
	})
	own.Conditions = mirror.FirstPerKey(own.Conditions, func(c corev1.PersistentVolumeClaimCondition) corev1.PersistentVolumeClaimConditionType { return c.Type })
	keepStorageOnly(&own)
	mirror.MemberValue(&own)
	return own
}

// IsClaimStatusCurrent reports whether the fields that Xylem owns in the root's status equal want. A
// capacity or volume attributes class that want lacks belongs to the host's PV controller, which
// sets both when it binds the claim.
func IsClaimStatusCurrent(root *corev1.PersistentVolumeClaim, want corev1.PersistentVolumeClaimStatus) bool {
	has := ownedClaimStatus(root)
	if len(want.Capacity) == 0 {
		has.Capacity = nil
	}
	if want.CurrentVolumeAttributesClassName == nil {
		has.CurrentVolumeAttributesClassName = nil
	}
	byType := func(a, b corev1.PersistentVolumeClaimCondition) int {
		return slices.Index(volumeConditions, a.Type) - slices.Index(volumeConditions, b.Type)
	}
	want = *want.DeepCopy()
	slices.SortStableFunc(has.Conditions, byType)
	slices.SortStableFunc(want.Conditions, byType)
	return equality.Semantic.DeepEqual(has, want)
}

// ClaimStatusApplyBody returns the body of a server-side apply of want to the root's status. It contains
// the root's UID, and all fields that Xylem owns in the status, because an apply removes owned
// fields that it omits.
func ClaimStatusApplyBody(root *corev1.PersistentVolumeClaim, want corev1.PersistentVolumeClaimStatus) *unstructured.Unstructured {
	return fields.StatusApplyBody("PersistentVolumeClaim", root, fields.StatusToMap(&want))
}

// keepStorageOnly removes resources other than storage from a claim's status, because claims have no
// others. It also removes quantities that are out of range.
func keepStorageOnly(status *corev1.PersistentVolumeClaimStatus) {
	for _, list := range []corev1.ResourceList{status.Capacity, status.AllocatedResources} {
		maps.DeleteFunc(list, func(name corev1.ResourceName, amount resource.Quantity) bool {
			return name != corev1.ResourceStorage || !weigh.IsInRange(amount)
		})
	}
	maps.DeleteFunc(status.AllocatedResourceStatuses, func(name corev1.ResourceName, _ corev1.ClaimResourceStatus) bool {
		return name != corev1.ResourceStorage
	})
}
