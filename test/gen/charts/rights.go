package main

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rights returns the account's permissions, which `manager check installed` checks, as a list of
// {namespace, rules}. It omits rules for non-resource URLs.
func (c chart) rights(objects []map[string]any) ([]byte, error) {
	type key struct{ kind, namespace, name string }
	rules := map[key][]any{}
	for _, object := range objects {
		if kind := object["kind"]; kind == "ClusterRole" || kind == "Role" {
			metadata, _ := object["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			name, _ := metadata["name"].(string)
			rules[key{kind.(string), namespace, name}], _ = object["rules"].([]any)
		}
	}
	var out []map[string]any
	for _, object := range objects {
		if kind := object["kind"]; kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // also has all fields of a ClusterRoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &binding); err != nil {
			return nil, fmt.Errorf("read a binding: %w", err)
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != c.account {
			continue
		}
		role := key{kind: binding.RoleRef.Kind, name: binding.RoleRef.Name}
		if role.kind == "Role" {
			role.namespace = binding.Namespace
		}
		bound, ok := rules[role]
		if !ok {
			return nil, fmt.Errorf("binding %s refers to a role that does not exist: %v", binding.Name, role)
		}
		right := map[string]any{"rules": bound}
		if binding.Namespace != "" {
			right["namespace"] = binding.Namespace
		}
		out = append(out, right)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the account has no bindings")
	}
	var encoded bytes.Buffer
	fmt.Fprintf(&encoded, "# Generated from %s by `make charts`: the permissions that `helm test` checks.\n", c.kustomization)
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(out); err != nil {
		return nil, err
	}
	text := c.parametrize(encoded.String())
	if c.narrowed == nil {
		return []byte(text), nil
	}
	text, err := c.narrowed.leaveOut(text, "  ")
	return []byte(text + c.narrowed.rights()), err
}
