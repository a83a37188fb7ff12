package proof

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// proofTimeout bounds one proof, which takes about sixty short lists.
	proofTimeout = 60 * time.Second
	// proofLimit is one more than the number of objects of one kind that Kubernetes creates
	// in a namespace.
	proofLimit = 2
)

// NamespaceProver lists the objects of all kinds in a member, bypassing caches.
type NamespaceProver struct {
	Discovery discovery.DiscoveryInterfaceWithContext
	Metadata  metadata.Interface
	Clock     clock.PassiveClock
}

// NamespaceEmpty is evidence that a namespace contains only the objects that Kubernetes creates in every
// namespace.
type NamespaceEmpty struct{ witness *Witness }

// CoversWrite implements proof.Evidence.
func (e NamespaceEmpty) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if _, namespace := object.(*corev1.Namespace); !namespace || action != DeleteNamespace || e.witness == nil || e.witness.UID != object.GetUID() {
		return NewUnprovenError("the evidence is not for namespace %q", object.GetName())
	}
	return SpendProofs(e.witness)
}

// ProveNamespaceEmpty proves by live lists of all resources that a namespace is empty. Otherwise, held is the first
// object found that keeps the namespace, or explains why its contents are unknown. Empty returns an
// error only if the context ends. It lists claims and Pods last, so that little time is left in which
// somebody in the member could create one before the namespace is deleted.
func (p NamespaceProver) ProveNamespaceEmpty(ctx context.Context, namespace *corev1.Namespace) (e NamespaceEmpty, held string, err error) {
	began := p.Clock.Now()
	bounded, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	resources, held := p.listableResources(bounded)
	for i := 0; held == "" && i < len(resources); i++ {
		held = p.findKeepingObject(bounded, resources[i], namespace.Name)
	}
	if held != "" || ctx.Err() != nil {
		return NamespaceEmpty{}, held, ctx.Err()
	}
	return NamespaceEmpty{NewWitness(p.Clock, began, namespace.UID, "")}, "", nil
}

// listableResources returns the namespaced resources that can be listed, or explains why they are unknown.
func (p NamespaceProver) listableResources(ctx context.Context) (all []schema.GroupVersionResource, unknown string) {
	kinds, err := p.Discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil {
		return nil, "not every API group responds: " + err.Error()
	}
	var last []schema.GroupVersionResource
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, "cannot parse an API group: " + err.Error()
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || isEventResource(version.Group, kind.Name) {
				continue
			}
			if resource := version.WithResource(kind.Name); resource.Group == "" && (resource.Resource == "persistentvolumeclaims" || resource.Resource == "pods") {
				last = append(last, resource)
			} else {
				all = append(all, resource)
			}
		}
	}
	return slices.Concat(all, last), ""
}

// findKeepingObject returns the first object of a resource that keeps the namespace, why the objects are unknown, or
// "".
func (p NamespaceProver) findKeepingObject(ctx context.Context, resource schema.GroupVersionResource, name string) string {
	list, err := p.Metadata.Resource(resource).Namespace(name).List(ctx, metav1.ListOptions{Limit: proofLimit})
	if err != nil {
		return fmt.Sprintf("%s cannot be listed: %v", resource.GroupResource(), err)
	}
	for i := range list.Items {
		if !isCreatedByKubernetes(resource.Resource, list.Items[i].Name) {
			return fmt.Sprintf("%s %s", resource.GroupResource(), list.Items[i].Name)
		}
	}
	if list.Continue != "" {
		return fmt.Sprintf("more %s than Kubernetes itself creates", resource.GroupResource())
	}
	return ""
}

// isCreatedByKubernetes reports whether the object is one that Kubernetes creates in every namespace.
func isCreatedByKubernetes(resource, name string) bool {
	switch resource {
	case "serviceaccounts":
		return name == "default"
	case "configmaps":
		return name == "kube-root-ca.crt"
	}
	return false
}

// isEventResource reports whether a resource is events, which do not keep a namespace from being deleted.
func isEventResource(group, resource string) bool {
	return resource == "events" && (group == "" || group == "events.k8s.io")
}
