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

// layout describes where the values of a type may have pointers.
type layout struct {
	// flat types contain no pointers.
	flat bool
	// fields are the indexes of a struct's fields that are not flat.
	fields []int
}

// layouts caches the layouts by type. time.Time and Quantity count as flat, because the memory to
// which they point is shared or negligible.
var layouts = func() *sync.Map {
	known := &sync.Map{}
	known.Store(reflect.TypeFor[time.Time](), layout{flat: true})
	known.Store(reflect.TypeFor[resource.Quantity](), layout{flat: true})
	return known
}()

func layoutOf(t reflect.Type) layout {
	if l, ok := layouts.Load(t); ok {
		return l.(layout) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	l := layout{flat: true}
	switch t.Kind() { //nolint:exhaustive // the rest are flat
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		l.flat = false
	case reflect.Struct:
		for i := range t.NumField() {
			if !layoutOf(t.Field(i).Type).flat {
				l.flat, l.fields = false, append(l.fields, i)
			}
		}
	case reflect.Array:
		l = layout{flat: layoutOf(t.Elem()).flat}
	}
	layouts.Store(t, l)
	return l
}

// behind returns the memory to which a value points.
func behind(v reflect.Value) int64 {
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
		if v.IsNil() {
			return 0
		}
		element := v.Type().Elem()
		sum = int64(v.Cap()) * int64(element.Size()) //nolint:gosec // of a type
		if layoutOf(element).flat {
			return sum
		}
		for i := range v.Len() {
			sum += behind(v.Index(i))
		}
	case reflect.Map:
		each := v.MapRange()
		for each.Next() {
			sum += entry + int64(v.Type().Key().Size()+v.Type().Elem().Size()) + behind(each.Key()) + behind(each.Value()) //nolint:gosec // of types
		}
	case reflect.Struct:
		for _, i := range layoutOf(v.Type()).fields {
			sum += behind(v.Field(i))
		}
	}
	return sum
}
