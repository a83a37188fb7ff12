package mirror

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// IsNamespaceCreatedByXylem reports whether Xylem created a member's namespace, which then has this host's complete
// stamp for its name. A namespace that an admin created and shared with Xylem belongs to that
// admin, and Xylem never changes or deletes it.
func IsNamespaceCreatedByXylem(ns *corev1.Namespace, hostID string) bool {
	if ns == nil {
		return false
	}
	origin, ours := LeafOriginFromHost(hostID, ns)
	return ours && origin.Root == types.NamespacedName{Name: ns.Name}
}

// podSecurityPrefix is the prefix of the labels that configure Pod Security admission for a
// namespace. podSecurityEnforce is the label that makes admission reject Pods.
const (
	podSecurityPrefix  = "pod-security.kubernetes.io/"
	podSecurityEnforce = podSecurityPrefix + "enforce"
)

// The Pod Security levels that restrict Pods, the weaker one first. The third level, "privileged",
// restricts nothing.
const (
	podSecurityBaseline   = "baseline"
	podSecurityRestricted = "restricted"
)

// PodSecurityLabels returns the namespace labels that Pod Security admission reads.
func PodSecurityLabels(ns *corev1.Namespace) map[string]string {
	labels := maps.Clone(ns.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, podSecurityPrefix) })
	return labels
}

// leafPodSecurityLabels returns the Pod Security labels that Xylem sets on the member's namespace: the
// host's labels that restrict Pods, and at least "baseline". It omits version labels, because older
// versions restrict less. If the member's admin allows Xylem to loosen Pod Security, it returns the
// host's labels unchanged.
func leafPodSecurityLabels(root *corev1.Namespace, loosen bool) map[string]string {
	host := PodSecurityLabels(root)
	if loosen {
		return host
	}
	labels := map[string]string{podSecurityEnforce: podSecurityBaseline}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if level := host[podSecurityPrefix+mode]; level == podSecurityBaseline || level == podSecurityRestricted {
			labels[podSecurityPrefix+mode] = level
		}
	}
	return labels
}

// LeafNamespace returns the namespace that Xylem creates in a member for the leaves of a host
// namespace, including its origin. It copies only Pod Security labels, and only those that tighten
// the level. Other labels may grant permissions and quotas, which only the member's admin may grant
// in the member.
func LeafNamespace(root *corev1.Namespace, m Member) *corev1.Namespace {
	leaf := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: root.Name, Labels: leafPodSecurityLabels(root, m.LoosenPodSecurity)}}
	OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf
}

// KeepsPodSecurityLabel reports whether Xylem keeps a Pod Security label that a user of the member set,
// instead of setting its own. The member's admin may tighten the host's level, and may set any
// level for a label that the host has not set.
func KeepsPodSecurityLabel(key, theirs string, root *corev1.Namespace) bool {
	switch root.Labels[key] {
	case podSecurityRestricted:
		return theirs == podSecurityRestricted
	case podSecurityBaseline:
		return theirs == podSecurityBaseline || theirs == podSecurityRestricted
	}
	return true
}
