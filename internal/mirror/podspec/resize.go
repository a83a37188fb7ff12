package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// podResources contains the resources of a Pod and of its containers, by container name.
type podResources struct {
	Pod            *corev1.ResourceRequirements           `json:"pod,omitempty"`
	InitContainers map[string]corev1.ResourceRequirements `json:"initContainers,omitempty"`
	Containers     map[string]corev1.ResourceRequirements `json:"containers,omitempty"`
}

func podResourcesOf(spec *corev1.PodSpec) podResources {
	of := func(containers []corev1.Container) map[string]corev1.ResourceRequirements {
		m := make(map[string]corev1.ResourceRequirements, len(containers))
		for i := range containers {
			m[containers[i].Name] = containers[i].Resources
		}
		return m
	}
	return podResources{Pod: spec.Resources, InitContainers: of(spec.InitContainers), Containers: of(spec.Containers)}
}

// ResourcesDigest returns a digest of a Pod's resources.
func ResourcesDigest(pod *corev1.Pod) string { return fields.DigestOfJSON(podResourcesOf(&pod.Spec)) }

// ResizedAfterPush reports whether the root was resized after the push, and the leaf still has other
// resources. Xylem does not resize leaves. A leaf's resources may differ from the pushed ones,
// because the member's admission may set defaults, so the push record decides. Leaves of earlier
// versions have no record, and count as not resized.
func ResizedAfterPush(root, leaf *corev1.Pod) bool {
	was := pushRecordOf(leaf).Resources
	return was != "" && was != ResourcesDigest(root) && !equality.Semantic.DeepEqual(podResourcesOf(&root.Spec), podResourcesOf(&leaf.Spec))
}
