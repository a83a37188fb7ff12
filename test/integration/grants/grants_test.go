package grants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

func TestUnused(t *testing.T) {
	get := controlplane.Request{Verb: "get", Resource: "secrets", Namespace: "a", Name: "x"}
	refused := get
	refused.Unauthorized = true
	for name, tc := range map[string]struct {
		grants   []Grant
		requests controlplane.Requests
		want     []string
	}{
		"nothing": {},
		"used":    {grants: []Grant{{Verb: "get", Resource: "secrets"}}, requests: controlplane.Requests{get}},
		"unused":  {grants: []Grant{{Verb: "list", Resource: "secrets"}}, requests: controlplane.Requests{get}, want: []string{"list secrets"}},
		"a grant for another API group is unused":                 {grants: []Grant{{Verb: "get", Group: "g", Resource: "secrets"}}, requests: controlplane.Requests{get}, want: []string{"get secrets.g"}},
		"a grant for a subresource is unused":                     {grants: []Grant{{Verb: "get", Resource: "secrets/status"}}, requests: controlplane.Requests{get}, want: []string{"get secrets/status"}},
		"a grant in another namespace is unused":                  {grants: []Grant{{Verb: "get", Resource: "secrets", Namespace: "b"}}, requests: controlplane.Requests{get}, want: []string{"get secrets in b"}},
		"a grant for another name is unused":                      {grants: []Grant{{Verb: "get", Resource: "secrets", Name: "y"}}, requests: controlplane.Requests{get}, want: []string{"get secrets y"}},
		"a broad grant is unused if a narrower one is sufficient": {grants: []Grant{{Verb: "get", Resource: "secrets"}, {Verb: "get", Resource: "secrets", Namespace: "a"}}, requests: controlplane.Requests{get}, want: []string{"get secrets"}},
		"a watch also needs the list permission": {grants: []Grant{{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"}, {Verb: "get", Resource: "pods"}},
			requests: controlplane.Requests{{Verb: "watch", Resource: "pods"}}, want: []string{"get pods"}},
		"a rejected request needs no grant": {grants: []Grant{{Verb: "get", Resource: "secrets"}}, requests: controlplane.Requests{refused}, want: []string{"get secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Unused(tc.grants, tc.requests)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"get secrets"}, Refused(controlplane.Requests{get, refused, refused})); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestBroad(t *testing.T) {
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want []string
	}{
		"plain":                  {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}}},
		"a named Secret":         {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		"all Secrets":            {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}, want: []string{"list secrets"}},
		"all verbs":              {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}, want: []string{"* pods"}},
		"all resources":          {rule: rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"list"}}, want: []string{"list *.apps"}},
		"all statuses":           {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*/status"}, Verbs: []string{"patch"}}, want: []string{"patch */status"}},
		"all groups":             {rule: rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}}, want: []string{"get pods.*"}},
		"impersonation":          {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}}, want: []string{"impersonate users"}},
		"tokens of all accounts": {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}, want: []string{"create serviceaccounts/token"}},
		"only its own token":     {rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"self"}, Verbs: []string{"create"}}, want: []string{"create serviceaccounts/token self"}},
		"a role":                 {rule: rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create"}}, want: []string{"create roles.rbac.authorization.k8s.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Broad(expand([]rbacv1.PolicyRule{tc.rule}, ""))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The manifests contain no broad grants except the reviewed ones.
func TestManifestsGrantNothingBroad(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"rbac/role.yaml": nil, "rbac/leader_election_role.yaml": nil, "rbac/metrics_auth_role.yaml": nil, "rbac/metrics_reader_role.yaml": nil,
		// Xylem lists, watches and writes only Secrets with its label, which RBAC cannot express.
		// The policy xylem-account limits the writes.
		"member/role.yaml": {"create secrets", "delete secrets", "list secrets", "patch secrets", "watch secrets"},
	} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(root, "config", file))
			if err != nil {
				t.Fatal(err)
			}
			var all []Grant
			for _, document := range strings.Split(string(content), "\n---\n") {
				var role rbacv1.Role // treat a ClusterRole as a Role without a namespace
				if err := yaml.Unmarshal([]byte(document), &role); err != nil {
					t.Fatal(err)
				}
				all = append(all, expand(role.Rules, role.Namespace)...)
			}
			if len(all) == 0 && file != "rbac/metrics_reader_role.yaml" {
				t.Error("no grants were read")
			}
			if diff := cmp.Diff(want, Broad(all)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
