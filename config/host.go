package config

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

//go:embed crd/bases/*.yaml policy/*.yaml rbac/role.yaml rbac/leader_election_role.yaml rbac/metrics_auth_role.yaml identity/*.yaml
var host embed.FS

// Directories and files with the host's manifests.
const (
	hostDefinition = "crd/bases/cluster.xylem.io_clusterregistrations.yaml"
	hostPolicies   = "policy/"
	hostIdentity   = "identity/node.yaml"
)

// hostRoles are the files with the roles of the manager's account.
var hostRoles = []string{"rbac/role.yaml", "rbac/leader_election_role.yaml", "rbac/metrics_auth_role.yaml"}

// HostDefinition returns the CustomResourceDefinition for ClusterRegistrations.
func HostDefinition() (*unstructured.Unstructured, error) {
	all, err := readHost(hostDefinition)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("read the host's manifests: %s has %d objects, want 1", hostDefinition, len(all))
	}
	return all[0], nil
}

// HostPolicies returns the host's admission policies and their bindings.
func HostPolicies() ([]*unstructured.Unstructured, error) {
	entries, err := host.ReadDir("policy")
	if err != nil {
		return nil, fmt.Errorf("read the host's manifests: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" {
			names = append(names, hostPolicies+entry.Name())
		}
	}
	return readHost(names...)
}

// HostRoles returns the ClusterRoles and Roles of the manager's account. Their names lack the prefix
// that config/base adds.
func HostRoles() ([]*unstructured.Unstructured, error) { return readHost(hostRoles...) }

// NodeIdentity returns the ClusterRole, and its binding, with which the manager acts in the host as the virtual nodes of one
// registration. The manager's ServiceAccount is account in namespace.
func NodeIdentity(registration string, nodes []string, namespace, account string) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, error) {
	all, err := readHost(hostIdentity)
	if err != nil {
		return nil, nil, err
	}
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	for i, into := range []any{&role, &binding} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[i].Object, into); err != nil {
			return nil, nil, fmt.Errorf("read the host's manifests, %s: %w", hostIdentity, err)
		}
	}
	role.Name = "xylem-node-" + registration
	role.Rules[0].ResourceNames = nodes
	binding.Name, binding.RoleRef.Name = role.Name, role.Name
	binding.Subjects[0].Namespace, binding.Subjects[0].Name = namespace, account
	return &role, &binding, nil
}

func readHost(names ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		content, err := host.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the host's manifests: %w", err)
		}
		objects, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("read the host's manifests, %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
