package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// ApplyPodDrift returns a copy of the leaf with the changes of the drift, except for a resize.
func ApplyPodDrift(leaf *corev1.Pod, d PodDrift) *corev1.Pod {
	leaf = leaf.DeepCopy()
	d.ApplyToMeta(&leaf.ObjectMeta)
	setContainerImages(leaf.Spec.Containers, d.Images)
	setContainerImages(leaf.Spec.InitContainers, d.InitImages)
	if d.ActiveDeadlineSeconds != nil {
		leaf.Spec.ActiveDeadlineSeconds = fields.ClonePointer(d.ActiveDeadlineSeconds)
	}
	if d.Tolerations != nil {
		leaf.Spec.Tolerations = (&corev1.PodSpec{Tolerations: d.Tolerations}).DeepCopy().Tolerations
	}
	return leaf
}

func setContainerImages(containers []corev1.Container, images map[string]string) {
	for i := range containers {
		if image, changed := images[containers[i].Name]; changed {
			containers[i].Image = image
		}
	}
}
