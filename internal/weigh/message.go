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
	// growth accounts for appending to a list element by element: the old and the new array, and
	// the free space at the end.
	growth = 3
	// entry is the overhead of a map entry in bytes, in addition to its key and value.
	entry = 64
	// opaque is the weight of each byte in a message whose fields are unknown. An empty string in a
	// list takes two bytes on the wire.
	opaque = growth * int64(16) / 2
	// pointer is the weight of a pointer to a scalar.
	pointer = 16
)

// message is the cost of decoding a Go type from protobuf.
type message struct {
	size   int64
	fields []*field // by number
}

// field is the cost of each occurrence of a field, in addition to its content.
type field struct {
	// each is the cost of an occurrence of the field, and byte the cost of each of its bytes.
	each, byte int64
	// message returns the message that the field holds. It is nil for scalars.
	message func() *message
	// wrapped means that the field may contain a document of its own.
	wrapped bool
	// quantity means that the field is the text of a quantity.
	quantity bool
}

func (m *message) field(number protowire.Number) *field {
	if int64(number) >= int64(len(m.fields)) {
		return nil
	}
	return m.fields[number]
}

// messages contains the compiled messages by type.
var messages sync.Map

func messageOf[T any]() *message { return compiled(reflect.TypeFor[T]()) }

func messageOfObject(object runtime.Object) *message { return compiled(reflect.TypeOf(object).Elem()) }

func compiled(t reflect.Type) *message {
	if m, ok := messages.Load(t); ok {
		return m.(*message) //nolint:errcheck // nothing else is stored
	}
	m, _ := messages.LoadOrStore(t, compile(t))
	return m.(*message) //nolint:errcheck // nothing else is stored
}

// compile reads a type's field numbers from its struct tags, which match the generated decoders.
func compile(t reflect.Type) *message {
	m := &message{size: int64(t.Size())} //nolint:gosec // of a type
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
		m.fields[number] = fieldOf(t.Field(i).Type, tag[2] == "rep")
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
var quantityFields = []*field{nil, {byte: opaque, quantity: true}}

// opaqueFields are the fields of types that decode themselves from one or two fields, such as times.
var opaqueFields = []*field{nil, {byte: opaque}, {byte: opaque}, {byte: opaque}}

func fieldOf(t reflect.Type, repeated bool) *field {
	size := int64(t.Size()) //nolint:gosec // of a type
	switch t.Kind() {       //nolint:exhaustive // the rest are scalars
	case reflect.Pointer:
		f := valueOf(t.Elem())
		f.each += max(int64(t.Elem().Size()), pointer) //nolint:gosec // of a type
		return f
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !repeated {
			return &field{byte: 1}
		}
		if !repeated { // a list type that is a message itself
			return &field{each: size, byte: opaque}
		}
		f := valueOf(t.Elem())
		f.each += growth * int64(t.Elem().Size()) //nolint:gosec // of a type
		if isScalar(t.Elem()) {
			f.byte += growth * 8 // packed
		}
		return f
	case reflect.Map:
		return &field{
			each:    growth * (entry + int64(t.Key().Size()) + 2*int64(t.Elem().Size())), //nolint:gosec // of a type
			byte:    1,
			message: func() *message { return entryOf(t) },
		}
	}
	return valueOf(t)
}

// valueOf returns a field that contains a value of the type inline.
func valueOf(t reflect.Type) *field {
	switch t.Kind() { //nolint:exhaustive // the rest are scalars
	case reflect.Struct:
		return &field{message: func() *message { return compiled(t) }}
	case reflect.Pointer:
		f := valueOf(t.Elem())
		f.each += int64(t.Elem().Size()) //nolint:gosec // of a type
		return f
	case reflect.String:
		return &field{byte: 1}
	case reflect.Slice, reflect.Map, reflect.Interface:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return &field{byte: 1}
		}
		return &field{byte: opaque}
	}
	return &field{}
}

// entryOf returns the message for one map entry: key and value.
func entryOf(t reflect.Type) *message {
	if m, ok := messages.Load(t); ok {
		return m.(*message) //nolint:errcheck // nothing else is stored
	}
	m, _ := messages.LoadOrStore(t, &message{fields: []*field{nil, valueOf(t.Key()), valueOf(t.Elem())}})
	return m.(*message) //nolint:errcheck // nothing else is stored
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the rest are none
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	}
	return false
}
