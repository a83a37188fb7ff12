package doctor

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/placement"
)

// Kinds in config/steering and config/keys, the policies that need Kubernetes 1.36.
const (
	kindMutating        = "MutatingAdmissionPolicy"
	kindMutatingBinding = "MutatingAdmissionPolicyBinding"
)

// isShippedMutatingPolicy reports whether an object in the host is part of config/steering or config/keys.
func isShippedMutatingPolicy(obj *metav1.PartialObjectMetadata) bool {
	return (obj.Name == NamespacesPolicy || obj.Name == KeysPolicy) && (obj.Kind == kindMutating || obj.Kind == kindMutatingBinding)
}

// judgeSteering reports whether the scheduler considers the registrations' rules for namespaces. If it
// ignores them, this is not a problem, because Xylem enforces them anyway.
func judgeSteering(f *Facts) []Finding {
	h := &f.Host
	if !h.Registrations.Read || !h.Webhooks.Read || !h.Mutating.Read {
		return nil
	}
	var restricted []string
	for i := range h.Registrations.Items {
		if r := &h.Registrations.Items[i]; placement.MemberOfRegistration(r, nil).Rules.RestrictsNamespaces() {
			restricted = append(restricted, r.Name)
		}
	}
	if len(restricted) == 0 {
		return nil
	}
	why := whyIneffective(h, NamespacesPolicy)
	if why == "" {
		return []Finding{passed("%s %q keeps the scheduler from choosing members that don't admit a Pod's namespace", kindMutating, NamespacesPolicy)}
	}
	verb := "has"
	if len(restricted) > 1 {
		verb = "have"
	}
	return []Finding{passed("%s %s rules for namespaces (spec.namespaces), but %s. The scheduler may choose a member that doesn't admit a Pod's namespace, and then try again. "+
		"The chart value namespaces.steer installs the policy on hosts that run Kubernetes 1.36 or later", enumerateNamed("registration", restricted), verb, why)}
}

// judgeReservedKeys reports that the API server does not keep or remove Xylem's keys, although it could. This is not a
// problem, because it rejects them.
func judgeReservedKeys(f *Facts) []Finding {
	h := &f.Host
	if !h.Webhooks.Read || !h.Mutating.Read || !*h.Mutating.Item {
		return nil
	}
	why := whyIneffective(h, KeysPolicy)
	if why == "" {
		return nil
	}
	return []Finding{passed("%s, so the API server rejects `kubectl replace` of Pods and claims that Xylem wrote to, and new claims, volumes and VolumeSnapshotContents that were exported from a host. "+
		"The chart installs the policy on hosts that run Kubernetes 1.36 or later. Without Helm, run `kubectl apply -k config/keys`", why)}
}

// whyIneffective returns why the API server does not apply a mutating policy, or "".
func whyIneffective(h *HostFacts, policy string) string {
	has := func(kind string) bool {
		return slices.ContainsFunc(h.Webhooks.Items, func(obj metav1.PartialObjectMetadata) bool { return obj.Kind == kind && obj.Name == policy })
	}
	switch {
	case !*h.Mutating.Item:
		return "the host serves no MutatingAdmissionPolicies"
	case !has(kindMutating):
		return fmt.Sprintf("%s %q is not installed", kindMutating, policy)
	case !has(kindMutatingBinding):
		return fmt.Sprintf("%s %q is not bound", kindMutating, policy)
	}
	return ""
}
