package virtualnode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/nodes"
)

const clusterID = "3f0c"

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func registration(change ...func(*v1alpha1.ClusterRegistration)) *v1alpha1.ClusterRegistration {
	r := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38", UID: "cr"}}
	r.Status.ClusterID = clusterID
	for _, c := range change {
		c(r)
	}
	return r
}

func deleting(r *v1alpha1.ClusterRegistration) {
	r.DeletionTimestamp = &metav1.Time{Time: start}
}

func facts() *member.NodeSummary {
	return &member.NodeSummary{
		Capacity:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")},
		Allocatable:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6"), corev1.ResourcePods: resource.MustParse("100")},
		Architecture: "amd64", OperatingSystem: "linux", Nodes: 2, Ready: 2,
	}
}

func linked() fleet.State {
	return fleet.State{Connected: true, Synced: true, Identity: member.Identity{ClusterID: clusterID, Version: "v1.36.3"}, NodeSummary: facts()}
}

// recheck is the interval of checks for a free name.
const recheck = time.Minute

func seen(change ...func(*observed)) observed {
	o := observed{name: "kosmos-cluster38", registration: registration(), state: linked(), knownToFleet: true, grace: DefaultGrace, recheck: recheck, now: metav1.NewTime(start)}
	for _, c := range change {
		c(&o)
	}
	return o
}

// standing returns an up-to-date Node of a connected member.
func standing(t *testing.T, change ...func(*corev1.Node)) *corev1.Node {
	t.Helper()
	made, ok := decideNode(seen()).do.(createNode)
	if !ok {
		t.Fatal("no Node is created for a connected member")
	}
	for _, c := range change {
		c(made.node)
	}
	return made.node
}

func away(reason string) func(*observed) {
	return func(o *observed) {
		o.state.Connected, o.state.Synced = false, false
		o.state.Problem = &access.ConnectionProblem{Reason: reason, Message: "it is away"}
		o.awaySince = o.now.Time
	}
}

func evicting(o *observed) { o.registration.Spec.Node.WhenAway = v1alpha1.WhenAwayEvict }

// evicts sets the metadata of a Node whose registration requests eviction.
func evicts(n *corev1.Node) { setMetadata(n, seen(evicting)) }

func tainted(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, awayTaint) }

func isAway(n *corev1.Node) {
	o := seen(away(v1alpha1.ReasonUnreachable))
	o.awaySince = start.Add(-DefaultGrace)
	setReadyConditions(n, o)
}

