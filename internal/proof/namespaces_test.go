package proof

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// served fakes the two calls that the proof makes. It returns the resources that a member serves,
// and the objects in its namespace.
type served struct {
	discovery.DiscoveryInterfaceWithContext
	metadata.ResourceInterface

	kinds     []*metav1.APIResourceList
	broken    error
	holds     map[string][]string
	forbidden string

	resource string
	listed   *[]string
}

func (s served) ServerPreferredNamespacedResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	return s.kinds, s.broken
}

func (s served) Resource(resource schema.GroupVersionResource) metadata.Getter {
	s.resource = resource.GroupResource().String()
	return s
}

func (s served) Namespace(string) metadata.ResourceInterface { return s }

func (s served) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	*s.listed = append(*s.listed, s.resource)
	if s.resource == s.forbidden {
		return nil, errors.New("forbidden")
	}
	list := &metav1.PartialObjectMetadataList{}
	for _, name := range s.holds[s.resource] {
		if int64(len(list.Items)) == options.Limit {
			list.Continue = "more"
			break
		}
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, nil
}

func TestEmpty(t *testing.T) {
	kinds := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "bindings", Verbs: metav1.Verbs{"create"}},
			{Name: "configmaps", Verbs: metav1.Verbs{"get", "list"}},
			{Name: "events", Verbs: metav1.Verbs{"get", "list"}},
			{Name: "persistentvolumeclaims", Verbs: metav1.Verbs{"get", "list"}},
			{Name: "pods", Verbs: metav1.Verbs{"get", "list"}},
			{Name: "serviceaccounts", Verbs: metav1.Verbs{"get", "list"}},
		}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "events", Verbs: metav1.Verbs{"list"}}, {Name: "widgets", Verbs: metav1.Verbs{"list"}}}},
	}
	all := []string{"configmaps", "serviceaccounts", "events.example.com", "widgets.example.com", "persistentvolumeclaims", "pods"}
	fresh := func(add map[string][]string) map[string][]string {
		holds := map[string][]string{"configmaps": {"kube-root-ca.crt"}, "serviceaccounts": {"default"}, "events": {"one", "two"}}
		for resource, names := range add {
			holds[resource] = append(holds[resource], names...)
		}
		return holds
	}
	for name, tc := range map[string]struct {
		served
		want   string
		listed []string
	}{
		"the namespace is empty": {served{}, "", all},
		"a new namespace contains only the objects that Kubernetes creates in it": {served{holds: fresh(nil)}, "", all},
		"a ConfigMap":                                  {served{holds: fresh(map[string][]string{"configmaps": {"mine"}})}, "configmaps mine", all[:1]},
		"a claim":                                      {served{holds: fresh(map[string][]string{"persistentvolumeclaims": {"data"}})}, "persistentvolumeclaims data", all[:5]},
		"several objects of one kind":                  {served{holds: fresh(map[string][]string{"serviceaccounts": {"x", "y"}})}, "serviceaccounts x", all[:2]},
		"a custom resource":                            {served{holds: fresh(map[string][]string{"widgets.example.com": {"w"}})}, "widgets.example.com w", all[:4]},
		"a custom resource named events":               {served{holds: fresh(map[string][]string{"events.example.com": {"e"}})}, "events.example.com e", all[:3]},
		"a custom resource named default":              {served{holds: fresh(map[string][]string{"widgets.example.com": {"default"}})}, "widgets.example.com default", all[:4]},
		"the permission to list a resource is missing": {served{holds: fresh(nil), forbidden: "widgets.example.com"}, "widgets.example.com cannot be listed: forbidden", all[:4]},
		"an API group is down":                         {served{broken: errors.New("metrics.k8s.io/v1beta1")}, "not every API group responds: metrics.k8s.io/v1beta1", nil},
		"more than one page":                           {served{holds: map[string][]string{"configmaps": {"kube-root-ca.crt", "kube-root-ca.crt", "hidden"}}}, "more configmaps than Kubernetes itself creates", all[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			var listed []string
			tc.kinds, tc.served.listed = kinds, &listed
			shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop-uid"}}
			e, held, err := NamespaceProver{tc.served, tc.served, clock.RealClock{}}.ProveNamespaceEmpty(t.Context(), shop)
			if err != nil || held != tc.want {
				t.Errorf("Empty returned %q, %v; want %q", held, err, tc.want)
			}
			if err := SpendEvidence(e, DeleteNamespace, shop); (err == nil) != (tc.want == "") {
				t.Errorf("the evidence covers the namespace: %v", err)
			}
			if diff := cmp.Diff(tc.listed, listed); diff != "" {
				t.Error(diff)
			}
		})
	}
}
