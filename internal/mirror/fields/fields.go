package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decision is what translation does with a field.
type Decision string

const (
	// Keep carries the field, and all that is in it, as it is.
	Keep Decision = "Keep"
	// Translate carries the field changed; the reason says how.
	Translate Decision = "Translate"
	// Drop leaves the field out.
	Drop Decision = "Drop"
	// Refuse does not translate an object in which the field is set.
	Refuse Decision = "Refuse"
)

// Field is the decision on one field of an API type, and on all fields in it
// that have no decision of their own.
type Field struct {
	// Path is the field's JSON path, "[]" standing for every element of a list:
	// volumes[].csi.
	Path     string
	Decision Decision
	// Why, or how: it stands in the message of a refusal.
	Why string
}

// Table is the decisions on all fields of one API type.
type Table struct {
	// Title reports which type, and in which direction.
	Title  string
	Fields []Field

	// Root is what is common to the paths in messages, such as "spec".
	Root string
	// Holder is the type that the paths start from.
	Holder reflect.Type
}

// Shape is what a table drops and refuses, arranged like the type itself, so
// that only those branches are visited. It is made from the table, and nothing
// else drops or refuses: the table cannot say one thing and the code another.
type Shape []step

type step struct {
	index    []int
	name     string
	decision Decision
	reason   string
	below    Shape
}

// Compile arranges the table's decisions like its type.
func (t Table) Compile() Shape {
	decided := make(map[string]Field, len(t.Fields))
	for _, f := range t.Fields {
		decided[f.Path] = f
	}
	return shapeOf(t.Holder, "", decided)
}

func shapeOf(holder reflect.Type, prefix string, decided map[string]Field) Shape {
	var s Shape
	for _, f := range JSONFields(holder) {
		path := prefix + f.Name
		if d, ok := decided[path]; ok {
			if d.Decision == Drop || d.Decision == Refuse {
				s = append(s, step{index: f.Index, name: f.Name, decision: d.Decision, reason: d.Why})
			}
			continue
		}
		if elem, suffix := element(f.typ); elem != nil {
			if below := shapeOf(elem, path+suffix+".", decided); below != nil {
				s = append(s, step{index: f.Index, name: f.Name, below: below})
			}
		}
	}
	return s
}

// walk calls decided for each field of v, a struct, that the shape drops or refuses, in the
// order of the type.
func (s Shape) walk(v reflect.Value, at string, decided func(s step, f reflect.Value, path string)) {
	for _, step := range s {
		f, path := v.FieldByIndex(step.index), at+"."+step.name
		switch {
		case step.decision == Drop || step.decision == Refuse:
			decided(step, f, path)
		case f.Kind() == reflect.Slice:
			for i := range f.Len() {
				step.below.walk(f.Index(i), path+label(f.Index(i), i), decided)
			}
		case f.Kind() == reflect.Pointer:
			if !f.IsNil() {
				step.below.walk(f.Elem(), path, decided)
			}
		default:
			step.below.walk(f, path, decided)
		}
	}
}

// Shaped zeroes what the shape drops in the struct that p points to, and says what it
// refuses: one line for each field that is set.
func Shaped[T any](s Shape, p *T, at string) (refused []string) {
	s.walk(reflect.ValueOf(p).Elem(), at, func(s step, f reflect.Value, path string) {
		if s.decision == Drop {
			f.SetZero()
		} else if !unset(f) {
			refused = append(refused, path+": "+s.reason)
		}
	})
	return refused
}

// Dropped are the paths of the fields that are set in the struct that p points to, and that
// the shape drops.
func Dropped[T any](s Shape, p *T, at string) (paths []string) {
	s.walk(reflect.ValueOf(p).Elem(), at, func(s step, f reflect.Value, path string) {
		if s.decision == Drop && !unset(f) {
			paths = append(paths, path)
		}
	})
	return paths
}

// label distinguishes list elements in messages: by name, if they have one.
func label(elem reflect.Value, i int) string {
	if name := elem.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && name.Len() > 0 {
		return "[" + name.String() + "]"
	}
	return fmt.Sprintf("[%d]", i)
}

func unset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// JSONField is a field as JSON has it, those of embedded structs included.
type JSONField struct {
	Name  string
	Index []int
	typ   reflect.Type
}

// JSONFields of a struct type, by their JSON names.
func JSONFields(t reflect.Type) []JSONField {
	var fields []JSONField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			for _, in := range JSONFields(f.Type) {
				in.Index = append([]int{i}, in.Index...)
				fields = append(fields, in)
			}
		case f.IsExported():
			fields = append(fields, JSONField{Name: name, Index: []int{i}, typ: f.Type})
		}
	}
	return fields
}

// Marshaler is the type of values that write themselves as JSON.
var Marshaler = reflect.TypeFor[json.Marshaler]()

// element is the struct that a field holds, directly, by pointer or in a list;
// nil if it holds something that has no JSON fields of its own.
func element(t reflect.Type) (elem reflect.Type, suffix string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			suffix += "[]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(Marshaler) || reflect.PointerTo(t).Implements(Marshaler) {
		return nil, ""
	}
	return t, suffix
}

// Gaps compares a table with its type: the paths that nobody decided on, and
// the entries that represent no field (a decision below another one, too).
func (t Table) Gaps() (undecided, stale []string) {
	seen, decided := map[string]int{}, map[string]int{}
	for _, f := range t.Fields {
		decided[f.Path]++
	}
	var walk func(reflect.Type, string)
	walk = func(holder reflect.Type, prefix string) {
		for _, f := range JSONFields(holder) {
			path := prefix + f.Name
			if decided[path] > 0 {
				seen[path]++
				continue
			}
			elem, suffix := element(f.typ)
			if elem == nil || !anyBelow(decided, path+suffix+".") {
				undecided = append(undecided, path)
				continue
			}
			walk(elem, path+suffix+".")
		}
	}
	walk(t.Holder, "")
	for _, f := range t.Fields {
		if seen[f.Path] == 0 || decided[f.Path] > 1 {
			stale = append(stale, f.Path)
		}
	}
	return undecided, stale
}

func anyBelow(decided map[string]int, prefix string) bool {
	for path := range decided {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