func TestDecide(t *testing.T) {
	ready := standing(t)
	for name, tc := range map[string]struct {
		observed observed
		want     string
		again    time.Duration
		taken    bool
	}{
		"no registration and no Node":                     {observed: observed{}, want: "nothing"},
		"the member's identity is not recorded yet":       {observed: seen(func(o *observed) { o.registration.Status.ClusterID = "" }), want: "nothing"},
		"the member connects for the first time":          {observed: seen(), want: "create Ready=True"},
		"created while the member is away":                {observed: seen(away(v1alpha1.ReasonUnreachable)), want: "create Ready=True away tainted"},
		"created while the member is away, with eviction": {observed: seen(away(v1alpha1.ReasonUnreachable), evicting), want: "create Ready=False away"},
		"up to date": {observed: seen(func(o *observed) { o.node = ready }), want: "nothing"},
		"up to date, and checked an hour later": {observed: seen(func(o *observed) {
			o.node, o.now = ready, metav1.NewTime(start.Add(time.Hour))
		}), want: "nothing"},
		"a foreign node": {observed: seen(func(o *observed) {
			o.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38"}}
		}), want: "nothing", again: recheck, taken: true},
		"a virtual node of another cluster": {observed: seen(func(o *observed) {
			o.node = standing(t, func(n *corev1.Node) { n.Labels[v1alpha1.LabelClusterID] = "else" })
		}), want: "nothing", again: recheck, taken: true},
		"an ordinary node with the cluster's ID": {observed: seen(func(o *observed) {
			o.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38", Labels: map[string]string{v1alpha1.LabelClusterID: clusterID}}}
		}), want: "nothing", again: recheck, taken: true},
		"a label was removed": {observed: seen(func(o *observed) {
			o.node = standing(t, func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) })
		}), want: "patch"},
		"the attach-detach annotation was added": {observed: seen(func(o *observed) {
			o.node = standing(t, func(n *corev1.Node) { n.Annotations[annAttachDetach] = "true" })
		}), want: "patch"},
		"cordoned by an admin": {observed: seen(func(o *observed) {
			o.node = standing(t, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}), want: "nothing"},
		"Kubernetes set Ready to Unknown": {observed: seen(func(o *observed) {
			o.node = standing(t, func(n *corev1.Node) { nodes.FindReadyCondition(n).Status = corev1.ConditionUnknown })
		}), want: "status Ready=True"},
		"away for less than the grace period": {observed: seen(away(v1alpha1.ReasonUnreachable), func(o *observed) { o.node = ready }),
			want: "nothing", again: DefaultGrace},
		"away for the grace period": {observed: seen(away(v1alpha1.ReasonUnreachable), func(o *observed) {
			o.node, o.now = ready, metav1.NewTime(start.Add(DefaultGrace))
		}), want: "patch tainted"},
		"away for the grace period, and tainted": {observed: seen(away(v1alpha1.ReasonUnreachable), func(o *observed) {
			o.node, o.now = standing(t, tainted), metav1.NewTime(start.Add(DefaultGrace))
		}), want: "status Ready=True away tainted"},
		"away for the grace period, with eviction": {observed: seen(away(v1alpha1.ReasonUnreachable), evicting, func(o *observed) {
			o.node, o.now = standing(t, evicts), metav1.NewTime(start.Add(DefaultGrace))
		}), want: "status Ready=False away"},
		"away and tainted, and the manager has just started": {observed: seen(func(o *observed) {
			o.node, o.state, o.knownToFleet, o.awaySince = standing(t, tainted, isAway), fleet.State{}, false, start
		}), want: "status Ready=True away tainted"},
		"connected again, and still tainted":     {observed: seen(func(o *observed) { o.node = standing(t, tainted, isAway) }), want: "patch"},
		"connected again, and no longer tainted": {observed: seen(func(o *observed) { o.node = standing(t, isAway) }), want: "status Ready=True"},
		"away permanently":                       {observed: seen(away(v1alpha1.ReasonIdentityChanged), func(o *observed) { o.node = ready }), want: "patch tainted"},
		"the manager has just started": {observed: seen(func(o *observed) {
			o.node, o.state, o.knownToFleet, o.awaySince = ready, fleet.State{}, false, start
		}), want: "nothing", again: DefaultGrace},
		"connected through an earlier registration's link": {observed: seen(func(o *observed) {
			o.node, o.state.Identity.ClusterID, o.awaySince = ready, "else", start
		}), want: "nothing", again: DefaultGrace},
		"no ready node in the member":                   {observed: seen(func(o *observed) { o.node, o.state.NodeSummary.Nodes, o.state.NodeSummary.Ready = ready, 0, 0 }), want: "patch tainted"},
		"all of the member's nodes are cordoned":        {observed: seen(func(o *observed) { o.node, o.state.NodeSummary.Nodes = ready, 0 }), want: "status Ready=True"},
		"deregistering, and the Node was never created": {observed: seen(func(o *observed) { o.registration = registration(deleting) }), want: "nothing"},
		"deregistering, and somebody deleted the Node to which Pods are bound (I2)": {observed: seen(func(o *observed) {
			o.registration, o.pods = registration(deleting), 1
		}), want: "create Ready=True"},
		"deregistering, and the Node is not cordoned yet": {observed: seen(func(o *observed) {
			o.registration, o.node = registration(deleting), ready
		}), want: "patch cordoned"},
		"deregistering, and Pods are bound to the Node": {observed: seen(func(o *observed) {
			o.registration, o.pods = registration(deleting), 1
			o.node = standing(t, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}), want: "nothing"},
		"deregistering, and no Pods are bound to the Node": {observed: seen(func(o *observed) {
			o.registration = registration(deleting)
			o.node = standing(t, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}), want: "remove"},
		"deregistering, and a later registration has the Node": {observed: seen(func(o *observed) {
			o.registration = registration(deleting)
			o.node = standing(t, func(n *corev1.Node) { n.Labels[v1alpha1.LabelCluster] = "later" })
		}), want: "nothing"},
		"deregistering, and a foreign Node has the name": {observed: seen(func(o *observed) {
			o.registration = registration(deleting)
			o.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38"}}
		}), want: "nothing"},
		"the registration is gone, but Pods are bound to the Node": {observed: seen(func(o *observed) {
			o.registration, o.node, o.pods = nil, ready, 3
		}), want: "patch tainted"},
		"the registration is gone, but Pods are bound to the Node, which is tainted": {observed: seen(func(o *observed) {
			o.registration, o.node, o.pods = nil, standing(t, tainted), 3
		}), want: "status Ready=True away tainted"},
		"the registration is gone, but Pods are bound to the Node, with eviction": {observed: seen(func(o *observed) {
			o.registration, o.node, o.pods = nil, standing(t, evicts), 3
		}), want: "status Ready=False away"},
		"the registration is gone, and no Pods are bound to the Node": {observed: seen(func(o *observed) {
			o.registration, o.node = nil, ready
		}), want: "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.observed.node.DeepCopy()
			d := decideNode(tc.observed)
			if diff := cmp.Diff(tc.want, describe(d.do)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if d.again != tc.again || d.nameTaken != tc.taken {
				t.Errorf("the next check is after %s, taken %t; want %s, %t", d.again, d.nameTaken, tc.again, tc.taken)
			}
			if diff := cmp.Diff(before, tc.observed.node); diff != "" {
				t.Errorf("decide changed the observed Node:\n%s", diff)
			}
		})
	}
}

func describe(do nodeAction) string {
	taints := func(n *corev1.Node) string {
		if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintMemberAway }) {
			return " tainted"
		}
		return ""
	}
	readiness := func(n *corev1.Node) string {
		is := fmt.Sprintf("Ready=%s", nodes.FindReadyCondition(n).Status)
		if nodes.MemberAway(n) {
			is += " away"
		}
		return is + taints(n)
	}
	switch do := do.(type) {
	case createNode:
		return "create " + readiness(do.node)
	case patchNode:
		if do.after.Spec.Unschedulable {
			return "patch cordoned"
		}
		return "patch" + taints(do.after)
	case patchNodeStatus:
		return "status " + readiness(do.after)
	case removeNode:
		return "remove"
	}
	return "nothing"
}

