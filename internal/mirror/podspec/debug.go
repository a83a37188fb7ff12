package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// MissingDebugContainers returns the names of a root Pod's ephemeral containers that its leaf does
// not have yet. The API neither changes nor removes ephemeral containers, so comparing names
// suffices.
func MissingDebugContainers(root, leaf *corev1.Pod) []string {
	var names []string
	for i := range root.Spec.EphemeralContainers {
		if name := root.Spec.EphemeralContainers[i].Name; !hasDebugContainer(leaf, name) {
			names = append(names, name)
		}
	}
	return names
}

func hasDebugContainer(leaf *corev1.Pod, name string) bool {
	return slices.ContainsFunc(leaf.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

// AddDebugContainer returns a copy of the leaf with an ephemeral container of its root. The decisions on
// containers apply to the ephemeral container, and point rewrites its references to the names of
// the copies. The error, if any, is a *Refusal.
func AddDebugContainer(root, leaf *corev1.Pod, name string, point func(*corev1.Pod)) (*corev1.Pod, error) {
	one := &corev1.Pod{Spec: corev1.PodSpec{Volumes: root.Spec.Volumes, EphemeralContainers: slices.DeleteFunc(
		slices.Clone(root.Spec.EphemeralContainers), func(c corev1.EphemeralContainer) bool { return c.Name != name },
	)}}
	one = one.DeepCopy()
	dropTokenVolume(&one.Spec)
	one.Spec.Volumes = nil
	if refused := fields.ApplyDecisions(podDecisions, &one.Spec, PodFieldTable.PathPrefix); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonPodUnsupported,
			Message: strings.Join(refused, "; "),
		}
	}
	point(one)
	leaf = leaf.DeepCopy()
	leaf.Spec.EphemeralContainers = append(leaf.Spec.EphemeralContainers, one.Spec.EphemeralContainers...)
	return leaf, nil
}

// EphemeralAsContainers converts ephemeral containers to containers, with the fields that both have.
func EphemeralAsContainers(ephemeral []corev1.EphemeralContainer) []corev1.Container {
	containers := make([]corev1.Container, 0, len(ephemeral))
	for i := range ephemeral {
		containers = append(containers, corev1.Container(ephemeral[i].EphemeralContainerCommon))
	}
	return containers
}
