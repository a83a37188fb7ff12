package doctor

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/config"
)

// shippedDefinition returns the CustomResourceDefinition of ClusterRegistrations.
func shippedDefinition() (*unstructured.Unstructured, error) { return config.HostDefinition() }

// Schema is the difference between the schemas of two definitions: fields that only one of them
// has, and whether a common field differs.
type Schema struct {
	Lacks, Adds []string
	Differs     bool
}

// compareSchemas compares the schemas of a definition with those of the wanted definition.
func compareSchemas(is, want *unstructured.Unstructured) Schema {
	a, b := fieldsOfSchemas(is), fieldsOfSchemas(want)
	var s Schema
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if own, there := a[name]; !there {
			s.Lacks = append(s.Lacks, name)
		} else if own != b[name] {
			s.Differs = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, known := b[name]; !known {
			s.Adds = append(s.Adds, name)
		}
	}
	return s
}

// fieldsOfSchemas returns the fields of a definition's schemas by path, with all properties except
// descriptions.
func fieldsOfSchemas(definition *unstructured.Unstructured) map[string]string {
	fields := map[string]string{}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return fields
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		schema, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if err == nil {
			addSchemaFields(fields, "", schema)
		}
	}
	return fields
}

func addSchemaFields(fields map[string]string, path string, schema map[string]any) {
	own := map[string]any{}
	for key, value := range schema {
		switch key {
		case "description":
		case "properties":
			properties, _ := value.(map[string]any)
			for name, of := range properties {
				if below, ok := of.(map[string]any); ok {
					addSchemaFields(fields, path+"."+name, below)
				}
			}
		case "items", "additionalProperties":
			if below, ok := value.(map[string]any); ok {
				addSchemaFields(fields, path+"[]", below)
				continue
			}
			own[key] = value
		default:
			own[key] = value
		}
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return // this cannot fail for JSON from an API server
	}
	if path == "" {
		path = "."
	}
	fields[path] = string(raw)
}
