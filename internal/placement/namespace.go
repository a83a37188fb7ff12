package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// namespaceObstacle returns why the leaves of a host namespace must not be in the member, or nil.
// They may be in a namespace that Xylem created for this host, or that the member's admin handed
// over to this host. An obstacle because of the member's namespace ends when that namespace is
// replaced.
func (m Member) namespaceObstacle(host Namespace) *Obstacle {
	switch rule := m.ExcludingRuleFor(host); {
	case isReservedNamespace(host.Name):
		return &Obstacle{Reason: v1alpha1.ReasonNamespaceReserved, Cause: fmt.Sprintf("does not admit namespace %q, which is reserved for the cluster itself", host.Name),
			Remedy: "Use another namespace"}
	case rule != "":
		return &Obstacle{Reason: v1alpha1.ReasonNamespaceNotAdmitted, Cause: fmt.Sprintf("does not admit namespace %q: %s", host.Name, rule),
			Remedy: fmt.Sprintf("Use another namespace, or ask an admin to change spec.namespaces of ClusterRegistration %q", m.Registration)}
	case m.Objects == nil:
		return nil
	case m.Objects.Namespace == nil:
		return obstacleOf(m.Objects.NamespaceRejection)
	}
	return m.insideObstacle(m.Objects.Namespace)
}

// insideObstacle returns why the member's namespace must not get the leaves, or nil.
func (m Member) insideObstacle(ns *corev1.Namespace) *Obstacle {
	switch holder := ns.Labels[v1alpha1.LabelHost]; {
	case holder == "":
		return &Obstacle{Reason: v1alpha1.ReasonNamespaceConflict, Cause: fmt.Sprintf("already has a namespace %q, which this host may not use", ns.Name),
			Remedy: fmt.Sprintf("Ask the member's admin to hand the namespace over with `kubectl label namespace %s %s=%s`, or use a namespace with another name", ns.Name, v1alpha1.LabelHost, m.HostID)}
	case holder != m.HostID:
		return &Obstacle{Reason: v1alpha1.ReasonNamespaceConflict, Cause: fmt.Sprintf("already has a namespace %q, which belongs to another host (%s=%s)", ns.Name, v1alpha1.LabelHost, holder),
			Remedy: fmt.Sprintf("Use a namespace with another name. If that host no longer uses the namespace, the member's admin can hand it over with `kubectl label --overwrite namespace %s %s=%s`", ns.Name, v1alpha1.LabelHost, m.HostID)}
	case ns.DeletionTimestamp != nil, ns.Status.Phase == corev1.NamespaceTerminating:
		return &Obstacle{Reason: v1alpha1.ReasonNamespaceTerminating, WholeSentence: true,
			Cause:  fmt.Sprintf("namespace %q in member %q is terminating: Xylem re-creates the namespace once it is gone", ns.Name, m.Registration),
			Remedy: fmt.Sprintf("If the deletion does not complete, `kubectl get namespace %s -o yaml` in the member shows what blocks it", ns.Name)}
	}
	return nil
}

// ExcludingRuleFor returns which rule in spec.namespaces excludes a host namespace. It returns "" if none
// does, or if the namespace's labels are not known yet.
func (m Member) ExcludingRuleFor(host Namespace) string {
	is := func(pattern string) bool { return matchesPattern(pattern, host.Name) }
	if i := slices.IndexFunc(m.Rules.deny, is); i >= 0 {
		return fmt.Sprintf("the pattern %q of spec.namespaces.deny matches the name", m.Rules.deny[i])
	}
	if len(m.Rules.allow) > 0 && !slices.ContainsFunc(m.Rules.allow, is) {
		return "no pattern of spec.namespaces.allow matches the name"
	}
	if host.Known {
		return m.Rules.describeMissingLabel(host.Labels)
	}
	return ""
}

// describeMissingLabel describes the first required label that a namespace lacks, ordered by key. It returns
// "" if the namespace has all of them.
func (r Rules) describeMissingLabel(has map[string]string) string {
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

// isReservedNamespace reports whether Kubernetes or Xylem reserves a namespace's name. Objects in such a
// namespace have permissions in a member that no tenant of a host may get, so Xylem never pushes
// into it, regardless of its labels.
func isReservedNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == v1alpha1.DefaultNamespace
}

// matchesPattern reports whether a name matches a pattern, in which "*" matches any number of characters.
func matchesPattern(pattern, name string) bool {
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
		return slices.ContainsFunc(*cr.Spec.Namespaces.Deny, func(own string) bool { return matchesPattern(own, pattern) })
	})
}

// LiftedDenialsText says what a spec.namespaces.deny that lacks default patterns does. The sentence begins with its name.
func LiftedDenialsText(lifted []string) string {
	return "replaces the default, so the member also accepts namespaces that match " + strings.Join(lifted, ", ")
}
