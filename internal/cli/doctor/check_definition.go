package doctor

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// CheckDefinition is the name of this check.
const CheckDefinition Check = "Definition"

var definitionCheck = checkOf[*Facts]{name: CheckDefinition, read: readDefinition, judge: judgeDefinition}

func readDefinition(ctx context.Context, r *inspect.Reader, f *Facts) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	const name = "clusterregistrations.cluster.xylem.io"
	f.Host.Definition = inspect.ReadObjectInto[unstructured.Unstructured](ctx, r, "CustomResourceDefinition "+name, client.ObjectKey{Name: name}, crd)
}

// installAgain is the remedy for objects in the host that differ from this version's.
const installAgain = "Run helm upgrade with the chart of the manager's version, or apply config/default of that version."

// judgeDefinition compares the CustomResourceDefinition with this version's.
func judgeDefinition(f *Facts) ([]Finding, error) {
	h := &f.Host
	if !h.Definition.Read {
		return nil, nil
	}
	is := h.Definition.Item
	if is == nil {
		return []Finding{problem(Error, "the cluster does not serve ClusterRegistrations: Xylem is not installed, or the cluster is not the host",
			"Install the xylem chart, or choose another context with --context.")}, nil
	}
	want, err := shippedDefinition()
	if err != nil {
		return nil, err
	}
	s := compareSchemas(is, want)
	switch {
	case !definitionIsEstablished(is):
		return []Finding{problem(Error, fmt.Sprintf("CustomResourceDefinition %q is not Established, so the API server doesn't serve ClusterRegistrations", is.GetName()), "See the CustomResourceDefinition's conditions: kubectl describe crd "+is.GetName())}, nil
	case len(s.Lacks) > 0:
		return []Finding{problem(Error, fmt.Sprintf("CustomResourceDefinition %q is older than this plugin and lacks %s, which the API server therefore drops", is.GetName(), enumerateNamed("field", s.Lacks)),
			installAgain+" If the manager is as old as the CustomResourceDefinition, use the plugin version that matches the manager.")}, nil
	case len(s.Adds) > 0:
		return []Finding{problem(Warning, fmt.Sprintf("CustomResourceDefinition %q is newer than this plugin and has %s, which the plugin does not support", is.GetName(), enumerateNamed("field", s.Adds)),
			"Use the plugin version that matches the manager.")}, nil
	case s.Differs:
		return []Finding{problem(Warning, fmt.Sprintf("CustomResourceDefinition %q has the same fields as in this version, but different rules or defaults. It is from another version, or somebody changed it", is.GetName()), installAgain)}, nil
	}
	return []Finding{passed("the CustomResourceDefinition matches this version")}, nil
}

func definitionIsEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == string(metav1.ConditionTrue)
	})
}
