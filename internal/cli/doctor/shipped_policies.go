package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/config"
)

// Account is one of the manager's ServiceAccounts to which policies apply. A member's policies also
// apply to the accounts for individual hosts. The name of such an account begins with this
// account's name.
type Account struct{ Namespace, Name string }

// NamespacesPolicy rejects the binding of a Pod to a member that does not admit the Pod's
// namespace. The policy is optional.
const NamespacesPolicy = "xylem-namespaces"

// KeysPolicy reserves Xylem's keys. The mutating policy in config/keys has the same name.
const KeysPolicy = "xylem-reserved-keys"

// Accounts in the manifests.
var (
	hostAccount   = Account{"xylem-system", "xylem-controller-manager"}
	memberAccount = Account{"xylem-system", "xylem"}
)

// Policies are admission policies with their bindings.
type Policies struct {
	Policies []admissionv1.ValidatingAdmissionPolicy
	Bindings []admissionv1.ValidatingAdmissionPolicyBinding
}

// shippedHostPolicies returns the policies of a host whose manager has the account.
func shippedHostPolicies(of Account) (Policies, error) {
	objects, err := config.HostPolicies()
	if err != nil {
		return Policies{}, err
	}
	return typedPolicies(objects, hostAccount, of)
}

// shippedMemberPolicies returns the policies of a member that has the account.
func shippedMemberPolicies(of Account) (Policies, error) {
	objects, err := config.Member()
	if err != nil {
		return Policies{}, err
	}
	return typedPolicies(objects, memberAccount, of)
}

// shippedPolicyNames returns the names of the policies of hosts and members.
var shippedPolicyNames = sync.OnceValues(func() (sets.Set[string], error) {
	inHost, err := shippedHostPolicies(hostAccount)
	if err != nil {
		return nil, err
	}
	inMember, err := shippedMemberPolicies(memberAccount)
	names := sets.New[string]()
	for _, policy := range slices.Concat(inHost.Policies, inMember.Policies) {
		names.Insert(policy.Name)
	}
	return names, err
})

// typedPolicies converts the policies among the objects, and replaces the account that the manifests name.
func typedPolicies(objects []*unstructured.Unstructured, from, to Account) (Policies, error) {
	var p Policies
	for _, obj := range objects {
		raw, err := obj.MarshalJSON()
		if err != nil {
			return p, fmt.Errorf("read %s: %w", obj.GetName(), err)
		}
		renamed := map[string]any{}
		if err := json.Unmarshal([]byte(renameAccount(string(raw), from, to)), &renamed); err != nil {
			return p, fmt.Errorf("read %s: %w", obj.GetName(), err)
		}
		switch obj.GetKind() {
		case "ValidatingAdmissionPolicy":
			var policy admissionv1.ValidatingAdmissionPolicy
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(renamed, &policy)
			p.Policies = append(p.Policies, policy)
		case "ValidatingAdmissionPolicyBinding":
			var binding admissionv1.ValidatingAdmissionPolicyBinding
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(renamed, &binding)
			p.Bindings = append(p.Bindings, binding)
		}
		if err != nil {
			return p, fmt.Errorf("read %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return p, nil
}

// renameAccount replaces the account in expressions, as the charts do.
func renameAccount(text string, from, to Account) string {
	const user = "system:serviceaccount:"
	return strings.NewReplacer(
		user+from.Namespace+":"+from.Name, user+to.Namespace+":"+to.Name,
		user+from.Namespace+":", user+to.Namespace+":",
		"'"+from.Namespace+"'", "'"+to.Namespace+"'",
	).Replace(text)
}

// chosen are variables whose values a member's admin can set through the chart.
var chosen = []string{"allowedNames", "deniedNames"}

// differingParts returns the names of the parts in which a policy differs from the shipped one. It
// ignores messages.
func differingParts(is, want *admissionv1.ValidatingAdmissionPolicy) []string {
	a, b := partsOfPolicy(&is.Spec), partsOfPolicy(&want.Spec)
	var differ []string
	for _, name := range []string{partFailure, partConstraints, partConditions, partVariables, partValidations, partParams} {
		if a[name] != b[name] {
			differ = append(differ, name)
		}
	}
	return differ
}

// Parts of a policy that doctor compares.
const (
	partFailure     = "failurePolicy"
	partConstraints = "matchConstraints"
	partConditions  = "matchConditions"
	partVariables   = "variables"
	partValidations = "validations"
	partParams      = "paramKind"
)

// partsOfPolicy returns each part of a policy as text, with the API server's defaults.
func partsOfPolicy(s *admissionv1.ValidatingAdmissionPolicySpec) map[string]string {
	parts := map[string]string{
		partFailure:     string(ptr.Deref(s.FailurePolicy, admissionv1.Fail)),
		partConstraints: matchConstraints(s.MatchConstraints),
		partParams:      jsonText(s.ParamKind),
	}
	var conditions, variables, validations []string
	for _, c := range s.MatchConditions {
		conditions = append(conditions, c.Name+": "+c.Expression)
	}
	for _, v := range s.Variables {
		if !slices.Contains(chosen, v.Name) {
			variables = append(variables, v.Name+": "+v.Expression)
		}
	}
	for _, v := range s.Validations {
		validations = append(validations, v.Expression)
	}
	parts[partConditions], parts[partVariables], parts[partValidations] = jsonText(conditions), jsonText(variables), jsonText(validations)
	return parts
}

func matchConstraints(m *admissionv1.MatchResources) string {
	if m == nil {
		return ""
	}
	m = m.DeepCopy()
	if m.MatchPolicy == nil {
		m.MatchPolicy = ptr.To(admissionv1.Equivalent)
	}
	for _, selector := range []**metav1.LabelSelector{&m.NamespaceSelector, &m.ObjectSelector} {
		if *selector == nil {
			*selector = &metav1.LabelSelector{}
		}
	}
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				rules[i].Scope = ptr.To(admissionv1.AllScopes)
			}
		}
	}
	return jsonText(m)
}

func jsonText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error() // this cannot fail for these types
	}
	return string(raw)
}

// deniesAllRequests reports whether a binding makes the API server deny all requests that its policy rejects.
func deniesAllRequests(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
	return slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) && b.DeletionTimestamp == nil && bindsEverything(b.Spec.MatchResources)
}

// bindsEverything reports whether a binding applies to all resources that its policy matches.
func bindsEverything(m *admissionv1.MatchResources) bool {
	return m == nil || len(m.ResourceRules) == 0 && len(m.ExcludeResourceRules) == 0 && selectsEverything(m.NamespaceSelector) && selectsEverything(m.ObjectSelector)
}

func selectsEverything(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}
