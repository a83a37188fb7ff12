package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckPolicies is the name of this check.
const CheckPolicies Check = "Policies"

var (
	policiesCheck       = checkOf[*Facts]{name: CheckPolicies, read: readHostPolicies, judge: judgeHostPolicies}
	memberPoliciesCheck = checkOf[*Member]{name: CheckPolicies, read: readMemberPolicies, judge: judgeMemberPolicies}
)

// policyFacts are a cluster's admission policies.
type policyFacts struct {
	// Policies and Bindings are all the ValidatingAdmissionPolicies and their bindings.
	Policies inspect.Objects[admissionv1.ValidatingAdmissionPolicy]
	Bindings inspect.Objects[admissionv1.ValidatingAdmissionPolicyBinding]
	// Webhooks are the webhook configurations and mutating policies with Xylem's label.
	Webhooks inspect.Objects[metav1.PartialObjectMetadata]
}

func readHostPolicies(ctx context.Context, r *inspect.Reader, f *Facts) {
	f.Host.Mutating = readServesMutating(r)
	readPolicies(ctx, r, &f.Host.policyFacts)
}

// readMemberPolicies reads a member's policies as its admin. The manager's account may not read them.
func readMemberPolicies(ctx context.Context, r *inspect.Reader, m *Member) {
	if m.Own {
		readPolicies(ctx, r, &m.policyFacts)
	}
}

// labelled selects objects from Xylem's manifests and charts.
var labelled = client.MatchingLabels{command.LabelName: command.LabelNameValue}

// readPolicies reads all policies, and other admission objects with Xylem's label.
func readPolicies(ctx context.Context, r *inspect.Reader, c *policyFacts) {
	inspect.RunReadsTogether(
		func() {
			c.Policies = inspect.ReadList(ctx, r, "ValidatingAdmissionPolicies", &admissionv1.ValidatingAdmissionPolicyList{},
				func(l *admissionv1.ValidatingAdmissionPolicyList) []admissionv1.ValidatingAdmissionPolicy {
					return l.Items
				})
		},
		func() {
			c.Bindings = inspect.ReadList(ctx, r, "ValidatingAdmissionPolicyBindings", &admissionv1.ValidatingAdmissionPolicyBindingList{},
				func(l *admissionv1.ValidatingAdmissionPolicyBindingList) []admissionv1.ValidatingAdmissionPolicyBinding {
					return l.Items
				})
		},
		func() {
			c.Webhooks.Read = true
			for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
				some := r.ReadMetadata(ctx, wording.PluralNoun(kind), admissionv1.SchemeGroupVersion.WithKind(kind), labelled)
				c.Webhooks.Items, c.Webhooks.Read = append(c.Webhooks.Items, some.Items...), c.Webhooks.Read && some.Read
			}
		},
	)
}

// readServesMutating reads whether the API server serves MutatingAdmissionPolicies, as it does from
// Kubernetes 1.36 on.
func readServesMutating(r *inspect.Reader) inspect.Object[bool] {
	resources, err := r.Raw.Discovery().ServerResourcesForGroupVersion(admissionv1.SchemeGroupVersion.String())
	if err != nil {
		r.RecordMissing("whether MutatingAdmissionPolicies are served", err)
		return inspect.Object[bool]{}
	}
	served := slices.ContainsFunc(resources.APIResources, func(resource metav1.APIResource) bool { return resource.Name == "mutatingadmissionpolicies" })
	return inspect.Object[bool]{Item: &served, Read: true}
}

func judgeHostPolicies(f *Facts) ([]Finding, error) {
	h := &f.Host
	want, err := shippedHostPolicies(h.Account)
	if err != nil {
		return nil, err
	}
	found, err := judgePolicies(&h.Cluster, want, "", installAgain)
	return slices.Concat(found, judgeSteering(f), judgeReservedKeys(f)), err
}

// prepareAgain is the remedy for objects in a member that differ from this version's.
const prepareAgain = "Run `kubectl xylem register` for the member again, or upgrade the xylem-member chart in the member."

func judgeMemberPolicies(m *Member) ([]Finding, error) {
	if !m.isRegisteredAndRead() {
		return nil, nil
	}
	want, err := shippedMemberPolicies(memberAccountOf(m.Account))
	if err != nil {
		return nil, err
	}
	return judgePolicies(&m.Cluster, want, m.shownName(), prepareAgain)
}

// memberAccountOf returns the account that a member's policies name. If a is an account for an individual
// host, Base removes the host's suffix from its name.
func memberAccountOf(a Account) Account {
	if name, _, cut := strings.Cut(a.Name, "-host-"); cut {
		a.Name = name
	}
	return a
}

// judgePolicies compares a cluster's policies with those of this version. It ignores those of the other
// role, because a host may be a member of another host, and a member may be another host.
func judgePolicies(c *Cluster, want Policies, cluster, toDo string) ([]Finding, error) {
	if !c.Policies.Read || !c.Bindings.Read {
		return nil, nil
	}
	current, err := shippedPolicyNames()
	if err != nil {
		return nil, err
	}
	var found []Finding
	fault := func(level Level, toDo, format string, args ...any) {
		found = append(found, problem(level, fmt.Sprintf(format, args...), toDo))
	}
	there := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	for i := range c.Policies.Items {
		there[c.Policies.Items[i].Name] = &c.Policies.Items[i]
	}
	inForce, off := 0, []Finding(nil)
	for i := range want.Policies {
		w := &want.Policies[i]
		is := there[w.Name]
		if is == nil && w.Name == NamespacesPolicy {
			off = append(off, passed("ValidatingAdmissionPolicy %q is not installed (chart value namespaces.reject). Xylem still enforces spec.namespaces, but the API server does not reject bindings of Pods that a member does not admit", w.Name))
			continue
		}
		inForce++
		if is == nil {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q does not exist, so it is not enforced", w.Name)
			continue
		}
		delete(there, w.Name)
		if differ := differingParts(is, w); len(differ) > 0 {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q differs from this version's in its %s. The policy is from another version, or somebody changed it", w.Name, strings.Join(differ, ", "))
		}
		if bound := bindingsOfPolicy(c.Bindings.Items, w.Name); !slices.ContainsFunc(bound, deniesAllRequests) {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q is not in force: no binding denies all requests that the policy rejects", w.Name)
		}
	}
	if len(found) == 0 {
		found = append(found, passed("%s in force, as shipped in this version", wording.CountNoun(inForce, "policy")))
	}
	found = append(found, off...)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if command.Xylems(there[name]) && !current.Has(name) {
			fault(Warning, fmt.Sprintf("Delete the policy's bindings, and then the policy: kubectl delete validatingadmissionpolicy %s", name), "ValidatingAdmissionPolicy %q has Xylem's label, but is not part of this version: an earlier version may have installed it", name)
		}
	}
	for _, w := range c.Webhooks.Items {
		if cluster == "" && isShippedMutatingPolicy(&w) {
			continue
		}
		fault(Warning, fmt.Sprintf("Delete the object: kubectl delete %s %s", strings.ToLower(w.Kind), w.Name), "%s %q has Xylem's label, but is not part of this version", w.Kind, w.Name)
	}
	return found, nil
}

func bindingsOfPolicy(all []admissionv1.ValidatingAdmissionPolicyBinding, policy string) []*admissionv1.ValidatingAdmissionPolicyBinding {
	var of []*admissionv1.ValidatingAdmissionPolicyBinding
	for i := range all {
		if all[i].Spec.PolicyName == policy {
			of = append(of, &all[i])
		}
	}
	return of
}
