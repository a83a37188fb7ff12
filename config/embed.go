// Package config embeds the manifests that Xylem's commands apply.
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
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed member/*.yaml member/logs/*.yaml member/exec/*.yaml member/debug/*.yaml member/metrics/*.yaml member/shared/*.yaml
var member embed.FS

// kustomization has the fields of a kustomization.yaml that Member supports. Member rejects all
// other fields.
type kustomization struct {
	Resources []string `json:"resources"`
}

// making is the order in which objects are created in a member: the policies that limit the account
// come before its permissions. Objects are deleted in reverse order, so that the permissions and
// the account, with its tokens, are gone before the policies.
var making = []string{
	"Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding",
}

// The optional parts of a member's manifests, which are subdirectories of config/member.
const (
	PartLogs    = "logs"
	PartExec    = "exec"
	PartDebug   = "debug"
	PartMetrics = "metrics"
	// PartShared allows nothing until Share sets its drivers.
	PartShared = "shared"
)

// Parts lists all optional parts.
var Parts = []string{PartLogs, PartExec, PartDebug, PartMetrics, PartShared}

// Member returns the objects that a member needs before it is registered, with the given optional
// parts, in the order in which to create them. `kubectl apply -k config/member` applies the same
// objects without the optional parts.
func Member(parts ...string) ([]*unstructured.Unstructured, error) {
	all, err := read("member")
	for _, part := range parts {
		objects, partly := read(path.Join("member", part))
		all, err = append(all, objects...), errors.Join(err, partly)
	}
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if !slices.Contains(making, obj.GetKind()) {
			return nil, fmt.Errorf("read the member's manifests: the order does not include %s %s", obj.GetKind(), obj.GetName())
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return slices.Index(making, a.GetKind()) - slices.Index(making, b.GetKind())
	})
	return all, nil
}

// read returns the objects in a kustomization.
func read(dir string) ([]*unstructured.Unstructured, error) {
	content, err := member.ReadFile(path.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the member's manifests: %w", err)
	}
	var list kustomization
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return nil, fmt.Errorf("read the member's manifests: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, name := range list.Resources {
		content, err := member.ReadFile(path.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read the member's manifests: %w", err)
		}
		objects, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("read the member's manifests, %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// memberAccount is the account in config/member, which all hosts can use.
const memberAccount = "xylem"

// MemberFor returns the same objects as Member for the account of one host. The objects for which
// OfAccount returns true have the account's name. All hosts share the other objects.
func MemberFor(account string, parts ...string) ([]*unstructured.Unstructured, error) {
	all, err := Member(parts...)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if !OfAccount(obj) {
			continue
		}
		obj.SetName(account + strings.TrimPrefix(obj.GetName(), memberOwn(obj.GetName())))
		for _, list := range []string{"subjects", "rules"} {
			rename(obj.Object[list], account)
		}
		if obj.GetKind() == "RoleBinding" || obj.GetKind() == "ClusterRoleBinding" && shares(obj) {
			if err := unstructured.SetNestedField(obj.Object, obj.GetName(), "roleRef", "name"); err != nil {
				return nil, fmt.Errorf("name the role of %s: %w", account, err)
			}
		}
	}
	return all, nil
}

// memberOwn returns the part of an object's name that represents the account. The rest, if any, is
// the name of an optional part.
func memberOwn(name string) string {
	const role = "xylem-member"
	if strings.HasPrefix(name, role) {
		return role
	}
	return name
}

// OfAccount reports whether each account in a member has its own version of the object. This includes
// the ClusterRole of the optional part "shared", because a member can share different volumes with each host.
func OfAccount(obj *unstructured.Unstructured) bool {
	return slices.Contains([]string{"ServiceAccount", "Role", "ClusterRoleBinding", "RoleBinding"}, obj.GetKind()) ||
		obj.GetKind() == "ClusterRole" && shares(obj)
}

// shares reports whether an object belongs to the optional part "shared".
func shares(obj *unstructured.Unstructured) bool {
	return strings.HasSuffix(obj.GetName(), "-"+PartShared)
}

// rename renames the account in a binding's subjects, or in a role's rules.
func rename(list any, account string) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		if fields["name"] == memberAccount {
			fields["name"] = account
		}
		names, _ := fields["resourceNames"].([]any)
		for i := range names {
			if names[i] == memberAccount {
				names[i] = account
			}
		}
	}
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
		if len(obj.Object) > 0 { // skip documents that contain only comments
			all = append(all, obj)
		}
	}
}
