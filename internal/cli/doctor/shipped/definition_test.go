package shipped

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/internal/check"
)

// storage returns the properties of spec.storage in a definition.
func storage(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	in := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	of := in["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)["storage"].(map[string]any)
	return of["properties"].(map[string]any)
}

func TestSchemaOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(fields map[string]any)
		want   Schema
	}{
		"the same": {func(map[string]any) {}, Schema{}},
		"older":    {func(f map[string]any) { delete(f, "dataSources") }, Schema{Lacks: []string{".spec.storage.dataSources", ".spec.storage.dataSources[]", ".spec.storage.dataSources[].apiGroup", ".spec.storage.dataSources[].kind"}}},
		"newer":    {func(f map[string]any) { f["shared"] = map[string]any{"type": "object"} }, Schema{Adds: []string{".spec.storage.shared"}}},
		"other words": {func(f map[string]any) {
			f["classes"].(map[string]any)["description"] = "other words"
		}, Schema{}},
		"another limit": {func(f map[string]any) { f["classes"].(map[string]any)["maxItems"] = int64(1) }, Schema{Differs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := Definition()
			if err != nil {
				t.Fatal(err)
			}
			want, err := Definition()
			if err != nil {
				t.Fatal(err)
			}
			tc.change(storage(t, is))
			if diff := cmp.Diff(tc.want, SchemaOf(is, want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The rights that are asked for are those of the manifests, in the manager's namespace.
func TestRights(t *testing.T) {
	host, err := HostRights(other)
	if err != nil {
		t.Fatal(err)
	}
	member, err := MemberRights(other)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range host {
		names["host: "+check.Describe(a)] = true
		if a.Namespace == "xylem-system" {
			t.Errorf("%s", check.Describe(a))
		}
	}
	for _, a := range member {
		names["member: "+check.Describe(a)] = true
	}
	for _, want := range []string{
		"host: patch clusterregistrations/status.cluster.xylem.io", "host: update leases.coordination.k8s.io in storage",
		"host: create leases.coordination.k8s.io in kube-node-lease", "host: delete csidrivers.storage.k8s.io csi.xylem.io",
		"member: create serviceaccounts/token manager in storage", "member: patch persistentvolumes", "member: patch leases.coordination.k8s.io in storage",
	} {
		if !names[want] {
			t.Errorf("nobody asks for %q", want)
		}
	}
}
