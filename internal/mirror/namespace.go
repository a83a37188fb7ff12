package mirror

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MadeByUs reports whether a member's namespace carries the whole stamp of this
// host, for this very name: one that was only handed over is its admin's, and
// never changed or removed.
func MadeByUs(ns *corev1.Namespace, hostID string) bool {
	if ns == nil {
		return false
	}
	origin, ours := OriginIn(hostID, ns)
	return ours && origin.Root == types.NamespacedName{Name: ns.Name}
}

// podSecurityPrefix starts the labels by which a namespace asks for Pod
// Security admission; podSecurityEnforce is the one by which Pods are rejected.
const (
	podSecurityPrefix  = "pod-security.kubernetes.io/"
	podSecurityEnforce = podSecurityPrefix + "enforce"
)

// Levels of Pod Security that restrict something, from the weaker one. The third,
// "privileged", restricts nothing.
const (
	levelBaseline   = "baseline"
	levelRestricted = "restricted"
)

// PodSecurityLabels are the labels of a namespace by which Pod Security admission
// judges.
func PodSecurityLabels(ns *corev1.Namespace) map[string]string {
	labels := maps.Clone(ns.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, podSecurityPrefix) })
	return labels
}

// leafPodSecurity are the Pod Security labels that Xylem wants on the member's
// namespace: those of the host's that restrict, and "baseline" at least. Versions
// are left out, since an older one restricts less. Where the member's admin lets
// Xylem loosen, they are the host's as they are.
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

// LeafNamespace is the namespace that Xylem makes in a member for the
// leaves of a host namespace, origin included. Of its labels only those of Pod
// Security are carried, and only to tighten: others hand out rights and quotas in
// the host, and what they would do in the member is the member's admin's to say.
func LeafNamespace(root *corev1.Namespace, m Member) *corev1.Namespace {
	leaf := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: root.Name, Labels: leafPodSecurity(root, m.LoosenPodSecurity)}}
	OriginFor(m.HostID, root).Stamp(leaf)
	return leaf
}

// KeepPodSecurity reports whether a Pod Security label that somebody in the member
// gave a namespace stays as it is, and the one that Xylem wants there is not set: the
// member's admin may tighten what the host wants, and may loosen what the host has
// not asked for.
func KeepPodSecurity(key, theirs string, root *corev1.Namespace) bool {
	switch root.Labels[key] {
	case levelRestricted:
		return theirs == levelRestricted
	case levelBaseline:
		return theirs == levelBaseline || theirs == levelRestricted
	}
	return true
}
