package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

var now = time.Date(2026, 11, 25, 15, 0, 0, 0, time.UTC)

func lease(name string, renewed time.Duration) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "xylem-system", Name: name}}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To("manager-1"), ptr.To(int32(15))
	l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-renewed)}
	return l
}

func read[T any](item T) inspect.Object[T] { return inspect.Object[T]{Item: &item, Read: true} }

func items[T any](all ...T) inspect.Objects[T] { return inspect.Objects[T]{Items: all, Read: true} }

func metadata(name string, labels map[string]string, finalizers ...string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Finalizers: finalizers}}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// healthy returns the facts of a healthy installation with one member, all read successfully.
func healthy(t *testing.T) *Facts {
	t.Helper()
	account := Account{Namespace: "xylem-system", Name: "xylem-controller-manager"}
	policies, err := shippedHostPolicies(account)
	if err != nil {
		t.Fatal(err)
	}
	inMember, err := shippedMemberPolicies(Account{Namespace: "xylem-system", Name: "xylem"})
	if err != nil {
		t.Fatal(err)
	}
	definition, err := shippedDefinition()
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(definition.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	r := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	r.Spec.KubeconfigSecretRef.Name = "a-kubeconfig"
	r.Status.ClusterID = "id-a"
	r.Status.Conditions = []metav1.Condition{
		condition(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected, ""), condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, ""),
	}
	r.Status.TokenExpires = &metav1.Time{Time: now.Add(48 * time.Hour)}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", Labels: map[string]string{v1alpha1.LabelVirtualNode: "true"}}}
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "xylem-system", Name: "xylem-controller-manager", Labels: map[string]string{"app.kubernetes.io/version": "v1.2.0"}}}
	d.Spec.Replicas, d.Status.AvailableReplicas, d.Status.UpdatedReplicas = ptr.To(int32(2)), 2, 2
	clock := inspect.Clock{Known: true, Precision: time.Second}
	return &Facts{
		Version: "v1.2.0",
		Host: HostFacts{
			Cluster: Cluster{
				ID: "host-1", Version: "v1.36.3", At: now, Clock: clock, Account: account, Rights: Rights{Read: true},
				Snapshots:   read(true),
				policyFacts: policyFacts{Policies: items(policies.Policies...), Bindings: items(policies.Bindings...), Webhooks: items[metav1.PartialObjectMetadata]()},
			},
			Mutating: read(true), Namespace: "xylem-system", Definition: read(*definition),
			managerFacts: managerFacts{Deployment: read(d), Leader: read(*lease(v1alpha1.LeaderLease, time.Second))},
			driverFacts: driverFacts{
				Driver:   read(storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true), AttachRequired: ptr.To(false), PreventPodSchedulingIfMissing: ptr.To(true)}}),
				Promises: read(storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(false), AttachRequired: ptr.To(false)}}),
				CSINodes: items(csiNode("kosmos-a"), csiNode("kosmos-b")),
			},
			Registrations: items(r), Nodes: items(node), Paths: map[string]nodePath{"kosmos-a": {Code: 200}},
			DaemonSets: items[appsv1.DaemonSet](), Unbound: items[unboundSnapshot](),
			controlPlaneFacts: controlPlaneFacts{Control: items[corev1.Pod](), FeatureGates: read(map[string]bool{"VolumeAttributesClass": true})},
			leftoverFacts: leftoverFacts{
				Heartbeats: items(*lease("kosmos-a", 0)), Volumes: items(metadata("pvc-1", map[string]string{v1alpha1.LabelClusterID: "id-a"}, v1alpha1.FinalizerLeafVolume)),
				Secrets: items(metadata("a-kubeconfig", nil)), Capacities: items[storagev1.CSIStorageCapacity](), Classes: items[storagev1.StorageClass](),
			},
		},
		Members: []Member{{
			Cluster: Cluster{
				ID: "id-a", Version: "v1.36.3", At: now, Clock: clock, Account: Account{Namespace: "xylem-system", Name: "xylem-host-host-1"},
				Rights: Rights{Read: true}, Snapshots: read(true),
				policyFacts: policyFacts{Policies: items(inMember.Policies...), Bindings: items(inMember.Bindings...)},
			},
			Registration: "a", Recorded: "id-a", Own: true, Fence: read(*lease("host-1", time.Second)),
		}},
	}
}

