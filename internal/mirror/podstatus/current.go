package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// ownedPodStatus returns the part of a root's status that Xylem owns: the fields that the table does
// not drop, and the conditions that a kubelet sets or whose types are in also.
func ownedPodStatus(root *corev1.Pod, also []corev1.PodCondition) corev1.PodStatus {
	own := *root.Status.DeepCopy()
	fields.ApplyDecisions(podStatusDecisions, &own, PodStatusFieldTable.PathPrefix)
	own.Conditions = slices.DeleteFunc(own.Conditions, func(c corev1.PodCondition) bool {
		return !slices.Contains(kubeletConditions, c.Type) && FindPodCondition(also, c.Type) == nil
	})
	return own
}

// IsPodStatusCurrent reports whether the root's status equals want, in the fields and conditions that
// Xylem owns.
func IsPodStatusCurrent(root *corev1.Pod, want corev1.PodStatus) bool {
	has := ownedPodStatus(root, want.Conditions)
	if len(has.Conditions) != len(want.Conditions) {
		return false
	}
	for _, c := range want.Conditions {
		other := FindPodCondition(has.Conditions, c.Type)
		if other == nil {
			return false
		}
		other.LastProbeTime = metav1.Time{}
		if !equality.Semantic.DeepEqual(c, *other) {
			return false
		}
	}
	has.Conditions, want.Conditions = nil, nil
	return equality.Semantic.DeepEqual(has, want)
}

// PodStatusApplyBody returns the body of a server-side apply of want to the root's status subresource. It
// contains the root's UID, so that it never changes a re-created Pod. It contains everything that
// Xylem owns, because an apply removes fields that it no longer contains. It sets a scalar
// that want lacks to "", because omitting it would keep the value of another owner.
func PodStatusApplyBody(root *corev1.Pod, want corev1.PodStatus) *unstructured.Unstructured {
	status := fields.StatusToMap(&want)
	for key, has := range map[string]string{
		"message": root.Status.Message,
		"reason":  root.Status.Reason,
		"podIP":   root.Status.PodIP,
		"hostIP":  root.Status.HostIP,
		"resize":  string(root.Status.Resize),
	} {
		if _, set := status[key]; has != "" && !set {
			status[key] = ""
		}
	}
	return fields.StatusApplyBody("Pod", root, status)
}
