package fields

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/internal/weigh"
)

// QuantitiesOutOfRange returns a line for each resource quantity, in the struct that p points to, that package
// quantity does not allow. An API server accepts such a quantity. But if a member's response contains
// it, Xylem closes the link to the member. So Xylem must not write it there.
func QuantitiesOutOfRange[T any](p *T, at string) (found []string) {
	collectOutOfRange(reflect.ValueOf(p).Elem(), at, &found)
	slices.Sort(found) // maps have no order
	return found
}

var quantityType = reflect.TypeFor[resource.Quantity]()

func collectOutOfRange(v reflect.Value, at string, found *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectOutOfRange(v.Elem(), at, found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectOutOfRange(v.Index(i), at+listElementLabel(v.Index(i), i), found)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			collectOutOfRange(entries.Value(), at+"["+entries.Key().String()+"]", found)
		}
	case reflect.Struct:
		if q, is := v.Interface().(resource.Quantity); is {
			if !weigh.IsInRange(q) || weigh.CheckText(q.String()) != nil {
				*found = append(*found, at+": the quantity is out of range")
			}
			return
		}
		for _, f := range quantityFieldsOf(v.Type()) {
			collectOutOfRange(v.FieldByIndex(f.Index), at+"."+f.Name, found)
		}
	default:
	}
}

var quantityFieldsCache sync.Map // reflect.Type -> []JSONField

// quantityFieldsOf returns the fields of a struct type that contain quantities.
func quantityFieldsOf(t reflect.Type) []JSONField {
	if known, ok := quantityFieldsCache.Load(t); ok {
		if list, ok := known.([]JSONField); ok {
			return list
		}
	}
	list := slices.DeleteFunc(JSONFieldsOf(t), func(f JSONField) bool { return !containsQuantity(f.typ) })
	quantityFieldsCache.Store(t, list)
	return list
}

// containsQuantity reports whether a type contains quantities. No type in a spec contains itself.
func containsQuantity(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return containsQuantity(t.Elem())
	case reflect.Struct:
		return t == quantityType || slices.ContainsFunc(JSONFieldsOf(t), func(f JSONField) bool { return containsQuantity(f.typ) })
	default:
		return false
	}
}
