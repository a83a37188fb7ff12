package weigh

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// sliceGrowth accounts for appending to a list element by element: the old and the new array, and
	// the free space at the end.
	sliceGrowth = 3
	// mapEntryOverhead is the overhead of a map entry in bytes, in addition to its key and value.
	mapEntryOverhead = 64
	// opaqueByteWeight is the weight of each byte in a message whose fields are unknown. An empty string in a
	// list takes two bytes on the wire.
	opaqueByteWeight = sliceGrowth * int64(16) / 2
	// pointerWeight is the weight of a pointer to a scalar.
	pointerWeight = 16
)

// messageCost is the cost of decoding a Go type from protobuf.
type messageCost struct {
	size   int64
	fields []*fieldCost // by number
}

// fieldCost is the cost of each occurrence of a field, in addition to its content.
type fieldCost struct {
	// each is the cost of an occurrence of the field, and byte the cost of each of its bytes.
	each, byte int64
	// message returns the message that the field holds. It is nil for scalars.
	message func() *messageCost
	// wrapped means that the field may contain a document of its own.
	wrapped bool
	// quantity means that the field is the text of a quantity.
	quantity bool
}

func (m *messageCost) fieldByNumber(number protowire.Number) *fieldCost {
	if int64(number) >= int64(len(m.fields)) {
		return nil
	}
	return m.fields[number]
}

// compiledMessages contains the compiled messages by type.
var compiledMessages sync.Map

func messageOfType[T any]() *messageCost { return compiledMessageOf(reflect.TypeFor[T]()) }

func messageOfObject(object runtime.Object) *messageCost {
	return compiledMessageOf(reflect.TypeOf(object).Elem())
}

func compiledMessageOf(t reflect.Type) *messageCost {
	if m, ok := compiledMessages.Load(t); ok {
		return m.(*messageCost) //nolint:errcheck // nothing else is stored
	}
	m, _ := compiledMessages.LoadOrStore(t, compileMessage(t))
	return m.(*messageCost) //nolint:errcheck // nothing else is stored
}

// compileMessage reads a type's field numbers from its struct tags, which match the generated decoders.
func compileMessage(t reflect.Type) *messageCost {
	m := &messageCost{size: int64(t.Size())} //nolint:gosec // of a type
	for i := range t.NumField() {
		tag := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 3 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil || number <= 0 {
			continue
		}
		for len(m.fields) <= number {
			m.fields = append(m.fields, nil)
		}
		m.fields[number] = compileField(t.Field(i).Type, tag[2] == "rep")
	}
	if t == reflect.TypeFor[runtime.RawExtension]() && len(m.fields) > 1 {
		m.fields[1].wrapped = true
	}
	if t == quantityType {
		m.fields = quantityFields
	}
	if len(m.fields) == 0 {
		m.fields = opaqueFields
	}
	return m
}

// quantityFields are the fields of a quantity.
var quantityFields = []*fieldCost{nil, {byte: opaqueByteWeight, quantity: true}}

// opaqueFields are the fields of types that decode themselves from one or two fields, such as times.
var opaqueFields = []*fieldCost{nil, {byte: opaqueByteWeight}, {byte: opaqueByteWeight}, {byte: opaqueByteWeight}}

func compileField(t reflect.Type, repeated bool) *fieldCost {
	size := int64(t.Size()) //nolint:gosec // of a type
	switch t.Kind() {       //nolint:exhaustive // the rest are scalars
	case reflect.Pointer:
		f := compileValueField(t.Elem())
		f.each += max(int64(t.Elem().Size()), pointerWeight) //nolint:gosec // of a type
		return f
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !repeated {
			return &fieldCost{byte: 1}
		}
		if !repeated { // a list type that is a message itself
			return &fieldCost{each: size, byte: opaqueByteWeight}
		}
		f := compileValueField(t.Elem())
		f.each += sliceGrowth * int64(t.Elem().Size()) //nolint:gosec // of a type
		if isScalarType(t.Elem()) {
			f.byte += sliceGrowth * 8 // packed
		}
		return f
	case reflect.Map:
		return &fieldCost{
			each:    sliceGrowth * (mapEntryOverhead + int64(t.Key().Size()) + 2*int64(t.Elem().Size())), //nolint:gosec // of a type
			byte:    1,
			message: func() *messageCost { return mapEntryMessage(t) },
		}
	}
	return compileValueField(t)
}

// compileValueField returns a field that contains a value of the type inline.
func compileValueField(t reflect.Type) *fieldCost {
	switch t.Kind() { //nolint:exhaustive // the rest are scalars
	case reflect.Struct:
		return &fieldCost{message: func() *messageCost { return compiledMessageOf(t) }}
	case reflect.Pointer:
		f := compileValueField(t.Elem())
		f.each += int64(t.Elem().Size()) //nolint:gosec // of a type
		return f
	case reflect.String:
		return &fieldCost{byte: 1}
	case reflect.Slice, reflect.Map, reflect.Interface:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return &fieldCost{byte: 1}
		}
		return &fieldCost{byte: opaqueByteWeight}
	}
	return &fieldCost{}
}

// mapEntryMessage returns the message for one map entry: key and value.
func mapEntryMessage(t reflect.Type) *messageCost {
	if m, ok := compiledMessages.Load(t); ok {
		return m.(*messageCost) //nolint:errcheck // nothing else is stored
	}
	m, _ := compiledMessages.LoadOrStore(t, &messageCost{fields: []*fieldCost{nil, compileValueField(t.Key()), compileValueField(t.Elem())}})
	return m.(*messageCost) //nolint:errcheck // nothing else is stored
}

func isScalarType(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the rest are none
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	}
	return false
}
