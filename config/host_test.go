package config

import (
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func named(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, obj := range objects {
		names = append(names, obj.GetKind()+" "+obj.GetName())
	}
	return names
}

// Every file in the kustomization is embedded, and each policy has a binding.
func TestHostPoliciesAreComplete(t *testing.T) {
	objects, err := HostPolicies()
	if err != nil {
		t.Fatal(err)
	}
	names := named(objects)
	for _, name := range names {
		if kind, policy := "ValidatingAdmissionPolicy ", name[len("ValidatingAdmissionPolicy "):]; name == kind+policy && !slices.Contains(names, "ValidatingAdmissionPolicyBinding "+policy) {
			t.Errorf("%s lacks a binding: %v", name, names)
		}
	}
	content, err := os.ReadFile("policy/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list kustomization
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		t.Fatal(err)
	}
	if len(names) != 2*len(list.Resources) {
		t.Errorf("the kustomization lists %d files, want two objects for each: %v", len(list.Resources), names)
	}
}

// An API server evaluates a policy once for each parameter, even for Pods that have nothing to do with members. So
// no policy has the registrations as its parameters.
func TestHostPoliciesIgnoreTheNumberOfMembers(t *testing.T) {
	objects, err := HostPolicies()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("steering/admitted-namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	steering, err := parse(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range append(objects, steering...) {
		if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "paramKind", "kind"); kind == "ClusterRegistration" {
			t.Errorf("%s %s is evaluated for each registration", obj.GetKind(), obj.GetName())
		}
	}
}

func TestHostDefinitionAndRoles(t *testing.T) {
	definition, err := HostDefinition()
	if err != nil {
		t.Fatal(err)
	}
	if got := definition.GetName(); got != "clusterregistrations.cluster.xylem.io" {
		t.Errorf("got %q", got)
	}
	roles, err := HostRoles()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ClusterRole manager-role", "Role manager-role", "Role leader-election-role", "ClusterRole metrics-auth-role"} {
		if !slices.Contains(named(roles), want) {
			t.Errorf("%s is missing from %v", want, named(roles))
		}
	}
}
