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
	// Keep copies the field with all its nested fields.
	Keep Decision = "Keep"
	// Translate copies the field with the changes that Why describes.
	Translate Decision = "Translate"
	// Drop omits the field.
	Drop Decision = "Drop"
	// Refuse rejects an object that sets the field.
	Refuse Decision = "Refuse"
)

// Field is the decision on one field of an API type. It applies to all nested fields without
// their own decision.
type Field struct {
	// Path is the field's JSON path. "[]" matches every element of a list, as in volumes[].csi.
	Path     string
	Decision Decision
	// Why is the reason, or how the field is translated. Messages of refusals contain it.
	Why string
}

// Table lists the decisions on all fields of one API type.
type Table struct {
	// Title names the type and the direction.
	Title  string
	Fields []Field

	// PathPrefix is the common prefix of paths in messages, such as "spec".
	PathPrefix string
	// StructType is the type that the paths are relative to.
	StructType reflect.Type
}

// DecisionTree contains the fields that a table drops and refuses, as a tree with the type's structure, so
// that only those branches are visited. It is compiled from the table, and no other code drops or
// refuses fields, so the table and the code cannot disagree.
type DecisionTree []decisionNode

type decisionNode struct {
	index    []int
	name     string
	decision Decision
	reason   string
	nested   DecisionTree
}

// CompileDecisions converts the table's decisions into a DecisionTree.
func (t Table) CompileDecisions() DecisionTree {
	decided := make(map[string]Field, len(t.Fields))
	for _, f := range t.Fields {
		decided[f.Path] = f
	}
	return decisionTreeOf(t.StructType, "", decided)
}

func decisionTreeOf(holder reflect.Type, prefix string, decided map[string]Field) DecisionTree {
	var s DecisionTree
	for _, f := range JSONFieldsOf(holder) {
		path := prefix + f.Name
		if d, ok := decided[path]; ok {
			if d.Decision == Drop || d.Decision == Refuse {
				s = append(s, decisionNode{index: f.Index, name: f.Name, decision: d.Decision, reason: d.Why})
			}
			continue
		}
		if elem, suffix := nestedStructOf(f.typ); elem != nil {
			if below := decisionTreeOf(elem, path+suffix+".", decided); below != nil {
				s = append(s, decisionNode{index: f.Index, name: f.Name, nested: below})
			}
		}
	}
	return s
}

// visitDecidedFields calls decided() for each field of the struct v that the shape drops or refuses, in the
// order in which the type declares them.
func (s DecisionTree) visitDecidedFields(v reflect.Value, at string, decided func(s decisionNode, f reflect.Value, path string)) {
	for _, step := range s {
		f, path := v.FieldByIndex(step.index), at+"."+step.name
		switch {
		case step.decision == Drop || step.decision == Refuse:
			decided(step, f, path)
		case f.Kind() == reflect.Slice:
			for i := range f.Len() {
				step.nested.visitDecidedFields(f.Index(i), path+listElementLabel(f.Index(i), i), decided)
			}
		case f.Kind() == reflect.Pointer:
			if !f.IsNil() {
				step.nested.visitDecidedFields(f.Elem(), path, decided)
			}
		default:
			step.nested.visitDecidedFields(f, path, decided)
		}
	}
}

// ApplyDecisions sets the fields that the shape drops to zero, in the struct that p points to. It
// returns a line for each set field that the shape refuses.
func ApplyDecisions[T any](s DecisionTree, p *T, at string) (refused []string) {
	s.visitDecidedFields(reflect.ValueOf(p).Elem(), at, func(s decisionNode, f reflect.Value, path string) {
		if s.decision == Drop {
			f.SetZero()
		} else if !isUnsetValue(f) {
			refused = append(refused, path+": "+s.reason)
		}
	})
	return refused
}

// DroppedFields returns the paths of the set fields, in the struct that p points to, that the shape
// drops.
func DroppedFields[T any](s DecisionTree, p *T, at string) (paths []string) {
	s.visitDecidedFields(reflect.ValueOf(p).Elem(), at, func(s decisionNode, f reflect.Value, path string) {
		if s.decision == Drop && !isUnsetValue(f) {
			paths = append(paths, path)
		}
	})
	return paths
}

// listElementLabel identifies a list element in messages, by its name if it has one, otherwise by its index.
func listElementLabel(elem reflect.Value, i int) string {
	if name := elem.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && name.Len() > 0 {
		return "[" + name.String() + "]"
	}
	return fmt.Sprintf("[%d]", i)
}

func isUnsetValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// JSONField is a field in the JSON form of a struct, including those of embedded structs.
type JSONField struct {
	Name  string
	Index []int
	typ   reflect.Type
}

// JSONFieldsOf returns the fields of a struct type by their JSON names.
func JSONFieldsOf(t reflect.Type) []JSONField {
	var fields []JSONField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			for _, in := range JSONFieldsOf(f.Type) {
				in.Index = append([]int{i}, in.Index...)
				fields = append(fields, in)
			}
		case f.IsExported():
			fields = append(fields, JSONField{Name: name, Index: []int{i}, typ: f.Type})
		}
	}
	return fields
}

// MarshalerType is the interface of types that define their own JSON form.
var MarshalerType = reflect.TypeFor[json.Marshaler]()

// nestedStructOf returns the struct that a field holds directly, by pointer or in a list. It returns
// nil if the field's value has no JSON fields.
func nestedStructOf(t reflect.Type) (elem reflect.Type, suffix string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			suffix += "[]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(MarshalerType) || reflect.PointerTo(t).Implements(MarshalerType) {
		return nil, ""
	}
	return t, suffix
}

// FindGaps compares a table with its type. It returns the paths without a decision, and the entries
// that match no field or are nested in a field with its own decision.
func (t Table) FindGaps() (undecided, stale []string) {
	seen, decided := map[string]int{}, map[string]int{}
	for _, f := range t.Fields {
		decided[f.Path]++
	}
	var walk func(reflect.Type, string)
	walk = func(holder reflect.Type, prefix string) {
		for _, f := range JSONFieldsOf(holder) {
			path := prefix + f.Name
			if decided[path] > 0 {
				seen[path]++
				continue
			}
			elem, suffix := nestedStructOf(f.typ)
			if elem == nil || !hasNestedDecision(decided, path+suffix+".") {
				undecided = append(undecided, path)
				continue
			}
			walk(elem, path+suffix+".")
		}
	}
	walk(t.StructType, "")
	for _, f := range t.Fields {
		if seen[f.Path] == 0 || decided[f.Path] > 1 {
			stale = append(stale, f.Path)
		}
	}
	return undecided, stale
}

func hasNestedDecision(decided map[string]int, prefix string) bool {
	for path := range decided {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
