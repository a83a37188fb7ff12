package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a chart value: a leaf in values.yaml, or a mapping with its own comment.
type value struct {
	path        []string
	description string
	node        *yaml.Node
	leaf        bool
}

func (v value) name() string { return strings.Join(v.path, ".") }

// values reads values.yaml. It descends into mappings whose keys have comments. Any other node is
// a single value and must have a comment.
func values(directory string) ([]value, error) {
	content, err := os.ReadFile(filepath.Join(directory, "values.yaml")) //nolint:gosec // part of the repository
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	return descend(document.Content[0], nil)
}

func descend(mapping *yaml.Node, path []string) ([]value, error) {
	var out []value
	for i := 0; i < len(mapping.Content); i += 2 {
		key, node := mapping.Content[i], mapping.Content[i+1]
		v := value{path: append(append([]string(nil), path...), key.Value), description: comment(key), node: node}
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 && node.Content[0].HeadComment != "" {
			inner, err := descend(node, v.path)
			if err != nil {
				return nil, err
			}
			if v.description != "" {
				out = append(out, v)
			}
			out = append(out, inner...)
			continue
		}
		if v.description == "" {
			return nil, fmt.Errorf("values.yaml, line %d: %s lacks a comment that describes it", key.Line, v.name())
		}
		v.leaf = true
		out = append(out, v)
	}
	return out, nil
}

// comment returns the last paragraph of the comment above a key, as one line.
func comment(key *yaml.Node) string {
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	return strings.Join(words, " ")
}

// inline returns the value's default as one line of JSON.
func (v value) inline() (string, error) {
	var decoded any
	if err := v.node.Decode(&decoded); err != nil {
		return "", fmt.Errorf("%s: %w", v.name(), err)
	}
	encoded, err := json.Marshal(decoded)
	return string(encoded), err
}
