package weigh

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// WeighObject returns the approximate memory in bytes of an object and everything to which it points.
// Values that it shares with other objects count in full.
func WeighObject(object any) int64 {
	v := reflect.ValueOf(object)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return int64(v.Type().Elem().Size()) + pointedToSize(v.Elem()) //nolint:gosec // of a type
	}
	return 0
}

// typeLayout describes where the values of a type may have pointers.
type typeLayout struct {
	// flat types contain no pointers.
	flat bool
	// fields are the indexes of a struct's fields that are not flat.
	fields []int
}

// typeLayouts caches the layouts by type. time.Time and Quantity count as flat, because the memory to
// which they point is shared or negligible.
var typeLayouts = func() *sync.Map {
	known := &sync.Map{}
	known.Store(reflect.TypeFor[time.Time](), typeLayout{flat: true})
	known.Store(reflect.TypeFor[resource.Quantity](), typeLayout{flat: true})
	return known
}()

func typeLayoutOf(t reflect.Type) typeLayout {
	if l, ok := typeLayouts.Load(t); ok {
		return l.(typeLayout) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	l := typeLayout{flat: true}
	switch t.Kind() { //nolint:exhaustive // the rest are flat
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		l.flat = false
	case reflect.Struct:
		for i := range t.NumField() {
			if !typeLayoutOf(t.Field(i).Type).flat {
				l.flat, l.fields = false, append(l.fields, i)
			}
		}
	case reflect.Array:
		l = typeLayout{flat: typeLayoutOf(t.Elem()).flat}
	}
	typeLayouts.Store(t, l)
	return l
}

// pointedToSize returns the memory to which a value points.
func pointedToSize(v reflect.Value) int64 {
	var sum int64
	switch v.Kind() { //nolint:exhaustive // nothing is behind the rest
	case reflect.String:
		sum = int64(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			sum = int64(v.Type().Elem().Size()) + pointedToSize(v.Elem()) //nolint:gosec // of a type
		}
	case reflect.Interface:
		if !v.IsNil() {
			sum = pointedToSize(v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			return 0
		}
		element := v.Type().Elem()
		sum = int64(v.Cap()) * int64(element.Size()) //nolint:gosec // of a type
		if typeLayoutOf(element).flat {
			return sum
		}
		for i := range v.Len() {
			sum += pointedToSize(v.Index(i))
		}
	case reflect.Map:
		each := v.MapRange()
		for each.Next() {
			sum += mapEntryOverhead + int64(v.Type().Key().Size()+v.Type().Elem().Size()) + pointedToSize(each.Key()) + pointedToSize(each.Value()) //nolint:gosec // of types
		}
	case reflect.Struct:
		for _, i := range typeLayoutOf(v.Type()).fields {
			sum += pointedToSize(v.Field(i))
		}
	}
	return sum
}
