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
	"slices"

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

// making is the order in which to make what a member needs: what limits the account
// stands before it has a right. Removed is it the other way round: the rights and the
// account, with its tokens, go before the limits.
var making = []string{
	"Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding",
}

// Member is what a member needs before it is registered, as `kubectl apply -k
// config/member` applies it, in the order in which to make it.
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
	for _, obj := range all {
		if !slices.Contains(making, obj.GetKind()) {
			return nil, fmt.Errorf("read what a member needs: nothing says when to make %s %s", obj.GetKind(), obj.GetName())
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return slices.Index(making, a.GetKind()) - slices.Index(making, b.GetKind())
	})
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
