package doctor

import (
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/check"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// shippedHostRights returns the permissions that the manager's account needs in the host.
func shippedHostRights(of Account) ([]authorizationv1.ResourceAttributes, error) {
	roles, err := config.HostRoles()
	if err != nil {
		return nil, err
	}
	return grantedPermissions(roles, hostAccount, of)
}

// shippedMemberRights returns the permissions that the manager's account needs in a member, without
// the optional parts.
func shippedMemberRights(of Account) ([]authorizationv1.ResourceAttributes, error) {
	objects, err := config.MemberFor(of.Name)
	if err != nil {
		return nil, err
	}
	return grantedPermissions(objects, memberAccount, of)
}

// grantedPermissions returns the permissions of the roles among the objects.
func grantedPermissions(objects []*unstructured.Unstructured, from, to Account) ([]authorizationv1.ResourceAttributes, error) {
	var all []authorizationv1.ResourceAttributes
	for _, obj := range objects {
		if kind := obj.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.Role // a ClusterRole has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		namespace := obj.GetNamespace()
		if namespace == from.Namespace {
			namespace = to.Namespace
		}
		all = append(all, check.PermissionsOf(check.RequiredRules{Namespace: namespace, Rules: role.Rules})...)
	}
	return all, nil
}

// identityRights returns the permissions with which the manager acts as the virtual nodes of registrations with apiServer.
func identityRights(registrations []v1alpha1.ClusterRegistration, virtualNodes []corev1.Node, of Account) ([]authorizationv1.ResourceAttributes, error) {
	var all []authorizationv1.ResourceAttributes
	for i := range registrations {
		if registrations[i].Spec.APIServer == nil {
			continue
		}
		role, _, err := config.NodeIdentity(registrations[i].Name, inspect.NodeNames(&registrations[i], virtualNodes), of.Namespace, of.Name)
		if err != nil {
			return nil, err
		}
		for _, a := range check.PermissionsOf(check.RequiredRules{Rules: role.Rules}) {
			if a.Resource != "secrets" && !slices.Contains(all, a) { // these are needed only if the manager lacks its own
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// isOfNodeIdentity reports whether a permission lets the manager act as a virtual node.
func isOfNodeIdentity(a authorizationv1.ResourceAttributes) bool {
	return strings.HasPrefix(a.Verb, "impersonate")
}

// isChosenByAdmin reports whether an admin can withhold a permission in the host: a chart value limits the
// namespaces whose Secrets and ConfigMaps the manager can read.
func isChosenByAdmin(a authorizationv1.ResourceAttributes) bool {
	return a.Namespace == "" && a.Group == "" && a.Verb == "get" && slices.Contains([]string{"secrets", "configmaps"}, a.Resource)
}

// excessivePermissions returns permissions that would make an account far more powerful than Xylem needs, in
// the host and in members.
func excessivePermissions() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "*", Group: "*", Version: "*", Resource: "*"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "impersonate:arbitrary-node", Group: authenticationv1.GroupName, Resource: "nodes"},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "get", Resource: "nodes", Subresource: "proxy"},
	}
}