func TestMergedTaints(t *testing.T) {
	ours := corev1.Taint{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: start}}
	admins := corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	asked := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		there, wanted []corev1.Taint
		before        []taintKey
		want          []corev1.Taint
	}{
		"new":                            {wanted: []corev1.Taint{ours}, want: []corev1.Taint{ours}},
		"exists":                         {there: []corev1.Taint{ours}, wanted: []corev1.Taint{ours}, want: []corev1.Taint{ours}},
		"foreign taints stay":            {there: []corev1.Taint{notReady, admins}, wanted: []corev1.Taint{ours}, want: []corev1.Taint{notReady, admins, ours}},
		"a taint is no longer requested": {there: []corev1.Taint{ours, admins, asked}, before: []taintKey{taintKeyOf(ours), taintKeyOf(asked)}, wanted: []corev1.Taint{ours}, want: []corev1.Taint{ours, admins}},
		"no taints are requested":        {there: []corev1.Taint{ours, notReady}, before: []taintKey{taintKeyOf(ours)}, want: []corev1.Taint{notReady}},
		"a different value":              {there: []corev1.Taint{{Key: "gpu", Value: "no", Effect: corev1.TaintEffectNoSchedule}}, wanted: []corev1.Taint{asked}, want: []corev1.Taint{asked}},
		"a different effect":             {there: []corev1.Taint{asked}, before: []taintKey{taintKeyOf(asked)}, wanted: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute}}, want: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute}}},
		"a taint is requested twice":     {wanted: []corev1.Taint{asked, asked}, want: []corev1.Taint{asked}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mergedTaints(tc.there, tc.wanted, tc.before)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelsFollowTheRegistration(t *testing.T) {
	asking := func(labels map[string]string) observed {
		return seen(func(o *observed) { o.registration.Spec.Node.Labels = labels })
	}
	node := newVirtualNode(asking(map[string]string{"a": "1", "b": "2"}))
	node.Labels["admin"] = "x"
	setMetadata(node, asking(map[string]string{"b": "3", v1alpha1.LabelVirtualNode: "no"}))
	want := map[string]string{
		"b": "3", "admin": "x",
		"kubernetes.io/hostname": "kosmos-cluster38", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"node.kubernetes.io/exclude-from-external-load-balancers": "",
		"app.kubernetes.io/managed-by":                            "xylem",
		"xylem.io/virtual-node":                                   "true",
		"xylem.io/cluster":                                        "cluster38",
		"xylem.io/cluster-id":                                     clusterID,
	}
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// The scheduler binds Pods with a shared volume to the nodes that have the label of its backend.
func TestBackendsFollowTheRegistration(t *testing.T) {
	sharing := func(names ...string) observed {
		return seen(func(o *observed) {
			for _, name := range names {
				o.registration.Spec.Storage.Shared = append(o.registration.Spec.Storage.Shared, v1alpha1.SharedBackend{Name: name, Driver: "nfs.example.com", Classes: []string{"nfs"}})
			}
		})
	}
	labelled := func(node *corev1.Node) map[string]string {
		found := map[string]string{}
		for key, value := range node.Labels {
			if name, backend := strings.CutPrefix(key, v1alpha1.LabelBackendPrefix); backend {
				found[name] = value
			}
		}
		return found
	}
	node := newVirtualNode(sharing("archive", "filer"))
	for _, step := range []struct {
		name string
		seen observed
		want map[string]string
	}{
		{"both backends", sharing("archive", "filer"), map[string]string{"archive": "", "filer": ""}},
		{"one is removed, and another one is added", sharing("filer", "media"), map[string]string{"filer": "", "media": ""}},
		{"all are removed", sharing(), map[string]string{}},
		{"one is added", sharing("filer"), map[string]string{"filer": ""}},
	} {
		setMetadata(node, step.seen)
		if diff := cmp.Diff(step.want, labelled(node)); diff != "" {
			t.Errorf("%s: backends (-want +got):\n%s", step.name, diff)
		}
		node.Labels[v1alpha1.LabelBackendPrefix+"forged"] = ""
	}
}

// API servers before 1.36 drop declared features, so that the status would be written repeatedly.
func TestDeclaredFeatures(t *testing.T) {
	for _, declares := range []bool{true, false} {
		o := seen(func(o *observed) {
			o.declaresFeatures = declares
			o.state.NodeSummary.ResizeFeatures = []string{"InPlacePodLevelResourcesVerticalScaling"}
		})
		node := newVirtualNode(o)
		setNodeStatus(node, o)
		if got := len(node.Status.DeclaredFeatures) > 0; got != declares {
			t.Errorf("the Node declares %v, want features: %t", node.Status.DeclaredFeatures, declares)
		}
		if changed, _ := setNodeStatus(node, o); changed {
			t.Error("the second result differs")
		}
	}
}

func TestCapacityIsOverriddenByResource(t *testing.T) {
	o := seen(func(o *observed) {
		o.registration.Spec.Node.Capacity = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("7")}
	})
	node := newVirtualNode(o)
	setNodeStatus(node, o)
	want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6"), corev1.ResourcePods: resource.MustParse("7")}
	if diff := cmp.Diff(want, node.Status.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(facts(), o.state.NodeSummary); diff != "" {
		t.Errorf("setStatus changed the member's facts:\n%s", diff)
	}
}

func TestNoUsableNodes(t *testing.T) {
	o := seen(func(o *observed) {
		o.state.NodeSummary.Nodes = 0
		o.state.NodeSummary.Capacity, o.state.NodeSummary.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	})
	node := newVirtualNode(o)
	setNodeStatus(node, o)
	if ready := nodes.FindReadyCondition(node); ready.Status != corev1.ConditionTrue || ready.Reason != v1alpha1.ReasonNoUsableNodes {
		t.Errorf("Ready is %s (%s), want True (%s)", ready.Status, ready.Reason, v1alpha1.ReasonNoUsableNodes)
	}
	if !nodes.AcceptsNoPods(node) {
		t.Error("the Node accepts Pods")
	}
	o.registration.Spec.Node.Capacity = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("7")}
	setNodeStatus(node, o)
	if nodes.AcceptsNoPods(node) {
		t.Error("the Node accepts no Pods despite its declared capacity")
	}
}

func TestUnchangedReasonIsNotReported(t *testing.T) {
	o := seen(away(v1alpha1.ReasonUnreachable))
	node := newVirtualNode(o)
	setNodeStatus(node, o)
	o.state.Problem = &access.ConnectionProblem{Reason: v1alpha1.ReasonUnreachable, Message: "read tcp 127.0.0.1:4711: reset"}
	if changed, _ := setNodeStatus(node, o); changed {
		t.Error("a new error message with the same reason changes the status")
	}
}

// The Node reports the manager's address and port, to which API servers connect. It reports
// no port if the manager does not serve the kubelet API.
func TestNodeAPI(t *testing.T) {
	here := func(ip string, port int32) func(*observed) {
		return func(o *observed) { o.podIP, o.port = ip, port }
	}
	for name, tc := range map[string]struct {
		change    func(*observed)
		addresses int
		port      int32
		// before and after are the values of the annotation that metrics-server reads.
		before, after string
	}{
		"the manager serves the kubelet API": {here("10.0.0.7", 10250), 2, 10250, "", "/metrics/resource/kosmos-cluster38"},
		"the kubelet API is disabled":        {here("10.0.0.7", 0), 2, 0, "", ""},
		"the kubelet API was enabled before": {here("10.0.0.7", 0), 2, 0, "/metrics/resource/kosmos-cluster38", ""},
		"an admin set the metrics path":      {here("10.0.0.7", 0), 2, 0, "/their/path", "/their/path"},
		"the manager's address is unknown":   {here("", 10250), 1, 0, "", "/metrics/resource/kosmos-cluster38"},
	} {
		t.Run(name, func(t *testing.T) {
			node := standing(t)
			// The status that another replica wrote.
			node.Status.DaemonEndpoints.KubeletEndpoint.Port = 1
			node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.6"}}
			if tc.before != "" {
				node.Annotations[nodes.AnnMetricsPath] = tc.before
			}
			if first, ok := decideNode(seen(tc.change, func(o *observed) { o.node = node })).do.(patchNode); ok {
				node = first.after
			}
			if got := node.Annotations[nodes.AnnMetricsPath]; got != tc.after {
				t.Errorf("the path for metrics-server is %q, want %q", got, tc.after)
			}
			patched, ok := decideNode(seen(tc.change, func(o *observed) { o.node = node })).do.(patchNodeStatus)
			if !ok {
				t.Fatal("the status that another replica wrote is not patched")
			}
			status := patched.after.Status
			if status.DaemonEndpoints.KubeletEndpoint.Port != tc.port || len(status.Addresses) != tc.addresses {
				t.Errorf("port %d, addresses %v; want port %d and %d addresses", status.DaemonEndpoints.KubeletEndpoint.Port, status.Addresses, tc.port, tc.addresses)
			}
			if again := decideNode(seen(tc.change, func(o *observed) { o.node = patched.after })); again.do != nil {
				t.Errorf("decision %T after the patch, want none", again.do)
			}
		})
	}
}
