package judge

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/result"
	"github.com/xylem-io/xylem/internal/cli/doctor/shipped"
	"github.com/xylem-io/xylem/internal/placement"
)

// Kinds in config/steering, the optional policy for the scheduler.
const (
	kindMutating        = "MutatingAdmissionPolicy"
	kindMutatingBinding = "MutatingAdmissionPolicyBinding"
)

// steers reports whether an object in the host is part of config/steering.
func steers(obj *metav1.PartialObjectMetadata) bool {
	return obj.Name == shipped.NamespacesPolicy && (obj.Kind == kindMutating || obj.Kind == kindMutatingBinding)
}

// steering reports whether the scheduler considers the registrations' rules for namespaces. If it
// ignores them, this is not a problem, because Xylem enforces them anyway.
func steering(h *facts.Host) []result.Finding {
	if !h.Registrations.Read || !h.Webhooks.Read || !h.Mutating.Read {
		return nil
	}
	var restricted []string
	for i := range h.Registrations.Items {
		if r := &h.Registrations.Items[i]; placement.MemberOf(r, nil).Rules.RestrictsNamespaces() {
			restricted = append(restricted, r.Name)
		}
	}
	has := func(kind string) bool {
		return slices.ContainsFunc(h.Webhooks.Items, func(obj metav1.PartialObjectMetadata) bool { return obj.Kind == kind && steers(&obj) })
	}
	var why string
	switch {
	case len(restricted) == 0:
		return nil
	case !*h.Mutating.Item:
		why = "the host serves no MutatingAdmissionPolicies"
	case !has(kindMutating):
		why = fmt.Sprintf("%s %q is not installed", kindMutating, shipped.NamespacesPolicy)
	case !has(kindMutatingBinding):
		why = fmt.Sprintf("%s %q is not bound", kindMutating, shipped.NamespacesPolicy)
	default:
		return []result.Finding{result.Passed(result.CheckPolicies, "", "%s %q keeps the scheduler from choosing members that don't admit a Pod's namespace", kindMutating, shipped.NamespacesPolicy)}
	}
	verb := "has"
	if len(restricted) > 1 {
		verb = "have"
	}
	return []result.Finding{result.Passed(result.CheckPolicies, "", "%s %s rules for namespaces (spec.namespaces), but %s. The scheduler may choose a member that doesn't admit a Pod's namespace, and then try again. "+
		"The chart value namespaces.steer installs the policy on hosts that run Kubernetes 1.36 or later", result.Named("registration", restricted), verb, why)}
}
