package sanitize

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// All makes everything below p that a member wrote fit to be carried up: texts
// plain, lists and maps no longer than anybody needs. What an honest member
// says is not changed by it.
func All[T any](p *T) { AllWithin(p, textLimit) }

// AllWithin is bound with another limit in bytes of each text.
func AllWithin[T any](p *T, limit int) { boundValue(reflect.ValueOf(p).Elem(), limit) }

func boundValue(v reflect.Value, limit int) {
	switch v.Kind() { //nolint:exhaustive // the rest holds no text
	case reflect.String:
		v.SetString(Plain(v.String(), limit))
	case reflect.Pointer:
		if !v.IsNil() {
			boundValue(v.Elem(), limit)
		}
	case reflect.Slice:
		if v.Len() > listLimit {
			v.Set(v.Slice(0, listLimit))
		}
		for i := range v.Len() {
			boundValue(v.Index(i), limit)
		}
	case reflect.Map:
		boundMap(v)
	case reflect.Struct:
		if v.Type().Implements(fields.Marshaler) || reflect.PointerTo(v.Type()).Implements(fields.Marshaler) {
			return // times and quantities
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				boundValue(v.Field(i), limit)
			}
		}
	}
}

// boundMap drops the keys that no API server takes, and those that are too many.
func boundMap(v reflect.Value) {
	if v.IsNil() || v.Type().Key().Kind() != reflect.String {
		return
	}
	kept := 0
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	for _, key := range keys {
		if kept == listLimit || len(validation.IsQualifiedName(key.String())) > 0 {
			v.SetMapIndex(key, reflect.Value{})
			continue
		}
		kept++
	}
}

// Amounts is a copy of what a member says there is of each resource, without
// names that are none and amounts below zero.
func Amounts(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	list = maps.Clone(list)
	All(&list)
	maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool {
		quantity := list[name]
		return quantity.Sign() < 0
	})
	return list
}

// FirstOf each key: API servers take no list with two entries of one.
func FirstOf[T any, K comparable](list []T, key func(T) K) []T {
	seen := map[K]bool{}
	return slices.DeleteFunc(list, func(entry T) bool {
		k := key(entry)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// Capped is what a member reports of each resource, at most what the root asked
// for: the host's quotas count the larger of the two.
func Capped(reported, asked corev1.ResourceList) corev1.ResourceList {
	if reported == nil {
		return nil
	}
	reported = maps.Clone(reported)
	maps.DeleteFunc(reported, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, known := asked[name]
		return !known
	})
	for name, quantity := range reported {
		if most := asked[name]; quantity.Cmp(most) > 0 {
			reported[name] = most.DeepCopy()
		}
	}
	return reported
}
