// Package config embeds the manifests that commands apply.
package config

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed member/*.yaml
var member embed.FS

// kustomization is what is read of a kustomization.yaml. Anything else in it would
// not be followed, and is refused.
type kustomization struct {
	Resources []string `json:"resources"`
}

// Member is what a member needs before it is registered, as `kubectl apply -k
// config/member` applies it, in that order.
func Member() ([]*unstructured.Unstructured, error) {
	const dir = "member"
	content, err := member.ReadFile(path.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read what a member needs: %w", err)
	}
	var list kustomization
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return nil, fmt.Errorf("read what a member needs: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, name := range list.Resources {
		content, err := member.ReadFile(path.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read what a member needs: %w", err)
		}
		objects, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("read what a member needs, %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func parse(content []byte) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var all []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 { // comments alone otherwise
			all = append(all, obj)
		}
	}
}
