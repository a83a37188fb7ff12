package bundle

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// keeper returns the part of a value to keep. It applies to each element of a list.
type keeper interface{ keep(value any) any }

// whole keeps everything, and removes credentials from strings.
type whole struct{}

func (w whole) keep(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, of := range v {
			if _, text := of.(string); text && sensitive(key) {
				kept[key] = redacted
				continue
			}
			kept[key] = w.keep(of)
		}
		return kept
	case []any:
		return keepEachItem(v, w)
	case string:
		return redactText(v)
	}
	return value
}

// fields keeps the named fields of an object.
type fields map[string]keeper

func (f fields) keep(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, of := range v {
			if k := f[key]; k != nil {
				kept[key] = k.keep(of)
			}
		}
		return kept
	case []any:
		return keepEachItem(v, f)
	}
	return redacted // the API defines no value of this type for the field
}

// present keeps the names of all fields, but only some values. For a volume, this shows the type of
// its source.
type present fields

func (p present) keep(value any) any {
	v, ok := value.(map[string]any)
	if !ok {
		if list, is := value.([]any); is {
			return keepEachItem(list, p)
		}
		return redacted
	}
	kept := map[string]any{}
	for key, of := range v {
		kept[key] = map[string]any{}
		if k := p[key]; k != nil {
			kept[key] = k.keep(of)
		}
	}
	return kept
}

// values keeps all keys of a map of strings, but only the values of keys with a listed prefix.
type values []string

func (prefixes values) keep(value any) any {
	v, ok := value.(map[string]any)
	if !ok {
		return redacted
	}
	kept := map[string]any{}
	for key, of := range v {
		text, isText := of.(string)
		known := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) && !slices.Contains(hiddenKeys, key)
		if kept[key] = redacted; known && isText {
			kept[key] = redactText(text)
		}
	}
	return kept
}

func keepEachItem(list []any, k keeper) []any {
	kept := make([]any, 0, len(list))
	for _, v := range list {
		kept = append(kept, k.keep(v))
	}
	return kept
}

// hiddenKeys are Xylem's own annotations that repeat a user's fields.
var hiddenKeys = []string{v1alpha1.AnnotationPushed}

// annotations keeps the values of annotations that Kubernetes or Xylem writes.
var annotations = values{
	v1alpha1.Prefix, "pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "snapshot.storage.kubernetes.io/",
	v1alpha1.AnnotationMockPV, "deployment.kubernetes.io/revision", "storageclass.kubernetes.io/is-default-class", "metrics.k8s.io/resource-metrics-path",
}

var metadata = fields{
	"name": whole{}, "namespace": whole{}, "uid": whole{}, "labels": whole{}, "annotations": annotations, "creationTimestamp": whole{},
	"deletionTimestamp": whole{}, "deletionGracePeriodSeconds": whole{}, "finalizers": whole{}, "ownerReferences": whole{}, "generation": whole{}, "resourceVersion": whole{},
}

// redactObject returns the part of an object to keep, depending on its kind. If the kind is unknown, that
// is only the metadata.
func redactObject(obj *unstructured.Unstructured) map[string]any {
	f := fields{"apiVersion": whole{}, "kind": whole{}, "metadata": metadata}
	for key, k := range kinds[obj.GetKind()] {
		f[key] = k
	}
	kept, _ := f.keep(obj.Object).(map[string]any)
	return kept
}

// redactedKinds returns the kinds of which redactObject keeps more than the metadata.
func redactedKinds() []string {
	var names []string
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	return names
}
