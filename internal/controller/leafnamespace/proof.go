package leafnamespace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// proofTimeout bounds one proof, which takes about sixty short lists.
	proofTimeout = 60 * time.Second
	// proofLimit is one more than the number of objects of one kind that Kubernetes creates
	// in a namespace.
	proofLimit = 2
	// fieldManager is the name of this controller in managed fields.
	fieldManager = "xylem-" + string(actor)
)

// holds returns the first object found that keeps the namespace in the member, or why its contents
// are unknown. It returns an empty string if live reads of all resources prove that the namespace
// is empty. It returns an error only if the link ends during the proof. It lists claims and Pods last,
// so that little time is left in which somebody in the member could create one before the namespace is
// deleted.
func (r *reconciler) holds(ctx context.Context, name string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	kinds, err := r.Discovery.ServerPreferredNamespacedResourcesWithContext(bounded)
	if err != nil {
		return "not every API group responds: " + err.Error(), ctx.Err()
	}
	var resources, last []schema.GroupVersionResource
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return "cannot parse an API group: " + err.Error(), nil
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || passing(version.Group, kind.Name) {
				continue
			}
			if resource := version.WithResource(kind.Name); resource.Group == "" && (resource.Resource == "persistentvolumeclaims" || resource.Resource == "pods") {
				last = append(last, resource)
			} else {
				resources = append(resources, resource)
			}
		}
	}
	for _, resource := range slices.Concat(resources, last) {
		if held := r.holdsAny(bounded, resource, name); held != "" {
			return held, ctx.Err()
		}
	}
	return "", ctx.Err()
}

func (r *reconciler) holdsAny(ctx context.Context, resource schema.GroupVersionResource, name string) string {
	list, err := r.Metadata.Resource(resource).Namespace(name).List(ctx, metav1.ListOptions{Limit: proofLimit})
	if err != nil {
		return fmt.Sprintf("%s cannot be listed: %v", resource.GroupResource(), err)
	}
	for i := range list.Items {
		if !madeByKubernetes(resource.Resource, list.Items[i].Name) {
			return fmt.Sprintf("%s %s", resource.GroupResource(), list.Items[i].Name)
		}
	}
	if list.Continue != "" {
		return fmt.Sprintf("more %s than Kubernetes itself creates", resource.GroupResource())
	}
	return ""
}

// applied returns the keys of a namespace's labels that Xylem owns.
func (r *reconciler) applied(ctx context.Context, name string) (sets.Set[string], error) {
	var live corev1.Namespace // managed fields are not in the cache
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &live); err != nil {
		return nil, fmt.Errorf("read the managed fields of namespace %s: %w", name, err)
	}
	keys := sets.New[string]()
	for _, entry := range live.ManagedFields {
		if entry.Manager != fieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("parse the managed fields of namespace %s: %w", name, err)
		}
		keys = keys.Union(labelKeys(fields))
	}
	return keys, nil
}

// logKept logs why an unneeded namespace is kept.
func (r *reconciler) logKept(ctx context.Context, name, held string) {
	ctrl.LoggerFrom(ctx).V(1).Info("keeping an unneeded namespace", "leaf", name, "held", held)
}
