package fields

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/internal/quantity"
)

// OutOfRange returns a line for each resource quantity, in the struct that p points to, that package
// quantity does not allow. An API server accepts such a quantity. But if a member's response contains
// it, Xylem closes the link to the member. So Xylem must not write it there.
func OutOfRange[T any](p *T, at string) (found []string) {
	quantities(reflect.ValueOf(p).Elem(), at, &found)
	slices.Sort(found) // maps have no order
	return found
}

var amount = reflect.TypeFor[resource.Quantity]()

func quantities(v reflect.Value, at string, found *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			quantities(v.Elem(), at, found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			quantities(v.Index(i), at+label(v.Index(i), i), found)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			quantities(entries.Value(), at+"["+entries.Key().String()+"]", found)
		}
	case reflect.Struct:
		if q, is := v.Interface().(resource.Quantity); is {
			if !quantity.InRange(q) || quantity.Check(q.String()) != nil {
				*found = append(*found, at+": the quantity is out of range")
			}
			return
		}
		for _, f := range measured(v.Type()) {
			quantities(v.FieldByIndex(f.Index), at+"."+f.Name, found)
		}
	default:
	}
}

var fieldsOf sync.Map // reflect.Type -> []JSONField

// measured returns the fields of a struct type that contain quantities.
func measured(t reflect.Type) []JSONField {
	if known, ok := fieldsOf.Load(t); ok {
		if list, ok := known.([]JSONField); ok {
			return list
		}
	}
	list := slices.DeleteFunc(JSONFields(t), func(f JSONField) bool { return !measures(f.typ) })
	fieldsOf.Store(t, list)
	return list
}

// measures reports whether a type contains quantities. No type in a spec contains itself.
func measures(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return measures(t.Elem())
	case reflect.Struct:
		return t == amount || slices.ContainsFunc(JSONFields(t), func(f JSONField) bool { return measures(f.typ) })
	default:
		return false
	}
}
