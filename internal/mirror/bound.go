package mirror

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/weigh"
)

// MemberValue sanitizes the value that p points to, which a member wrote: it makes all text plain, and
// truncates lists and maps. It does not change what an honest member reports.
func MemberValue[T any](p *T) { MemberValueWithin(p, textLimit) }

// MemberValueWithin is like MemberValue, but with the given limit, in bytes, for each text.
func MemberValueWithin[T any](p *T, limit int) { sanitizeValue(reflect.ValueOf(p).Elem(), limit) }

func sanitizeValue(v reflect.Value, limit int) {
	switch v.Kind() { //nolint:exhaustive // the rest holds no text
	case reflect.String:
		v.SetString(PlainText(v.String(), limit))
	case reflect.Pointer:
		if !v.IsNil() {
			sanitizeValue(v.Elem(), limit)
		}
	case reflect.Slice:
		if v.Len() > listLimit {
			v.Set(v.Slice(0, listLimit))
		}
		for i := range v.Len() {
			sanitizeValue(v.Index(i), limit)
		}
	case reflect.Map:
		boundMapEntries(v)
	case reflect.Struct:
		if v.Type().Implements(fields.MarshalerType) || reflect.PointerTo(v.Type()).Implements(fields.MarshalerType) {
			return // skip times and quantities
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				sanitizeValue(v.Field(i), limit)
			}
		}
	}
}

// boundMapEntries drops keys that API servers reject, and entries above the limit.
func boundMapEntries(v reflect.Value) {
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

// ResourceAmounts returns a copy of a member's resource list without invalid names, negative quantities,
// and quantities that are out of range.
func ResourceAmounts(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	list = maps.Clone(list)
	MemberValue(&list)
	maps.DeleteFunc(list, func(_ corev1.ResourceName, amount resource.Quantity) bool {
		return !weigh.IsInRange(amount) || amount.Sign() < 0
	})
	return list
}

// FirstPerKey returns the first element for each key, because API servers reject lists with duplicate
// keys.
func FirstPerKey[T any, K comparable](list []T, key func(T) K) []T {
	seen := map[K]bool{}
	return slices.DeleteFunc(list, func(entry T) bool {
		k := key(entry)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// CapToRequested limits reported resources to what the root requested, because the host's quotas count
// the larger of the two. It drops quantities that are out of range.
func CapToRequested(reported, asked corev1.ResourceList) corev1.ResourceList {
	if reported == nil {
		return nil
	}
	reported = maps.Clone(reported)
	maps.DeleteFunc(reported, func(name corev1.ResourceName, amount resource.Quantity) bool {
		_, known := asked[name]
		return !known || !weigh.IsInRange(amount)
	})
	for name, amount := range reported {
		if most := asked[name]; amount.Cmp(most) > 0 {
			reported[name] = most.DeepCopy()
		}
	}
	return reported
}
