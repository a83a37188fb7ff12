package weigh

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// QuantityShapes locate the quantities in the JSON documents of a scheme. A document may contain its kind at
// the end, so a single pass does not know its type. Shapes therefore follow the document's keys
// through all types of the scheme at once.
type QuantityShapes struct{ root *valueShape }

// valueShape is the set of types that a value in a document may have. It is nil for values that
// contain no quantities.
type valueShape struct {
	quantity bool
	// fields are the shapes of the values by key. others is the shape for all other keys, and is nil
	// unless a type is a map.
	fields map[string]*valueShape
	others *valueShape
}

func (s *valueShape) shapeOfKey(key string) *valueShape {
	if s == nil {
		return nil
	}
	if field, known := s.fields[key]; known {
		return field
	}
	return s.others
}

// compiledShapes contains the QuantityShapes by scheme.
var compiledShapes sync.Map

// QuantityShapesOf returns the QuantityShapes of a scheme. Add no types to the scheme later.
func QuantityShapesOf(scheme *runtime.Scheme) *QuantityShapes {
	if known, ok := compiledShapes.Load(scheme); ok {
		return known.(*QuantityShapes) //nolint:errcheck // nothing else is stored
	}
	c := &shapeCompiler{
		shapes: map[string]*valueShape{}, numbers: map[reflect.Type]int{},
		below: map[reflect.Type]*typeContents{}, contains: map[reflect.Type]bool{},
	}
	for _, t := range scheme.AllKnownTypes() {
		c.kinds = append(c.kinds, t)
	}
	known, _ := compiledShapes.LoadOrStore(scheme, &QuantityShapes{root: c.compileShape(c.kinds)})
	return known.(*QuantityShapes) //nolint:errcheck // nothing else is stored
}

// shapeCompiler compiles sets of types to shapes.
type shapeCompiler struct {
	kinds []reflect.Type
	// shapes contains the shapes by their types' numbers.
	shapes  map[string]*valueShape
	numbers map[reflect.Type]int
	below   map[reflect.Type]*typeContents
	// contains records which types contain quantities.
	contains map[reflect.Type]bool
}

// typeContents lists the types of a type's fields by their JSON keys, and of its map values.
type typeContents struct {
	fields map[string][]reflect.Type
	others []reflect.Type
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	eventType    = reflect.TypeFor[metav1.WatchEvent]()
	// embedType is the type of an event's object, which may be of any kind. Clients do not decode
	// other fields of this type.
	embedType = reflect.TypeFor[runtime.RawExtension]()
)

// compileShape returns the shape of a value that may have any of the types.
func (c *shapeCompiler) compileShape(types []reflect.Type) *valueShape {
	set := map[reflect.Type]bool{}
	for _, t := range types {
		if t = elementType(t); c.containsQuantity(t) {
			set[t] = true
		}
		if t == embedType {
			for _, kind := range c.kinds {
				if c.containsQuantity(kind) {
					set[kind] = true
				}
			}
		}
	}
	delete(set, embedType)
	if len(set) == 0 {
		return nil
	}
	name := c.nameOfSet(set)
	if known, ok := c.shapes[name]; ok {
		return known
	}
	s := &valueShape{quantity: set[quantityType], fields: map[string]*valueShape{}}
	c.shapes[name] = s // now, because types may be recursive
	fields := map[string][]reflect.Type{}
	var others []reflect.Type
	for t := range set {
		for key, of := range c.contentsOf(t).fields {
			fields[key] = append(fields[key], of...)
		}
		others = append(others, c.contentsOf(t).others...)
	}
	s.others = c.compileShape(others)
	for key, of := range fields {
		s.fields[key] = c.compileShape(append(of, others...))
	}
	return s
}

// nameOfSet returns the same string for the same set.
func (c *shapeCompiler) nameOfSet(set map[reflect.Type]bool) string {
	var numbers []int
	for t := range set {
		if c.numbers[t] == 0 {
			c.numbers[t] = len(c.numbers) + 1
		}
		numbers = append(numbers, c.numbers[t])
	}
	slices.Sort(numbers)
	var name strings.Builder
	for _, n := range numbers {
		name.WriteString(strconv.Itoa(n) + " ")
	}
	return name.String()
}

// containsQuantity reports whether a type contains quantities.
func (c *shapeCompiler) containsQuantity(t reflect.Type) bool {
	if known, ok := c.contains[t]; ok {
		return known
	}
	seen := map[reflect.Type]bool{}
	var search func(reflect.Type) bool
	search = func(t reflect.Type) bool {
		t = elementType(t)
		if t == quantityType || t == embedType || c.contains[t] {
			return true
		}
		if seen[t] {
			return false
		}
		seen[t] = true
		for _, of := range c.contentsOf(t).fields {
			if slices.ContainsFunc(of, search) {
				return true
			}
		}
		return slices.ContainsFunc(c.contentsOf(t).others, search)
	}
	c.contains[t] = search(t)
	return c.contains[t]
}

func (c *shapeCompiler) contentsOf(t reflect.Type) *typeContents {
	if known, ok := c.below[t]; ok {
		return known
	}
	i := &typeContents{fields: map[string][]reflect.Type{}}
	c.below[t] = i
	switch {
	case t == quantityType || t == embedType:
	case t.Kind() == reflect.Map:
		i.others = []reflect.Type{t.Elem()}
	case t.Kind() == reflect.Struct:
		i.addStructFields(t)
	}
	return i
}

// addStructFields adds the fields of a struct, by the rules of encoding/json.
func (i *typeContents) addStructFields(t reflect.Type) {
	for n := range t.NumField() {
		f := t.Field(n)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous || elementType(f.Type) == embedType && t != eventType:
		case f.Anonymous && name == "" && elementType(f.Type).Kind() == reflect.Struct:
			i.addStructFields(elementType(f.Type))
		case name == "":
			i.fields[f.Name] = append(i.fields[f.Name], f.Type)
		default:
			i.fields[name] = append(i.fields[name], f.Type)
		}
	}
}

// elementType returns the type without pointers and lists.
func elementType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t
}
