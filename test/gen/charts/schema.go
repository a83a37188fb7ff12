package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// schema returns the chart's values.schema.json with the descriptions from values.yaml. It fails
// if a value is in only one of the two files.
func schema(directory string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(directory, "values.schema.json")) //nolint:gosec // part of the repository
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := json.Unmarshal(content, &root); err != nil {
		return nil, err
	}
	described, err := values(directory)
	if err != nil {
		return nil, err
	}
	var wrong []error
	known := map[string]bool{}
	for _, v := range described {
		property, ok := lookUp(root, v.path)
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s is in values.yaml but not in the schema", v.name()))
			continue
		}
		known[v.name()] = v.leaf
		property["description"] = v.description
	}
	wrong = append(wrong, surplus(root, nil, known)...)
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(root)
	return out.Bytes(), err
}

// lookUp returns the schema for a value.
func lookUp(schema map[string]any, path []string) (map[string]any, bool) {
	for _, key := range path {
		properties, _ := schema["properties"].(map[string]any)
		next, ok := properties[key].(map[string]any)
		if !ok {
			return nil, false
		}
		schema = next
	}
	return schema, true
}

// surplus returns an error for each property that values.yaml lacks. It does not descend below
// known leaves.
func surplus(schema map[string]any, path []string, known map[string]bool) []error {
	properties, _ := schema["properties"].(map[string]any)
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		here := append(append([]string(nil), path...), key)
		name := strings.Join(here, ".")
		if name == "global" { // Helm's own value in every chart
			continue
		}
		inner, ok := properties[key].(map[string]any)
		leaf := known[name]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("the schema for %s is not an object", name))
		case leaf:
		case inner["properties"] != nil:
			wrong = append(wrong, surplus(inner, here, known)...)
		default:
			wrong = append(wrong, fmt.Errorf("%s is in the schema but not in values.yaml", name))
		}
	}
	return wrong
}
