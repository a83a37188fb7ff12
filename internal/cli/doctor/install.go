package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/check"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/text"
)

// installAgain is the remedy for objects in the host that differ from this version's.
const installAgain = "Run helm upgrade with the chart of the manager's version, or apply config/default of that version."

// definition compares the CustomResourceDefinition with this version's.
func judgeDefinition(h *Host) ([]Finding, error) {
	if !h.Definition.Read {
		return nil, nil
	}
	is := h.Definition.Item
	if is == nil {
		return []Finding{Problem(Error, CheckDefinition, "", "the cluster does not serve ClusterRegistrations: Xylem is not installed, or the cluster is not the host",
			"Install the xylem chart, or choose another context with --context.")}, nil
	}
	want, err := Definition()
	if err != nil {
		return nil, err
	}
	s := SchemaOf(is, want)
	switch {
	case !established(is):
		return []Finding{Problem(Error, CheckDefinition, "", fmt.Sprintf("CustomResourceDefinition %q is not Established, so the API server doesn't serve ClusterRegistrations", is.GetName()), "See the CustomResourceDefinition's conditions: kubectl describe crd "+is.GetName())}, nil
	case len(s.Lacks) > 0:
		return []Finding{Problem(Error, CheckDefinition, "", fmt.Sprintf("CustomResourceDefinition %q is older than this plugin and lacks %s, which the API server therefore drops", is.GetName(), Named("field", s.Lacks)),
			installAgain+" If the manager is as old as the CustomResourceDefinition, use the plugin version that matches the manager.")}, nil
	case len(s.Adds) > 0:
		return []Finding{Problem(Warning, CheckDefinition, "", fmt.Sprintf("CustomResourceDefinition %q is newer than this plugin and has %s, which the plugin does not support", is.GetName(), Named("field", s.Adds)),
			"Use the plugin version that matches the manager.")}, nil
	case s.Differs:
		return []Finding{Problem(Warning, CheckDefinition, "", fmt.Sprintf("CustomResourceDefinition %q has the same fields as in this version, but different rules or defaults. It is from another version, or somebody changed it", is.GetName()), installAgain)}, nil
	}
	return []Finding{Passed(CheckDefinition, "", "the CustomResourceDefinition matches this version")}, nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == string(metav1.ConditionTrue)
	})
}

// manager checks whether a manager is running, and whether one is the leader.
func judgeManager(h *Host) []Finding {
	if !h.Deployment.Read || !h.Leader.Read {
		return nil
	}
	leads := h.Leader.Item != nil && !inspect.LeaseExpired(h.Leader.Item, h.At.Add(h.Clock.Ahead))
	logs := fmt.Sprintf("See `kubectl -n %s get pods` and `kubectl -n %s logs -l control-plane=controller-manager`.", h.Namespace, h.Namespace)
	d := h.Deployment.Item
	switch {
	case !leads && d == nil:
		return []Finding{Problem(Error, CheckManager, "", fmt.Sprintf("no manager is running: namespace %q has no Xylem Deployment", h.Namespace), "Install the xylem chart, or specify the manager's namespace with --xylem-namespace.")}
	case !leads && ptr.Deref(d.Spec.Replicas, 1) == 0:
		return []Finding{Problem(Error, CheckManager, "", fmt.Sprintf("no manager is running: Deployment \"%s/%s\" is scaled to 0", d.Namespace, d.Name), fmt.Sprintf("Scale the Deployment: kubectl -n %s scale deployment %s --replicas=2", d.Namespace, d.Name))}
	case !leads:
		return []Finding{Problem(Error, CheckManager, "", inspect.LeaderAbsence(h.Namespace, h.Leader.Item, h.At.Add(h.Clock.Ahead)), logs)}
	case d == nil, ptr.Deref(d.Spec.Replicas, 1) == 0:
		return []Finding{Passed(CheckManager, "", "a manager is the leader, but it does not run in a Deployment in namespace %q", h.Namespace)}
	}
	if want, has := ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas; has < want || d.Status.UpdatedReplicas < want {
		return []Finding{Problem(Warning, CheckManager, "", fmt.Sprintf("Deployment \"%s/%s\" has %d of %s available, %d up to date", d.Namespace, d.Name, has, text.Count(int(want), "replica"), d.Status.UpdatedReplicas), logs)}
	}
	if limit, need := memoryLimit(d), memoryNeeded(h.Registrations.Items); limit != nil && limit.Cmp(*need) < 0 {
		return []Finding{Problem(Warning, CheckManager, "", fmt.Sprintf("the manager's memory limit is %s, but a restart with the volumes of all members needs about %s, and more with Pods", limit, need),
			fmt.Sprintf("Set the memory limit of container \"manager\" (resources.limits.memory of the chart) to %s or more. See \"Sizing\" in OPERATIONS.md.", need))}
	}
	return []Finding{Passed(CheckManager, "", "the manager has %s available, and one is the leader", text.Count(int(d.Status.AvailableReplicas), "replica"))}
}

// memoryLimit returns the memory limit of the manager's container, or nil if it has none.
func memoryLimit(d *appsv1.Deployment) *resource.Quantity {
	for _, c := range d.Spec.Template.Spec.Containers {
		if limit, limited := c.Resources.Limits[corev1.ResourceMemory]; limited && c.Name == "manager" {
			return &limit
		}
	}
	return nil
}

// What the manager's live heap consists of when it is idle, in bytes. OPERATIONS.md, "Sizing", has the
// measurements and the same formula.
const (
	heapAlone  = 20 << 20
	heapMember = 5 << 19
	heapVolume = 9 << 10
	// restartFactor is how much more memory a restart needs than the idle manager's live heap.
	restartFactor = 3
)

