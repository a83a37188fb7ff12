package command

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// FieldOwner is the field owner of all of the plugin's writes.
const FieldOwner = client.FieldOwner("kubectl-xylem")

// CreatedByXylem reports whether the plugin created or changed the object, based on its managed fields. The
// label is not evidence, because `kubectl apply -k` sets the same label. Ours is pure.
func CreatedByXylem(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == string(FieldOwner) })
}

// DefaultManagerAccount is the name of the manager's ServiceAccount in the host, unless its Deployment names another one.
const DefaultManagerAccount = "xylem-controller-manager"

// LabelName and its value are on every object from Xylem's manifests and charts.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelNameValue = "xylem"
)

// Xylems reports whether an object with a name that Xylem uses belongs to Xylem. Who created the
// object does not matter. Xylems is pure.
func Xylems(obj client.Object) bool { return obj.GetLabels()[LabelName] == LabelNameValue }

// few is the maximum number of objects of each kind that Holds lists. A few suffice to show that a
// namespace is not empty.
const few = 20

// Holds lists the objects that would be lost if a namespace were deleted. It lists objects of all
// kinds, but skips Xylem's own objects (its account, and the host's fence) and those that every
// namespace has.
func (c *Cluster) Holds(ctx context.Context, namespace, host string) ([]string, error) {
	known, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", c.Config.Host, err)
	}
	groups, err := discovery.ServerPreferredNamespacedResourcesWithContext(ctx, known)
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of objects: %w", err)
	}
	quiet := rest.CopyConfig(c.Config)
	quiet.WarningHandler = rest.NoWarnings{} // hide deprecation warnings, because the user did not request these kinds
	reader, err := client.New(quiet, client.Options{Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", c.Config.Host, err)
	}
	var held []string
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover the kinds of objects: %w", err)
		}
		for i := range group.APIResources {
			resource := &group.APIResources[i]
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(few)); err != nil {
				return nil, fmt.Errorf("list the %s in namespace %q: %w", resource.Name, namespace, err)
			}
			for j := range list.Items {
				if !isSkippedByHolds(resource.Kind, &list.Items[j], host) {
					held = append(held, resource.Kind+" "+list.Items[j].Name)
				}
			}
		}
	}
	return held, nil
}

// isSkippedByHolds reports whether Holds skips an object, because it belongs to Xylem or exists in every
// namespace. It is pure.
func isSkippedByHolds(kind string, obj client.Object, host string) bool {
	switch kind {
	case "Event":
		return true
	case "Lease": // the fence
		return host != "" && obj.GetLabels()[v1alpha1.LabelHost] == host
	case "ServiceAccount":
		return obj.GetName() == "default" || obj.GetName() == MemberAccount || host != "" && obj.GetName() == HostAccount(host)
	case "ConfigMap":
		return obj.GetName() == rootCA
	}
	return false
}

// rootCA is the ConfigMap that kube-controller-manager creates in each namespace.
const rootCA = "kube-root-ca.crt"
