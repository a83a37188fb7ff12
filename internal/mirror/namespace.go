package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// ReservedNamespace reports whether a name is one of Kubernetes' own or of
// Xylem's: what runs or lies there in a member has rights that no host's tenant
// is to get, so that nothing is pushed there, whoever labels it.
func ReservedNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == v1alpha1.DefaultNamespace
}

// NamespacePatterns admit namespaces to a member by their names.
type NamespacePatterns struct {
	// Allow has the patterns of which a name must match one, unless there are none.
	// Deny has those of which it must match none.
	Allow, Deny []string
}

// PatternsOf are the patterns of a registration, the default ones included.
func PatternsOf(spec v1alpha1.NamespacesSpec) NamespacePatterns {
	patterns := NamespacePatterns{Allow: spec.Allow, Deny: v1alpha1.DefaultDeniedNamespaces()}
	if spec.Deny != nil {
		patterns.Deny = *spec.Deny
	}
	return patterns
}

// matches reports whether a name matches a pattern, in which "*" matches any
// characters, none included.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	name, found := strings.CutPrefix(name, parts[0])
	if len(parts) == 1 || !found {
		return found && name == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, name, found = strings.Cut(name, part); !found {
			return false
		}
	}
	return strings.HasSuffix(name, parts[last])
}

// AdmitNamespace refuses the leaves of a host namespace that the member's registration
// does not admit, or whose name is reserved; nil if it is admitted.
func AdmitNamespace(name string, m Member) *Refusal {
	if ReservedNamespace(name) {
		return &Refusal{Reason: v1alpha1.ReasonNamespaceReserved, Message: fmt.Sprintf(
			"namespace %s is a cluster's own, so nothing is pushed into that of member %s: use a namespace of another name", name, m.Registration)}
	}
	is := func(pattern string) bool { return matches(pattern, name) }
	var why string
	if i := slices.IndexFunc(m.Namespaces.Deny, is); i >= 0 {
		why = fmt.Sprintf("the pattern %q of spec.namespaces.deny matches it", m.Namespaces.Deny[i])
	} else if len(m.Namespaces.Allow) > 0 && !slices.ContainsFunc(m.Namespaces.Allow, is) {
		why = "no pattern of spec.namespaces.allow matches it"
	}
	if why == "" {
		return nil
	}
	return &Refusal{Reason: v1alpha1.ReasonNamespaceNotAdmitted, Message: fmt.Sprintf(
		"member %[1]q does not admit namespace %[2]q: %[3]s. Use another namespace, or change spec.namespaces of ClusterRegistration %[1]q",
		m.Registration, name, why)}
}

// UseNamespace says whether leaves may be put into a member's namespace: into
// one that Xylem made for this host, or that the member's admin handed to it.
// A nil namespace is not there yet: it is being made, and nothing is refused.
// What is refused is allowed again as soon as the namespace is another, unless
// its name is not admitted.
func UseNamespace(name string, ns *corev1.Namespace, m Member) (bool, *Refusal) {
	if refusal := AdmitNamespace(name, m); refusal != nil {
		return false, refusal
	}
	hostID, registration := m.HostID, m.Registration
	if ns == nil {
		return false, nil
	}
	switch holder := ns.Labels[v1alpha1.LabelHost]; {
	case holder == "":
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceConflict, Message: fmt.Sprintf(
			"member %[1]s has a namespace %[2]s that is not this host's: its admin can hand it over with `kubectl label namespace %[2]s %[3]s=%[4]s`; else use a namespace of another name",
			registration, ns.Name, v1alpha1.LabelHost, hostID)}
	case holder != hostID:
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceConflict, Message: fmt.Sprintf(
			"member %[1]s has a namespace %[2]s that is another host's (%[3]s=%[4]s): use a namespace of another name, or let its admin hand it over with `kubectl label --overwrite namespace %[2]s %[3]s=%[5]s` when the other host has left it",
			registration, ns.Name, v1alpha1.LabelHost, holder, hostID)}
	}
	if ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating {
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceTerminating, Message: fmt.Sprintf(
			"namespace %[2]s of member %[1]s is terminating, and is made anew when it is gone; if it does not go, `kubectl get namespace %[2]s -o yaml` in the member says in its conditions what holds it",
			registration, ns.Name)}
	}
	return true, nil
}

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
