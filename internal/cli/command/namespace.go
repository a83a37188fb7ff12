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

// FieldOwner of all that the plugin writes.
const FieldOwner = client.FieldOwner("kubectl-xylem")

// Ours reports whether the plugin has made the object, or had a hand in it. A label
// does not show: `kubectl apply -k` gives the same. Pure.
func Ours(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == string(FieldOwner) })
}

// LabelName with its value is on every object that Xylem's manifests and charts make.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelNameValue = "xylem"
)

// Xylems reports whether an object of a name that Xylem uses was created for it, by
// whomever. Pure.
func Xylems(obj client.Object) bool { return obj.GetLabels()[LabelName] == LabelNameValue }

// few objects of each kind are enough to say that a namespace is not empty.
const few = 20

// Holds lists what a namespace holds that neither is Xylem's own there (its account,
// its fence of that host) nor comes and goes with every namespace. It asks for each
// kind that the cluster knows: a namespace takes with it all there is.
func (c *Cluster) Holds(ctx context.Context, namespace, host string) ([]string, error) {
	known, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.Config.Host, err)
	}
	groups, err := discovery.ServerPreferredNamespacedResourcesWithContext(ctx, known)
	if err != nil {
		return nil, fmt.Errorf("look up what kinds of objects there are: %w", err)
	}
	quiet := rest.CopyConfig(c.Config)
	quiet.WarningHandler = rest.NoWarnings{} // that a kind is deprecated is not for who did not ask for it
	reader, err := client.New(quiet, client.Options{Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.Config.Host, err)
	}
	var held []string
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("look up what kinds of objects there are: %w", err)
		}
		for i := range group.APIResources {
			resource := &group.APIResources[i]
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(few)); err != nil {
				return nil, fmt.Errorf("list the %s of namespace %q: %w", resource.Name, namespace, err)
			}
			for j := range list.Items {
				if !passing(resource.Kind, &list.Items[j], host) {
					held = append(held, resource.Kind+" "+list.Items[j].Name)
				}
			}
		}
	}
	return held, nil
}

// passing reports whether an object does not count: it is Xylem's, or the cluster
// makes it in each namespace. Pure.
func passing(kind string, obj client.Object, host string) bool {
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

// rootCA is the ConfigMap that kube-controller-manager puts into each namespace.
const rootCA = "kube-root-ca.crt"
