package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// ownPodStatus is what of a root's status is Xylem's: all that is not dropped
// by the table, the conditions that a kubelet sets, and those in also.
func ownPodStatus(root *corev1.Pod, also []corev1.PodCondition) corev1.PodStatus {
	own := *root.Status.DeepCopy()
	fields.Shaped(podStatusShape, &own, Table.Root)
	own.Conditions = slices.DeleteFunc(own.Conditions, func(c corev1.PodCondition) bool {
		return !slices.Contains(kubeletConditions, c.Type) && Condition(also, c.Type) == nil
	})
	return own
}

// Current reports whether the root shows want already, and nothing of
// Xylem's besides. Conditions of types that are not Xylem's are not looked at.
func Current(root *corev1.Pod, want corev1.PodStatus) bool {
	has := ownPodStatus(root, want.Conditions)
	if len(has.Conditions) != len(want.Conditions) {
		return false
	}
	for _, c := range want.Conditions {
		other := Condition(has.Conditions, c.Type)
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

// Apply is the body of a server-side apply of want to the root's status
// subresource: it names the root by UID, so that it never reaches a successor,
// and all that is Xylem's of the status, since what an apply no longer names
// is removed. Scalars that somebody else had set are emptied in so many words:
// leaving them out would leave them there.
func Apply(root *corev1.Pod, want corev1.PodStatus) *unstructured.Unstructured {
	status := fields.ToMap(&want)
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
	return fields.StatusApply("Pod", root, status)
}
