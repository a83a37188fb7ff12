package fields

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// StatusApplyBody returns the body of a server-side apply to the status subresource of a core/v1
// object.
func StatusApplyBody(kind string, root metav1.Object, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       kind,
		"metadata": map[string]any{
			"namespace": root.GetNamespace(),
			"name":      root.GetName(),
			"uid":       string(root.GetUID()),
		},
		"status": status,
	}}
}

// StatusToMap converts a status to its JSON form without nulls. Unset times are null in JSON, and
// applying null would own the field.
func StatusToMap[T any](status *T) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		// This fails only for types without a JSON form, and API types have one.
		panic("mirror: " + err.Error())
	}
	removeNullValues(m)
	return m
}

func removeNullValues(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			} else {
				removeNullValues(value)
			}
		}
	case []any:
		for _, value := range v {
			removeNullValues(value)
		}
	}
}

// ClonePointer returns a pointer to a copy of the value, or nil if the pointer is nil.
func ClonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
