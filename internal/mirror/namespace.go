package mirror

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MadeByUs reports whether Xylem created a member's namespace: it has this host's complete stamp
// for its name. A namespace that an admin only handed over belongs to that admin, and Xylem never
// changes or deletes it.
func MadeByUs(ns *corev1.Namespace, hostID string) bool {
	if ns == nil {
		return false
	}
	origin, ours := OriginIn(hostID, ns)
	return ours && origin.Root == types.NamespacedName{Name: ns.Name}
}

// podSecurityPrefix is the prefix of the labels by which a namespace configures Pod Security
// admission. podSecurityEnforce is the one that rejects Pods.
const (
	podSecurityPrefix  = "pod-security.kubernetes.io/"
	podSecurityEnforce = podSecurityPrefix + "enforce"
)

// Levels of Pod Security that restrict something, the weaker one first. The third,
// "privileged", restricts nothing.
const (
	levelBaseline   = "baseline"
	levelRestricted = "restricted"
)

// PodSecurityLabels returns the labels of a namespace that Pod Security admission reads.
func PodSecurityLabels(ns *corev1.Namespace) map[string]string {
	labels := maps.Clone(ns.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, podSecurityPrefix) })
	return labels
}

// leafPodSecurity returns the Pod Security labels that Xylem wants on the member's namespace:
// the host's labels that restrict, and at least "baseline". It omits versions, because an older
// one restricts less. If the member's admin allows Xylem to loosen Pod Security, it returns the
// host's labels unchanged.
func leafPodSecurity(root *corev1.Namespace, loosen bool) map[string]string {
	host := PodSecurityLabels(root)
	if loosen {
		return host
	}
	labels := map[string]string{podSecurityEnforce: levelBaseline}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if level := host[podSecurityPrefix+mode]; level == levelBaseline || level == levelRestricted {
			labels[podSecurityPrefix+mode] = level
		}
	}
	return labels
}

// LeafNamespace returns the namespace that Xylem creates in a member for the leaves of a host
// namespace, including its origin. It copies only the labels of Pod Security, and only to tighten.
// Other labels may grant permissions and quotas in the host. The member's admin decides on those in
// the member.
func LeafNamespace(root *corev1.Namespace, m Member) *corev1.Namespace {
	leaf := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: root.Name, Labels: leafPodSecurity(root, m.LoosenPodSecurity)}}
	OriginFor(m.HostID, root).Stamp(leaf)
	return leaf
}

// KeepPodSecurity reports whether Xylem keeps a Pod Security label that a user of the member set,
// instead of setting its own. The member's admin may tighten the host's level, and may loosen a
// level that the host has not set.
func KeepPodSecurity(key, theirs string, root *corev1.Namespace) bool {
	switch root.Labels[key] {
	case levelRestricted:
		return theirs == levelRestricted
	case levelBaseline:
		return theirs == levelBaseline || theirs == levelRestricted
	}
	return true
}
