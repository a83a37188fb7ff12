package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

var other = Account{Namespace: "storage", Name: "manager"}

// rendered returns a chart's policies for the account, as Helm renders them. The templates are
// generated, and contain only these actions.
func rendered(t *testing.T, chart string, of Account) map[string]*admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	var content []byte
	for _, file := range []string{"policies.yaml", "admitted-namespaces.yaml"} {
		more, err := os.ReadFile(filepath.Join("..", "..", "..", "charts", chart, "templates", file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		content = append(append(content, "\n---\n"...), more...)
	}
	text := strings.NewReplacer(
		"{{ .Release.Namespace }}", of.Namespace, "{{ .Values.serviceAccount.name }}", of.Name,
		"{{ .Values.namespaces.allow | toJson | squote }}", `'["shop-*"]'`, "{{ .Values.namespaces.deny | toJson | squote }}", `'[]'`,
	).Replace(string(content))
	text = regexp.MustCompile(`(?m)^ *{{-.*}}$`).ReplaceAllString(text, "")
	if strings.Contains(text, "{{") {
		t.Fatalf("the template has an action that this test does not support:\n%s", text[strings.Index(text, "{{"):][:80])
	}
	policies := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	for _, document := range strings.Split(text, "\n---\n") {
		var policy admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if policy.Kind == "ValidatingAdmissionPolicy" {
			policies[policy.Name] = &policy
		}
	}
	return policies
}

// TestChartsInstallThePolicies checks that the charts install the policies that the plugin expects,
// for any namespace and account.
func TestChartsInstallThePolicies(t *testing.T) {
	for chart, expected := range map[string]func(Account) (Policies, error){"xylem": shippedHostPolicies, "xylem-member": shippedMemberPolicies} {
		for _, account := range []Account{other, {"xylem-system", "xylem"}} {
			want, err := expected(account)
			if err != nil {
				t.Fatal(err)
			}
			is := rendered(t, chart, account)
			if len(is) != len(want.Policies) || len(want.Policies) == 0 {
				t.Fatalf("chart %s installs %d policies, want %d", chart, len(is), len(want.Policies))
			}
			for i := range want.Policies {
				w := &want.Policies[i]
				if differ := differingParts(is[w.Name], w); differ != nil {
					t.Errorf("chart %s, %s: policy %q differs in %v", chart, account, w.Name, differ)
				}
			}
		}
	}
}

func TestPoliciesNameTheAccount(t *testing.T) {
	for name, expected := range map[string]func(Account) (Policies, error){"host": shippedHostPolicies, "member": shippedMemberPolicies} {
		p, err := expected(other)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "xylem-system") || !strings.Contains(string(text), "system:serviceaccount:storage:manager") {
			t.Errorf("%s: the policies do not name the account %v", name, other)
		}
		if len(p.Bindings) < len(p.Policies) {
			t.Errorf("%s: got %d bindings, want at least one for each of the %d policies", name, len(p.Bindings), len(p.Policies))
		}
	}
}

func TestDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*admissionv1.ValidatingAdmissionPolicy)
		want   []string
	}{
		"none": {func(*admissionv1.ValidatingAdmissionPolicy) {}, nil},
		"the API server's defaults": {func(p *admissionv1.ValidatingAdmissionPolicy) {
			m := p.Spec.MatchConstraints
			m.NamespaceSelector, m.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
			for i := range m.ResourceRules {
				m.ResourceRules[i].Scope = ptr.To(admissionv1.AllScopes)
			}
		}, nil},
		"another message": {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Message = "no" }, nil},
		"failurePolicy Ignore": {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.FailurePolicy = ptr.To(admissionv1.Ignore) },
			[]string{partFailure}},
		"no resources": {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.MatchConstraints.ResourceRules = nil }, []string{partConstraints}},
		"only one namespace": {func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, []string{partConstraints}},
		"another match condition": {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.MatchConditions[0].Expression = "false" }, []string{partConditions}},
		"a missing variable":      {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Variables = p.Spec.Variables[1:] }, []string{partVariables}},
		"another validation":      {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "true" }, []string{partValidations}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := shippedHostPolicies(hostAccount)
			if err != nil {
				t.Fatal(err)
			}
			// Use the policy that limits the manager's account, because it has all parts.
			i := slices.IndexFunc(want.Policies, func(p admissionv1.ValidatingAdmissionPolicy) bool {
				return len(p.Spec.Variables) > 0 && len(p.Spec.MatchConditions) > 0 && *p.Spec.FailurePolicy == admissionv1.Fail
			})
			is := want.Policies[i].DeepCopy()
			tc.change(is)
			if diff := cmp.Diff(tc.want, differingParts(is, &want.Policies[i])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDenies(t *testing.T) {
	deny := []admissionv1.ValidationAction{admissionv1.Deny}
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		binding admissionv1.ValidatingAdmissionPolicyBinding
		want    bool
	}{
		"denies requests":  {admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: deny}}, true},
		"only warns":       {admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionv1.ValidationAction{admissionv1.Warn}}}, false},
		"is being deleted": {admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: deny}}, false},
		"an empty namespace selector": {admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			ValidationActions: deny, MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}},
		}}, true},
		"only one namespace": {admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			ValidationActions: deny, MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deniesAllRequests(&tc.binding); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
