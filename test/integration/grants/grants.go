package grants

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
)

// Grant is the permission for one verb on one resource.
type Grant struct {
	Verb, Group, Resource string
	// Namespace limits the grant to a namespace; it is empty for a cluster-wide grant. Name, if set,
	// limits the grant to objects with that name.
	Namespace, Name string
}

func (g Grant) String() string {
	s := g.Verb + " " + g.Resource
	if g.Group != "" {
		s += "." + g.Group
	}
	if g.Name != "" {
		s += " " + g.Name
	}
	if g.Namespace != "" {
		s += " in " + g.Namespace
	}
	return s
}

// covers reports whether the grant allows a request.
func (g Grant) covers(r controlplane.Request) bool {
	return g.Verb == r.Verb && g.Group == r.Group && g.Resource == r.Resource &&
		(g.Namespace == "" || g.Namespace == r.Namespace) && (g.Name == "" || g.Name == r.Name)
}

// narrow returns a number that is greater for grants that allow less.
func (g Grant) narrow() int { return len(g.Namespace) + len(g.Name) }

// To returns the grants of a service account. It omits grants to groups such as
// system:authenticated, because every account belongs to these groups.
func To(ctx context.Context, c client.Reader, namespace, account string) ([]Grant, error) {
	var clusterRoles rbacv1.ClusterRoleList
	var roles rbacv1.RoleList
	var clusterBindings rbacv1.ClusterRoleBindingList
	var bindings rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&clusterRoles, &roles, &clusterBindings, &bindings} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list roles and their bindings: %w", err)
		}
	}
	rules := map[rbacv1.RoleRef]map[string][]rbacv1.PolicyRule{}
	add := func(kind, name, namespace string, r []rbacv1.PolicyRule) {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
		if rules[ref] == nil {
			rules[ref] = map[string][]rbacv1.PolicyRule{}
		}
		rules[ref][namespace] = r
	}
	for _, r := range clusterRoles.Items {
		add("ClusterRole", r.Name, "", r.Rules)
	}
	for _, r := range roles.Items {
		add("Role", r.Name, r.Namespace, r.Rules)
	}
	ours := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace && s.Name == account
		})
	}
	var all []Grant
	for _, b := range clusterBindings.Items {
		if ours(b.Subjects) {
			all = append(all, expand(rules[b.RoleRef][""], "")...)
		}
	}
	for _, b := range bindings.Items {
		of := b.Namespace
		if b.RoleRef.Kind == "ClusterRole" {
			of = ""
		}
		if ours(b.Subjects) {
			all = append(all, expand(rules[b.RoleRef][of], b.Namespace)...)
		}
	}
	return all, nil
}

// expand returns a grant for each combination that the rules allow.
func expand(rules []rbacv1.PolicyRule, namespace string) []Grant {
	var all []Grant
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, Grant{verb, group, resource, namespace, name})
					}
				}
			}
		}
	}
	return all
}

// Of splits grants into those for some API groups and all others.
func Of(grants []Grant, groups ...string) (in, out []Grant) {
	for _, g := range grants {
		if slices.Contains(groups, g.Group) {
			in = append(in, g)
		} else {
			out = append(out, g)
		}
	}
	return in, out
}

// Unused returns the grants that no request needed, sorted. If several grants allow a request, the
// request needs the narrowest one. A watch also needs the list permission, because clients send a
// list request first to API servers that do not stream lists (WatchList).
func Unused(grants []Grant, requests controlplane.Requests) []string {
	sorted := slices.Clone(grants)
	slices.SortStableFunc(sorted, func(a, b Grant) int { return cmp.Compare(b.narrow(), a.narrow()) })
	used := map[Grant]bool{}
	seen := map[controlplane.Request]bool{}
	for _, r := range requests {
		key := controlplane.Request{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
		if r.Unauthorized || seen[key] {
			continue
		}
		seen[key] = true
		if i := slices.IndexFunc(sorted, func(g Grant) bool { return g.covers(r) }); i >= 0 {
			used[sorted[i]] = true
			if list := sorted[i]; r.Verb == "watch" {
				list.Verb = "list"
				used[list] = true
			}
		}
	}
	var unused []string
	for _, g := range grants {
		if !used[g] {
			unused = append(unused, g.String())
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}

// Refused returns the kinds of requests that RBAC denied, sorted.
func Refused(requests controlplane.Requests) []string {
	var refused []string
	for _, r := range requests {
		if r.Unauthorized {
			refused = append(refused, Grant{Verb: r.Verb, Group: r.Group, Resource: r.Resource}.String())
		}
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// Broad returns the grants that none of Xylem's accounts may have: wildcards, and permissions that
// an account could use to grant itself more permissions.
func Broad(grants []Grant) []string {
	var broad []string
	for _, g := range grants {
		switch {
		case g.Verb == rbacv1.VerbAll, g.Group == rbacv1.APIGroupAll, strings.Contains(g.Resource, rbacv1.ResourceAll),
			slices.Contains([]string{"escalate", "bind", "impersonate", "deletecollection"}, g.Verb),
			// An account may request its own next token, by name.
			g.Resource == "serviceaccounts/token" && (g.Namespace == "" || g.Name == ""),
			slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy"}, g.Resource),
			g.Group == rbacv1.GroupName && g.Verb != "list",
			// Outside the manager's namespace, an account may read Secrets only by name.
			g.Resource == "secrets" && g.Namespace == "" && g.Verb != "get":
			broad = append(broad, g.String())
		}
	}
	slices.Sort(broad)
	return slices.Compact(broad)
}
