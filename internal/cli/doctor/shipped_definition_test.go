package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/internal/check"
)

// in returns the map at a path in an object, not a copy.
func in(of map[string]any, path ...string) map[string]any {
	for _, name := range path {
		of, _ = of[name].(map[string]any)
	}
	return of
}

// storage returns the properties of spec.storage in a definition.
func storage(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, _ := in(crd.Object, "spec")["versions"].([]any)
	version, _ := versions[0].(map[string]any)
	return in(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "storage", "properties")
}

func TestSchemaOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(fields map[string]any)
		want   Schema
	}{
		"identical":           {func(map[string]any) {}, Schema{}},
		"an older definition": {func(f map[string]any) { delete(f, "dataSources") }, Schema{Lacks: []string{".spec.storage.dataSources", ".spec.storage.dataSources[]", ".spec.storage.dataSources[].apiGroup", ".spec.storage.dataSources[].kind"}}},
		"a newer definition":  {func(f map[string]any) { f["later"] = map[string]any{"type": "object"} }, Schema{Adds: []string{".spec.storage.later"}}},
		"another description": {func(f map[string]any) {
			in(f, "classes")["description"] = "other words"
		}, Schema{}},
		"another limit": {func(f map[string]any) { in(f, "classes")["maxItems"] = int64(1) }, Schema{Differs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := shippedDefinition()
			if err != nil {
				t.Fatal(err)
			}
			want, err := shippedDefinition()
			if err != nil {
				t.Fatal(err)
			}
			tc.change(storage(t, is))
			if diff := cmp.Diff(tc.want, compareSchemas(is, want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRights checks that HostRights and MemberRights return the manifests' permissions, in the
// manager's namespace.
func TestRights(t *testing.T) {
	host, err := shippedHostRights(other)
	if err != nil {
		t.Fatal(err)
	}
	member, err := shippedMemberRights(other)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range host {
		names["host: "+check.DescribePermission(a)] = true
		if a.Namespace == "xylem-system" {
			t.Errorf("%s", check.DescribePermission(a))
		}
	}
	for _, a := range member {
		names["member: "+check.DescribePermission(a)] = true
	}
	for _, want := range []string{
		"host: patch clusterregistrations/status.cluster.xylem.io", "host: update leases.coordination.k8s.io in storage",
		"host: create leases.coordination.k8s.io in kube-node-lease", "host: delete csidrivers.storage.k8s.io csi.xylem.io",
		"member: create serviceaccounts/token manager in storage", "member: patch persistentvolumes", "member: patch leases.coordination.k8s.io in storage",
	} {
		if !names[want] {
			t.Errorf("missing permission %q", want)
		}
	}
}