// memoryNeeded returns the memory limit that the manager needs for the volumes of the registrations, without Pods, in
// whole MiB.
func memoryNeeded(registrations []v1alpha1.ClusterRegistration) *resource.Quantity {
	heap := int64(heapAlone)
	for _, r := range registrations {
		v := r.Status.Volumes
		heap += heapMember + heapVolume*(int64(v.Bound)+int64(v.Pending)+int64(v.Deleting)+int64(v.Orphaned))
	}
	return resource.NewQuantity(restartFactor*heap>>20<<20, resource.BinarySI)
}

// rights evaluates an account's permissions.
func judgeRights(r Rights, account, cluster string) []Finding {
	if !r.Read {
		return nil
	}
	var lacks, withheld []string
	for _, a := range r.Lacks {
		if cluster == "" && Chosen(a) {
			withheld = append(withheld, check.Describe(a))
			continue
		}
		lacks = append(lacks, check.Describe(a))
	}
	var found []Finding
	if len(lacks) > 0 {
		toDo := "Install the chart with rbac.create=true, or bind the roles in config/rbac to the account."
		if cluster != "" {
			toDo = "Run `kubectl xylem register` for the member again, or upgrade the xylem-member chart in the member."
		}
		found = append(found, Problem(Error, CheckRights, cluster, fmt.Sprintf("the manager's account %q lacks %s that it needs: %s", account, text.Count(len(lacks), "permission"), First(lacks)), toDo))
	}
	if len(r.Excess) > 0 {
		excess := r.Excess
		if excess[0].Verb == "*" { // the wildcard includes the others
			excess = excess[:1]
		}
		found = append(found, Problem(Warning, CheckRights, cluster, fmt.Sprintf("the manager's account %q has permissions that Xylem never needs: %s. An attacker who has the account's token could use them", account, First(described(excess))),
			"Remove the binding that grants these permissions."))
	}
	if len(found) > 0 {
		return found
	}
	if len(withheld) > 0 {
		return []Finding{Passed(CheckRights, cluster, "the manager's account %q has the permissions that it needs, but can read Secrets and ConfigMaps only in chosen namespaces", account)}
	}
	return []Finding{Passed(CheckRights, cluster, "the manager's account %q has the permissions that it needs, and no dangerous ones", account)}
}

func described(all []authorizationv1.ResourceAttributes) []string {
	var names []string
	for _, a := range all {
		names = append(names, check.Describe(a))
	}
	return names
}

func judgeHostPolicies(h *Host) ([]Finding, error) {
	want, err := HostPolicies(h.Account)
	if err != nil {
		return nil, err
	}
	return judgePolicies(&h.Cluster, want, "", installAgain)
}

// policies compares a cluster's policies with those of this version. It ignores those of the other
// role, because a host may be a member of another host, and a member may be another host.
func judgePolicies(c *Cluster, want Policies, cluster, toDo string) ([]Finding, error) {
	if !c.Policies.Read || !c.Bindings.Read {
		return nil, nil
	}
	current, err := shippedPolicyNames()
	if err != nil {
		return nil, err
	}
	var found []Finding
	fault := func(level Level, toDo, format string, args ...any) {
		found = append(found, Problem(level, CheckPolicies, cluster, fmt.Sprintf(format, args...), toDo))
	}
	there := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	for i := range c.Policies.Items {
		there[c.Policies.Items[i].Name] = &c.Policies.Items[i]
	}
	inForce, off := 0, []Finding(nil)
	for i := range want.Policies {
		w := &want.Policies[i]
		is := there[w.Name]
		if is == nil && w.Name == NamespacesPolicy {
			off = append(off, Passed(CheckPolicies, cluster, "ValidatingAdmissionPolicy %q is not installed (chart value namespaces.reject). Xylem still enforces spec.namespaces, but the API server does not reject bindings of Pods that a member does not admit", w.Name))
			continue
		}
		inForce++
		if is == nil {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q does not exist, so it is not enforced", w.Name)
			continue
		}
		delete(there, w.Name)
		if differ := Differences(is, w); len(differ) > 0 {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q differs from this version's in its %s. The policy is from another version, or somebody changed it", w.Name, strings.Join(differ, ", "))
		}
		if bound := bindingsOf(c.Bindings.Items, w.Name); !slices.ContainsFunc(bound, Denies) {
			fault(Error, toDo, "ValidatingAdmissionPolicy %q is not in force: no binding denies all requests that the policy rejects", w.Name)
		}
	}
	if len(found) == 0 {
		found = append(found, Passed(CheckPolicies, cluster, "%s in force, as shipped in this version", text.Count(inForce, "policy")))
	}
	found = append(found, off...)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if command.Xylems(there[name]) && !current.Has(name) {
			fault(Warning, fmt.Sprintf("Delete the policy's bindings, and then the policy: kubectl delete validatingadmissionpolicy %s", name), "ValidatingAdmissionPolicy %q has Xylem's label, but is not part of this version: an earlier version may have installed it", name)
		}
	}
	for _, w := range c.Webhooks.Items {
		if cluster == "" && mutates(&w) {
			continue
		}
		fault(Warning, fmt.Sprintf("Delete the object: kubectl delete %s %s", strings.ToLower(w.Kind), w.Name), "%s %q has Xylem's label, but is not part of this version", w.Kind, w.Name)
	}
	return found, nil
}

func bindingsOf(all []admissionv1.ValidatingAdmissionPolicyBinding, policy string) []*admissionv1.ValidatingAdmissionPolicyBinding {
	var of []*admissionv1.ValidatingAdmissionPolicyBinding
	for i := range all {
		if all[i].Spec.PolicyName == policy {
			of = append(of, &all[i])
		}
	}
	return of
}
