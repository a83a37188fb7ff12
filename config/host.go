package config

import (
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed crd/bases/*.yaml policy/*.yaml rbac/role.yaml rbac/leader_election_role.yaml rbac/metrics_auth_role.yaml
var host embed.FS

// Directories and files of what the host needs.
const (
	hostDefinition = "crd/bases/cluster.xylem.io_clusterregistrations.yaml"
	hostPolicies   = "policy/"
)

// hostRoles are the roles of the manager's account.
var hostRoles = []string{"rbac/role.yaml", "rbac/leader_election_role.yaml", "rbac/metrics_auth_role.yaml"}

// HostDefinition returns the CustomResourceDefinition of ClusterRegistrations.
func HostDefinition() (*unstructured.Unstructured, error) {
	all, err := readHost(hostDefinition)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("read what the host needs: %s has %d objects, not 1", hostDefinition, len(all))
	}
	return all[0], nil
}

// HostPolicies returns the admission policies of the host, and their bindings.
func HostPolicies() ([]*unstructured.Unstructured, error) {
	entries, err := host.ReadDir("policy")
	if err != nil {
		return nil, fmt.Errorf("read what the host needs: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" {
			names = append(names, hostPolicies+entry.Name())
		}
	}
	return readHost(names...)
}

// HostRoles returns the ClusterRoles and Roles of the manager's account, without the prefix of
// their names.
func HostRoles() ([]*unstructured.Unstructured, error) { return readHost(hostRoles...) }

func readHost(names ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		content, err := host.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read what the host needs: %w", err)
		}
		objects, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("read what the host needs, %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