// firstVersion returns the first version of a definition. Changes to it affect the definition.
func firstVersion(definition *unstructured.Unstructured) map[string]any {
	spec, _ := definition.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	version, _ := versions[0].(map[string]any)
	return version
}

// setMemoryLimit sets the memory limit of the manager's container.
func setMemoryLimit(h *HostFacts, memory string) {
	h.Deployment.Item.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "manager", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}},
	}}
}

// problemsIn returns all findings that are not OK, as "level check cluster".
func problemsIn(c *Checkup) []string {
	var all []string
	for _, f := range c.Findings {
		if f.Level != OK {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Level, f.Check, f.Cluster)))
		}
	}
	return all
}

// csiNode returns the CSINode of a virtual node.
func csiNode(name string) storagev1.CSINode {
	return storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: v1alpha1.ProvisionerName}, {Name: v1alpha1.PromiseDriverName},
	}}}
}

func TestJudgeFacts(t *testing.T) {
	right := authorizationv1.ResourceAttributes{Verb: "patch", Resource: "persistentvolumes"}
	for name, tc := range map[string]struct {
		change func(h *HostFacts, m *Member)
		want   []string
		says   string
	}{
		"healthy": {func(*HostFacts, *Member) {}, nil, ""},
		"nothing could be read": {func(h *HostFacts, m *Member) {
			*h = HostFacts{Namespace: h.Namespace, Cluster: Cluster{Account: h.Account}}
			*m = Member{Registration: "a", Cluster: Cluster{ID: "id-a", Account: m.Account}}
		}, nil, ""},

		"the cluster domains are equal": {func(h *HostFacts, m *Member) { h.Domain, m.Domain = "cluster.local", "cluster.local" }, nil, "the member has the host's cluster domain, cluster.local"},
		"the cluster domains differ":    {func(h *HostFacts, m *Member) { h.Domain, m.Domain = "cluster.local", "b.example" }, []string{"Warning Domain a"}, "db.shop.svc.cluster.local do not resolve"},
		"a cluster domain is unknown":   {func(h *HostFacts, _ *Member) { h.Domain = "cluster.local" }, nil, ""},

		"not installed": {func(h *HostFacts, _ *Member) {
			h.Definition, h.Registrations = inspect.Object[unstructured.Unstructured]{Read: true}, items[v1alpha1.ClusterRegistration]()
			h.Nodes, h.Heartbeats, h.Volumes, h.Secrets = items[corev1.Node](), items[coordinationv1.Lease](), items[metav1.PartialObjectMetadata](), items[metav1.PartialObjectMetadata]()
		}, []string{"Error Definition"}, "Install the xylem chart"},
		"the definition is not served": {func(h *HostFacts, _ *Member) {
			unstructured.RemoveNestedField(h.Definition.Item.Object, "status")
		}, []string{"Error Definition"}, "not Established"},
		"the definition is of an older version": {func(h *HostFacts, _ *Member) {
			version := firstVersion(h.Definition.Item)
			unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "storage")
		}, []string{"Error Definition"}, `older than this plugin and lacks fields ".spec.storage"`},
		"the definition is of a newer version": {func(h *HostFacts, _ *Member) {
			version := firstVersion(h.Definition.Item)
			if err := unstructured.SetNestedField(version, "string", "schema", "openAPIV3Schema", "properties", "spec", "properties", "later", "type"); err != nil {
				panic(err)
			}
		}, []string{"Warning Definition"}, `newer than this plugin and has field ".spec.later"`},

		"a registration replaces the denied namespaces": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Spec.Namespaces.Deny = &[]string{"*-system", "dev-*"}
		}, nil, "also accepts namespaces that match openshift*, istio-*, cert-manager"},
		"a policy is missing":                      {func(h *HostFacts, _ *Member) { h.Policies.Items = without(h.Policies.Items, false) }, []string{"Error Policies"}, "does not exist"},
		"the optional namespace policy is missing": {func(h *HostFacts, _ *Member) { h.Policies.Items = without(h.Policies.Items, true) }, nil, "namespaces.reject"},
		"a policy was changed": {func(h *HostFacts, _ *Member) {
			h.Policies.Items[len(h.Policies.Items)-1].Spec.FailurePolicy = ptr.To(admissionv1.Ignore)
		}, []string{"Error Policies"}, "in its failurePolicy"},
		"a binding only warns": {func(_ *HostFacts, m *Member) {
			m.Bindings.Items[0].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		}, []string{"Error Policies a"}, "no binding denies"},
		"the host is also a member, and the member also a host": {func(h *HostFacts, m *Member) {
			inHost, inMember := slices.Clone(h.Policies.Items), slices.Clone(m.Policies.Items)
			h.Policies.Items, m.Policies.Items = slices.Concat(inHost, inMember), slices.Concat(inMember, inHost)
		}, nil, ""},
		"a policy of an earlier version": {func(h *HostFacts, _ *Member) {
			old := *h.Policies.Items[0].DeepCopy()
			old.Name = "xylem-old"
			h.Policies.Items = append(h.Policies.Items, old)
		}, []string{"Warning Policies"}, `"xylem-old"`},
		"a webhook of an earlier version": {func(_ *HostFacts, m *Member) {
			hook := metadata("xylem-hook", nil)
			hook.Kind = "ValidatingWebhookConfiguration"
			m.Webhooks = items(hook)
		}, []string{"Warning Policies a"}, "kubectl delete validatingwebhookconfiguration xylem-hook"},

		"the scheduler's namespace policy is installed": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Spec.Namespaces.MatchLabels = map[string]string{"team": "payments"}
			h.Webhooks = mutatingObjects(NamespacesPolicy, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
		}, nil, `MutatingAdmissionPolicy "xylem-namespaces" keeps the scheduler from choosing`},
		"the policy that keeps and removes keys is installed": {func(h *HostFacts, _ *Member) {
			h.Webhooks = mutatingObjects(KeysPolicy, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
		}, nil, ""},
		"the policy that keeps and removes keys is not installed": {func(*HostFacts, *Member) {}, nil, "run `kubectl apply -k config/keys`"},
		"the scheduler's namespace policy is in a member, without effect": {func(_ *HostFacts, m *Member) {
			m.Webhooks = mutatingObjects(NamespacesPolicy, "MutatingAdmissionPolicy")
		}, []string{"Warning Policies a"}, "kubectl delete mutatingadmissionpolicy xylem-namespaces"},
		"the scheduler's namespace policy is not installed": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Spec.Namespaces.MatchLabels = map[string]string{"team": "payments"}
		}, nil, `registration "a" has rules for namespaces (spec.namespaces), but MutatingAdmissionPolicy "xylem-namespaces" is not installed. The scheduler may choose`},
		"the scheduler's namespace policy has no binding": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Spec.Namespaces.Allow = []string{"team-*"}
			h.Webhooks = mutatingObjects(NamespacesPolicy, "MutatingAdmissionPolicy")
		}, nil, "is not bound. The scheduler may choose"},
		"the host does not serve mutating policies": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Spec.Namespaces.MatchLabels = map[string]string{"team": "payments"}
			h.Mutating = read(false)
		}, nil, "the host serves no MutatingAdmissionPolicies. The scheduler may choose"},
		"spec.namespaces admits no namespace": {func(h *HostFacts, _ *Member) {
			r := &h.Registrations.Items[0]
			r.Spec.Namespaces.MatchLabels = map[string]string{"team": "payments"}
			r.Status.Conditions = append(r.Status.Conditions, condition(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNoNamespaceAdmitted,
				"spec.namespaces admits none of the host's 5 namespaces: no Pod or claim can go to the member. Change spec.namespaces, or label a namespace as spec.namespaces.matchLabels requires"))
		}, []string{"Warning Members a"}, "To do: Change spec.namespaces, or label a namespace"},

		"a permission is missing": {func(h *HostFacts, _ *Member) {
			h.Rights.Lacks = []authorizationv1.ResourceAttributes{right}
		}, []string{"Error Rights"}, "lacks 1 permission that it needs: patch persistentvolumes"},
		"access to Secrets only in selected namespaces": {func(h *HostFacts, _ *Member) {
			h.Rights.Lacks = []authorizationv1.ResourceAttributes{{Verb: "get", Resource: "secrets"}, {Verb: "get", Resource: "configmaps"}}
		}, nil, "only in chosen namespaces"},
		"an excessive permission": {func(_ *HostFacts, m *Member) { m.Rights.Excess = excessivePermissions() }, []string{"Warning Rights a"}, "never needs: * *.*."},

		"the manager's memory limit is too low for the fleet": {func(h *HostFacts, _ *Member) {
			setMemoryLimit(h, "1Gi")
			h.Registrations.Items[0].Status.Volumes = v1alpha1.VolumeCounts{Bound: 60_000, Orphaned: 10}
		}, []string{"Warning Manager"}, "memory limit is 1Gi, but a restart with the volumes of all members needs about 1649Mi"},
		"the manager's memory limit suffices for the fleet": {func(h *HostFacts, _ *Member) {
			setMemoryLimit(h, "1Gi")
			h.Registrations.Items[0].Status.Volumes = v1alpha1.VolumeCounts{Bound: 30_000}
		}, nil, "the manager has 2 replicas available"},
		"no manager is the leader": {func(h *HostFacts, _ *Member) {
			h.Leader = read(*lease(v1alpha1.LeaderLease, time.Hour))
		}, []string{"Error Manager"}, "last renewed 1h0m0s ago"},
		"the manager stopped cleanly": {func(h *HostFacts, _ *Member) {
			h.Leader.Item.Spec.HolderIdentity = ptr.To("")
		}, []string{"Error Manager"}, "has no holder"},
		"the Deployment is scaled to 0": {func(h *HostFacts, _ *Member) {
			h.Deployment.Item.Spec.Replicas, h.Leader = ptr.To(int32(0)), inspect.Object[coordinationv1.Lease]{Read: true}
		}, []string{"Error Manager"}, "scaled to 0"},
		"no Deployment": {func(h *HostFacts, _ *Member) {
			h.Deployment.Item, h.Leader.Item = nil, nil
		}, []string{"Error Manager"}, "--xylem-namespace"},
		"a manager outside of the Deployment": {func(h *HostFacts, _ *Member) { h.Deployment.Item.Spec.Replicas = ptr.To(int32(0)) }, nil, "does not run in a Deployment"},
		"a replica is down":                   {func(h *HostFacts, _ *Member) { h.Deployment.Item.Status.AvailableReplicas = 1 }, []string{"Warning Manager"}, "1 of 2 replicas"},
		"a Lease renewed by a fast clock": {func(h *HostFacts, m *Member) {
			h.At, h.Clock.Ahead, m.Clock.Ahead, m.At = now.Add(-time.Hour), time.Hour, time.Hour, h.At.Add(-time.Hour)
		}, []string{"Warning Clock"}, "1h0m0s behind the host's"},

		"an old plugin": {func(h *HostFacts, _ *Member) {
			h.Deployment.Item.Labels["app.kubernetes.io/version"] = "v1.3.0"
		}, []string{"Warning Plugin"}, "the plugin (v1.2.0) is older than the manager (v1.3.0)"},
		"a new plugin": {func(h *HostFacts, _ *Member) {
			h.Deployment.Item.Labels = nil
			h.Deployment.Item.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "registry.example:5000/xylem:v1.1.0@sha256:00"}}
		}, []string{"Warning Plugin"}, "is newer than the manager (v1.1.0)"},
		"a manager without a version": {func(h *HostFacts, _ *Member) {
			h.Deployment.Item.Labels = nil
			h.Deployment.Item.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "registry.example:5000/xylem"}}
		}, nil, "the manager's (unknown)"},
		"an unsupported host version":   {func(h *HostFacts, _ *Member) { h.Version = "v1.33.9" }, []string{"Error Kubernetes"}, "too old"},
		"host 1.34":                     {func(h *HostFacts, _ *Member) { h.Version = "v1.34.0-gke.100" }, []string{"Warning Kubernetes"}, "nominate"},
		"member 1.34":                   {func(_ *HostFacts, m *Member) { m.Version = "v1.34.0" }, nil, ""},
		"an unsupported member version": {func(_ *HostFacts, m *Member) { m.Version = "v1.30.1+k3s1" }, []string{"Error Kubernetes a"}, `member "a" runs Kubernetes v1.30.1+k3s1`},

		"a member is away": {func(h *HostFacts, m *Member) {
			h.Registrations.Items[0].Status.Conditions = []metav1.Condition{
				condition(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "member \"a\" does not respond: timeout. Check the network."),
				condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, ""),
			}
			m.Own, m.Away = false, "timeout"
		}, []string{"Error Members a", "Error Connection a"}, "To do: Check the network."},
		"a member that the plugin cannot reach":     {func(_ *HostFacts, m *Member) { m.Own, m.Away = false, "timeout" }, []string{"Warning Connection a"}, "although the manager can"},
		"the user cannot get the kubeconfig Secret": {func(_ *HostFacts, m *Member) { m.Away, m.Secret, m.Own = "forbidden", true, false }, []string{"Warning Connection a"}, "--member-kubeconfig"},
		"orphaned volumes": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Status.Conditions = append(h.Registrations.Items[0].Status.Conditions,
				condition(v1alpha1.ConditionVolumesAccounted, metav1.ConditionFalse, v1alpha1.ReasonOrphanedVolumes, "1 volume has no root"))
		}, []string{"Warning Members a"}, "1 volume has no root."},
		"a member's clock is 30 seconds fast": {func(_ *HostFacts, m *Member) {
			m.Clock.Ahead, m.Fence = 30*time.Second, read(*lease("host-1", -30*time.Second))
		}, []string{"Warning Clock a"}, "30s ahead of"},
		"a member's clock is an hour slow": {func(_ *HostFacts, m *Member) {
			m.Clock.Ahead, m.Fence = -time.Hour, read(*lease("host-1", time.Hour))
		}, []string{"Error Clock a"}, "1h0m0s behind"},
		"the fence is not held":                 {func(_ *HostFacts, m *Member) { m.Fence = read(*lease("host-1", time.Hour)) }, []string{"Error Fence a"}, "nobody holds the fence"},
		"a member without snapshots":            {func(_ *HostFacts, m *Member) { m.Snapshots = read(false) }, []string{"Warning Snapshots a"}, "the member does not serve VolumeSnapshots"},
		"a host and a member without snapshots": {func(h *HostFacts, m *Member) { h.Snapshots, m.Snapshots = read(false), read(false) }, nil, "the host serves no VolumeSnapshots"},

		"a token has expired": {func(h *HostFacts, m *Member) {
			h.Registrations.Items[0].Status.TokenExpires, m.Issued = &metav1.Time{Time: now.Add(-time.Hour)}, now.Add(-2*time.Hour)
		}, []string{"Error Tokens a"}, "issued 2h0m0s ago, expired 1h0m0s ago"},
		"a token is not renewed": {func(h *HostFacts, _ *Member) {
			h.Registrations.Items[0].Status.TokenExpires = &metav1.Time{Time: now.Add(time.Hour)}
		}, []string{"Warning Tokens a"}, "expires in 1h0m0s, and the manager doesn't renew it"},
		"a token is renewed": {func(h *HostFacts, _ *Member) {
			r := &h.Registrations.Items[0]
			r.Status.TokenExpires = &metav1.Time{Time: now.Add(time.Hour)}
			r.Status.Conditions = append(r.Status.Conditions, condition(v1alpha1.ConditionTokenFresh, metav1.ConditionTrue, "Renewed", ""))
		}, nil, "no token for a member expires within 1h0m0s"},

		"leftovers of a member": {func(h *HostFacts, m *Member) {
			h.Registrations, *m = items[v1alpha1.ClusterRegistration](), Member{Cluster: Cluster{ID: "id-a"}, Own: true, Leaves: map[string]int{"Pod": 1, "Namespace": 2}}
			h.Nodes.Items, h.Paths = nil, nil
			h.Capacities = items(storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "c"}, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterID: "id-a"}}})
			h.Classes = items(storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: map[string]string{v1alpha1.LabelOfferedByPrefix + "a": "true"}}})
		}, []string{
			"Warning Leftovers", "Error Leftovers", "Warning Leftovers", "Warning Leftovers", "Warning Leftovers", "Warning Leftovers (not registered)",
		}, "2 Namespaces, 1 Pod of this host"},
		"not all leftovers could be read": {func(h *HostFacts, _ *Member) { h.Volumes = inspect.Objects[metav1.PartialObjectMetadata]{} }, nil, ""},
		"a virtual node without a registration": {func(h *HostFacts, _ *Member) {
			node := *h.Nodes.Items[0].DeepCopy()
			node.Name = "kosmos-b"
			h.Nodes.Items = append(h.Nodes.Items, node)
		}, []string{"Warning Leftovers"}, `Node "kosmos-b"`},
		"a class that a registered member still offers": {func(h *HostFacts, _ *Member) {
			h.Classes = items(storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: map[string]string{v1alpha1.LabelOfferedByPrefix + "a": "true", v1alpha1.LabelOfferedByPrefix + "b": "true"}}})
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			tc.change(&f.Host, &f.Members[0])
			c, err := judgeFacts(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, problemsIn(c)); diff != "" {
				t.Errorf("-want +got:\n%s\n%+v", diff, c.Findings)
			}
			var all []string
			for _, finding := range c.Findings {
				all = append(all, finding.Message+". To do: "+finding.ToDo)
				if (finding.ToDo == "") != (finding.Level == OK) {
					t.Errorf("want a remedy only for problems: %+v", finding)
				}
			}
			if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, tc.says) }) && tc.says != "" {
				t.Errorf("no finding contains %q:\n%s", tc.says, strings.Join(all, "\n"))
			}
			if unread := strings.Contains(name, "read"); unread && slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Check == CheckLeftovers }) {
				t.Error("a finding reports on leftovers, although they could not be read")
			}
			if c.Counts.OK+c.Counts.Warnings+c.Counts.Errors != len(c.Findings) {
				t.Errorf("counts are %+v, want %d findings in total", c.Counts, len(c.Findings))
			}
		})
	}
}

