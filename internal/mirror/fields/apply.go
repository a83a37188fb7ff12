package fields

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// StatusApply returns the body of a server-side apply to the status subresource of a core/v1
// object.
func StatusApply(kind string, root metav1.Object, status map[string]any) *unstructured.Unstructured {
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

// ToMap converts a status to its JSON form without nulls. Unset times are null in JSON, and
// applying null would own the field.
func ToMap[T any](status *T) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		// This fails only for types without a JSON form, and API types have one.
		panic("mirror: " + err.Error())
	}
	pruneNulls(m)
	return m
}

func pruneNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			} else {
				pruneNulls(value)
			}
		}
	case []any:
		for _, value := range v {
			pruneNulls(value)
		}
	}
}

// Clone returns a pointer to a copy of the value, or nil if the pointer is nil.
func Clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
