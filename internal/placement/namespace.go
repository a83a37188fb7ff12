package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// refuseNamespace returns why the leaves of a host namespace must not be in the member, or nil.
// They may be in a namespace that Xylem created for this host, or that the member's admin handed
// over to this host. A refusal because of the member's namespace ends when that namespace is
// replaced.
func (m Member) refuseNamespace(host Namespace) *mirror.Refusal {
	if refusal := m.refuseHost(host); refusal != nil || m.Inside == nil {
		return refusal
	}
	ns := m.Inside.Namespace
	if ns == nil {
		return m.Inside.Rejection
	}
	switch holder := ns.Labels[v1alpha1.LabelHost]; {
	case holder == "":
		return mirror.Refuse(v1alpha1.ReasonNamespaceConflict, "member %[1]q already has a namespace %[2]q, which this host may not use. Ask the member's admin to hand the namespace over with `kubectl label namespace %[2]s %[3]s=%[4]s`, or use a namespace with another name",
			m.Registration, ns.Name, v1alpha1.LabelHost, m.HostID)
	case holder != m.HostID:
		return mirror.Refuse(v1alpha1.ReasonNamespaceConflict, "member %[1]q already has a namespace %[2]q, which belongs to another host (%[3]s=%[4]s). Use a namespace with another name. If that host no longer uses the namespace, the member's admin can hand it over with `kubectl label --overwrite namespace %[2]s %[3]s=%[5]s`",
			m.Registration, ns.Name, v1alpha1.LabelHost, holder, m.HostID)
	}
	if ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating {
		return mirror.Refuse(v1alpha1.ReasonNamespaceTerminating, "namespace %[2]q in member %[1]q is terminating: Xylem re-creates the namespace once it is gone. If the deletion does not complete, `kubectl get namespace %[2]s -o yaml` in the member shows what blocks it",
			m.Registration, ns.Name)
	}
	return nil
}

// refuseHost returns why the leaves of a host namespace must not be in the member, regardless of
// the member's namespace, or nil.
func (m Member) refuseHost(host Namespace) *mirror.Refusal {
	name := host.Name
	if reserved(name) {
		return mirror.Refuse(v1alpha1.ReasonNamespaceReserved, "namespace %q is reserved for the cluster itself: Xylem does not push objects to that namespace in member %q. Use another namespace", name, m.Registration)
	}
	why := m.Excludes(host)
	if why == "" {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonNamespaceNotAdmitted, "member %[1]q does not admit namespace %[2]q: %[3]s. Use another namespace, or ask an admin to change spec.namespaces of ClusterRegistration %[1]q",
		m.Registration, name, why)
}

// Excludes returns which rule in spec.namespaces excludes a host namespace. It returns "" if none
// does, or if the namespace's labels are not known yet.
func (m Member) Excludes(host Namespace) string {
	is := func(pattern string) bool { return matches(pattern, host.Name) }
	if i := slices.IndexFunc(m.Rules.deny, is); i >= 0 {
		return fmt.Sprintf("the pattern %q of spec.namespaces.deny matches the name", m.Rules.deny[i])
	}
	if len(m.Rules.allow) > 0 && !slices.ContainsFunc(m.Rules.allow, is) {
		return "no pattern of spec.namespaces.allow matches the name"
	}
	if host.Known {
		return m.Rules.lacksLabel(host.Labels)
	}
	return ""
}

// lacksLabel describes the first required label that a namespace lacks, ordered by key. It returns
// "" if the namespace has all of them.
func (r Rules) lacksLabel(has map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		value, found := has[key]
		switch {
		case !found:
			return fmt.Sprintf("the namespace lacks the label %s=%s of spec.namespaces.matchLabels", key, r.labels[key])
		case value != r.labels[key]:
			return fmt.Sprintf("the namespace's label %s is %q, but spec.namespaces.matchLabels requires %q", key, value, r.labels[key])
		}
	}
	return ""
}

// reserved reports whether Kubernetes or Xylem reserves a namespace's name. Objects in such a
// namespace have permissions in a member that no tenant of a host may get, so Xylem never pushes
// into it, regardless of its labels.
func reserved(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == v1alpha1.DefaultNamespace
}

// matches reports whether a name matches a pattern, in which "*" matches any number of characters.
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

// LiftedDenials returns the default patterns that a registration's own spec.namespaces.deny lacks: a
// list replaces the default. It returns none if spec.namespaces.allow names what the member accepts.
func LiftedDenials(cr *v1alpha1.ClusterRegistration) []string {
	if cr.Spec.Namespaces.Deny == nil || len(cr.Spec.Namespaces.Allow) > 0 {
		return nil
	}
	return slices.DeleteFunc(v1alpha1.DefaultDeniedNamespaces(), func(pattern string) bool {
		return slices.ContainsFunc(*cr.Spec.Namespaces.Deny, func(own string) bool { return matches(own, pattern) })
	})
}

// LiftedText says what a spec.namespaces.deny that lacks default patterns does. The sentence begins with its name.
func LiftedText(lifted []string) string {
	return "replaces the default, so the member also accepts namespaces that match " + strings.Join(lifted, ", ")
}