func TestJudgeFactsChecksEnvironment(t *testing.T) {
	c, err := judgeFacts(healthy(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []Check{CheckDriver, CheckControlPlane, CheckNodeAPI, CheckDaemonSets, CheckSnapshots} {
		if !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Check == check && f.Cluster == "" }) {
			t.Errorf("no finding of check %s", check)
		}
	}
}

// mutatingObjects returns the objects of a mutating policy with the given kinds.
func mutatingObjects(policy string, kinds ...string) inspect.Objects[metav1.PartialObjectMetadata] {
	var objects []metav1.PartialObjectMetadata
	for _, kind := range kinds {
		obj := metadata(policy, nil)
		obj.Kind = kind
		objects = append(objects, obj)
	}
	return items(objects...)
}

// without removes the namespace policy, or one of the others.
func without(policies []admissionv1.ValidatingAdmissionPolicy, namespaces bool) []admissionv1.ValidatingAdmissionPolicy {
	i := slices.IndexFunc(policies, func(p admissionv1.ValidatingAdmissionPolicy) bool {
		return (p.Name == NamespacesPolicy) == namespaces
	})
	return slices.Delete(policies, i, i+1)
}

func TestDomainOf(t *testing.T) {
	for corefile, want := range map[string]string{
		".:53 {\n    errors\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n       pods insecure\n    }\n    forward . /etc/resolv.conf\n}": "cluster.local",
		"b.example:53 {\n\tkubernetes b.example {\n\t}\n}":      "b.example",
		".:53 {\n    # kubernetes cluster.local\n    whoami\n}": "",
		"": "",
	} {
		if got := domainOf(corefile); got != want {
			t.Errorf("domainOf(%q) = %q, want %q", corefile, got, want)
		}
	}
}
