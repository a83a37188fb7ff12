package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMemberIsCompleteAndInOrder(t *testing.T) {
	objects, err := Member()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, obj := range objects {
		kinds = append(kinds, obj.GetKind())
		if obj.GetName() == "" || obj.GetAPIVersion() == "" {
			t.Errorf("the object lacks a name or an API version: %v", obj.Object)
		}
	}
	limited := slices.Index(kinds, "ServiceAccount")
	for i, kind := range kinds {
		limits := kind == "Namespace" || strings.HasPrefix(kind, "ValidatingAdmissionPolicy")
		if limits != (i < limited) {
			t.Errorf("the account must come after the policies that limit it, and before its permissions: %v", kinds)
		}
	}
	if kinds[0] != "Namespace" {
		t.Errorf("the namespace must come first: %v", kinds)
	}
	// Member must return every document in every file in the directory.
	files, err := filepath.Glob("member/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if kind, ok := strings.CutPrefix(line, "kind: "); ok {
				want = append(want, strings.TrimSpace(kind))
			}
		}
	}
	slices.Sort(kinds)
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

// Two hosts in one member share only the namespace, the ClusterRole and the policies.
func TestMemberForNamesTheAccount(t *testing.T) {
	const account = "xylem-host-1"
	shared, err := Member()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := MemberFor(account)
	if err != nil {
		t.Fatal(err)
	}
	for i, obj := range objects {
		if own := obj.GetName() == account; own != OfAccount(obj) || !own && obj.GetName() != shared[i].GetName() {
			t.Errorf("%s %s", obj.GetKind(), obj.GetName())
		}
		text, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, old := range []string{`"name":"xylem"`, `"resourceNames":["xylem"]`} {
			if strings.Contains(string(text), old) {
				t.Errorf("%s %s still has %s", obj.GetKind(), obj.GetName(), old)
			}
		}
		if role := `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"xylem-member"}`; obj.GetKind() == "ClusterRoleBinding" && !strings.Contains(string(text), role) {
			t.Errorf("no binding refers to the ClusterRole: %s", text)
		}
	}
}

// An optional part has a ClusterRole for all accounts, and a binding for each account. Each account has
// its own ClusterRole in the part shared.
func TestOptionalParts(t *testing.T) {
	const account = "xylem-host-1"
	plain, err := MemberFor(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range Parts {
		objects, err := MemberFor(account, part)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) != len(plain)+2 {
			t.Fatalf("part %s has %d objects, want 2", part, len(objects)-len(plain))
		}
		var names []string
		for _, obj := range objects {
			if strings.HasSuffix(obj.GetName(), "-"+part) {
				names = append(names, obj.GetKind()+" "+obj.GetName())
			}
			text, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), `"name":"xylem"`) {
				t.Errorf("%s %s refers to the account for all hosts", obj.GetKind(), obj.GetName())
			}
		}
		role := "xylem-member-" + part
		if part == PartShared {
			role = account + "-" + part
		}
		if want := []string{"ClusterRole " + role, "ClusterRoleBinding " + account + "-" + part}; !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
		binding := objects[slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool {
			return obj.GetName() == account+"-"+part && obj.GetKind() == "ClusterRoleBinding"
		})]
		if got, _, err := unstructured.NestedString(binding.Object, "roleRef", "name"); err != nil || got != role {
			t.Errorf("binding %s refers to role %q (%v), want %q", binding.GetName(), got, err, role)
		}
	}
}

// A rule without resourceNames would apply to all drivers or Secrets.
func TestShare(t *testing.T) {
	for name, tc := range map[string]struct {
		parts, drivers, secrets []string
		want                    map[string][]string
	}{
		"placeholders": {parts: []string{PartShared}, want: map[string][]string{"persistentvolumes": nil, "drivers": {"driver.example.com"}, "secrets": {"NAMESPACE/NAME"}}},
		"drivers":      {parts: []string{PartShared}, drivers: []string{"a", "b"}, want: map[string][]string{"persistentvolumes": nil, "drivers": {"a", "b"}}},
		"drivers and Secrets": {parts: Parts, drivers: []string{"a"}, secrets: []string{"c/d"}, want: map[string][]string{
			"persistentvolumes": nil, "drivers": {"a"}, "secrets": {"c/d"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := MemberFor("xylem-host-1", tc.parts...)
			if err != nil {
				t.Fatal(err)
			}
			if tc.drivers != nil {
				if err := Share(objects, tc.drivers, tc.secrets); err != nil {
					t.Fatal(err)
				}
			}
			i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool {
				return obj.GetKind() == "ClusterRole" && shares(obj)
			})
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &role); err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, rule := range role.Rules {
				got[rule.Resources[0]] = rule.ResourceNames
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	objects, err := MemberFor("xylem-host-1", PartShared)
	if err != nil {
		t.Fatal(err)
	}
	if err := Share(objects, nil, []string{"c/d"}); err == nil {
		t.Error("Share without drivers must fail")
	}
	if objects, err = MemberFor("xylem-host-1"); err != nil {
		t.Fatal(err)
	}
	if err := Share(objects, []string{"a"}, nil); err == nil {
		t.Error("Share without the part must fail")
	}
}
