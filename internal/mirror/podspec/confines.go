package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// RestrictsMemberNodes reports whether a Pod's own requirements, as far as they reach the member, may exclude
// some of the member's nodes: node labels, affinity to other Pods, topology spread, host ports, and a
// RuntimeClass, which may select nodes. Resource requests do not count, because all Pods have them.
func RestrictsMemberNodes(pod *corev1.Pod, m mirror.Member) bool {
	spec := pod.Spec.DeepCopy()
	KeepMemberConstraints(spec, pod.Labels, m)
	return len(spec.NodeSelector) > 0 || spec.RuntimeClassName != nil || hasRequiredTerms(spec.Affinity) ||
		slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable != corev1.ScheduleAnyway
		}) ||
		slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
		})
}

// hasRequiredTerms reports whether an affinity has requirements, not only preferences.
func hasRequiredTerms(a *corev1.Affinity) bool {
	return a != nil && (a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil ||
		a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
}
