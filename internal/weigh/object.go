package weigh

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Object returns the approximate memory in bytes of an object and everything to which it points.
// Values that it shares with other objects count in full.
func Object(object any) int64 {
	v := reflect.ValueOf(object)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return int64(v.Type().Elem().Size()) + behind(v.Elem()) //nolint:gosec // of a type
	}
	return 0
}

// flat records which types contain no pointers. time.Time and Quantity count as flat, because the
// memory to which they point is shared or negligible.
var flat = func() *sync.Map {
	known := &sync.Map{}
	known.Store(reflect.TypeFor[time.Time](), true)
	known.Store(reflect.TypeFor[resource.Quantity](), true)
	return known
}()

func isFlat(t reflect.Type) bool {
	if is, ok := flat.Load(t); ok {
		return is.(bool) //nolint:errcheck // nothing else is stored
	}
	is := true
	switch t.Kind() { //nolint:exhaustive // the rest are flat
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		is = false
	case reflect.Struct:
		for i := range t.NumField() {
			is = is && isFlat(t.Field(i).Type)
		}
	case reflect.Array:
		is = isFlat(t.Elem())
	}
	flat.Store(t, is)
	return is
}

// behind returns the memory to which a value points.
func behind(v reflect.Value) int64 {
	if isFlat(v.Type()) {
		return 0
	}
	var sum int64
	switch v.Kind() { //nolint:exhaustive // nothing is behind the rest
	case reflect.String:
		sum = int64(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			sum = int64(v.Type().Elem().Size()) + behind(v.Elem()) //nolint:gosec // of a type
		}
	case reflect.Interface:
		if !v.IsNil() {
			sum = behind(v.Elem())
		}
	case reflect.Slice:
		sum = int64(v.Cap()) * int64(v.Type().Elem().Size()) //nolint:gosec // of a type
		for i := 0; i < v.Len() && !isFlat(v.Type().Elem()); i++ {
			sum += behind(v.Index(i))
		}
	case reflect.Map:
		each := v.MapRange()
		for each.Next() {
			sum += entry + int64(v.Type().Key().Size()+v.Type().Elem().Size()) + behind(each.Key()) + behind(each.Value()) //nolint:gosec // of types
		}
	case reflect.Struct:
		for i := range v.NumField() {
			sum += behind(v.Field(i))
		}
	}
	return sum
}
