package virtualnode

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	// annAttachDetach makes the attach-detach controller manage the Node if it is present,
	// whatever its value (k8s.io/kubernetes/pkg/volume/util).
	annAttachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// requestedMeta is the value of v1alpha1.AnnotationNodeSpec.
type requestedMeta struct {
	Labels []string   `json:"labels,omitempty"`
	Taints []taintKey `json:"taints,omitempty"`
	// Cordoned means that Xylem cordoned the Node, because its group is cordoned or lost.
	Cordoned bool `json:"cordoned,omitempty"`
	// WhenAway also applies to the Node of a registration that is gone.
	WhenAway v1alpha1.AwayPolicy `json:"whenAway,omitempty"`
}

// taintKey identifies a taint.
type taintKey struct {
	Key    string             `json:"key"`
	Effect corev1.TaintEffect `json:"effect"`
}

func taintKeyOf(t corev1.Taint) taintKey { return taintKey{t.Key, t.Effect} }

func newVirtualNode(o observed) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	setMetadata(node, o)
	return node
}

// setMetadata sets the labels, annotations and taints. It also cordons a Node that must be
// deleted.
func setMetadata(node *corev1.Node, o observed) {
	before := requestedBefore(node)
	if o.registration == nil {
		if awayPolicyOf(node, o) == v1alpha1.WhenAwayKeep {
			node.Spec.Taints = mergedTaints(node.Spec.Taints, []corev1.Taint{awayTaint}, nil)
		}
		return
	}
	labels := requestedLabels(node, o, before)
	now := requestedMeta{Labels: slices.Sorted(maps.Keys(labels)), WhenAway: o.registration.WhenAway()}
	taints := o.registration.Taints()
	for _, taint := range taints {
		now.Taints = append(now.Taints, taintKeyOf(taint))
	}
	if isAway, _ := isAwayNow(node, o); isAway && o.registration.WhenAway() == v1alpha1.WhenAwayKeep {
		taints = append(taints, awayTaint)
	}
	setNodeLabels(node, o, before, labels)
	setBackendLabels(node, placement.RulesOfRegistration(o.registration).BackendNames())
	node.Spec.Taints = mergedTaints(node.Spec.Taints, taints, before.Taints)
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	setGroup(node, o)
	now.Cordoned = setCordon(node, o, before)
	delete(node.Annotations, annAttachDetach)
	if path := nodes.MetricsPathOf(node.Name); o.port != 0 {
		node.Annotations[nodes.AnnMetricsPath] = path
	} else if node.Annotations[nodes.AnnMetricsPath] == path {
		delete(node.Annotations, nodes.AnnMetricsPath)
	}
	if value, err := json.Marshal(now); err == nil { // never fails
		node.Annotations[v1alpha1.AnnotationNodeSpec] = string(value)
	}
}

// awayTaint keeps new Pods off the Node of an away member without evicting any. The taints
// that Kubernetes adds to a Node that is not Ready would evict Pods.
var awayTaint = corev1.Taint{Key: v1alpha1.TaintMemberAway, Value: "true", Effect: corev1.TaintEffectNoSchedule}

// requestedBefore returns what the registration requested when the Node was last written. It
// returns the zero value if the annotation is missing or invalid.
func requestedBefore(node *corev1.Node) requestedMeta {
	var before requestedMeta
	if err := json.Unmarshal([]byte(node.Annotations[v1alpha1.AnnotationNodeSpec]), &before); err != nil {
		return requestedMeta{}
	}
	return before
}

// requestedLabels returns the labels that the registration and the Node's group request. While the group is not known,
// its labels stay.
func requestedLabels(node *corev1.Node, o observed, before requestedMeta) map[string]string {
	labels := map[string]string{}
	if o.group != nil {
		maps.Copy(labels, o.group.Labels)
	} else if !o.isWholeMember() {
		for _, key := range before.Labels {
			if value, found := node.Labels[key]; found {
				labels[key] = value
			}
		}
	}
	maps.Copy(labels, o.registration.Spec.Node.Labels)
	return labels
}

// setGroup sets what shows the Node's group, and the topologies of volumes that the group's nodes can use.
func setGroup(node *corev1.Node, o observed) {
	if o.group == nil && !o.isWholeMember() {
		return // not known yet, or lost
	}
	maps.DeleteFunc(node.Labels, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.LabelTopologyPrefix) })
	if o.group == nil {
		delete(node.Labels, v1alpha1.LabelNodeGroup)
		delete(node.Annotations, v1alpha1.AnnotationNodeSelector)
		return
	}
	node.Labels[v1alpha1.LabelNodeGroup] = o.group.Name
	for _, key := range o.group.Topologies {
		node.Labels[key] = ""
	}
	if value, err := json.Marshal(o.group.Selector); err == nil { // never fails
		node.Annotations[v1alpha1.AnnotationNodeSelector] = string(value)
	}
}

// setCordon cordons a Node that must go, or whose group is cordoned, and uncordons it if Xylem cordoned it because of its
// group. It reports whether Xylem cordoned it for that reason.
func setCordon(node *corev1.Node, o observed, before requestedMeta) bool {
	cordon := o.lost || o.group != nil && o.group.Cordoned || before.Cordoned && o.group == nil && !o.isWholeMember()
	switch {
	case o.registrationLeaving():
		node.Spec.Unschedulable = true
		return before.Cordoned
	case cordon && !node.Spec.Unschedulable && (o.lost || !before.Cordoned):
		node.Spec.Unschedulable = true
		return true
	case cordon: // an admin cordoned the Node first, or uncordoned it since
		return before.Cordoned
	case before.Cordoned:
		node.Spec.Unschedulable = false
	}
	return false
}

func setNodeLabels(node *corev1.Node, o observed, before requestedMeta, requested map[string]string) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for _, key := range before.Labels {
		if !v1alpha1.Reserved(key) {
			delete(node.Labels, key)
		}
	}
	maps.Copy(node.Labels, requested)
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname:             node.Name,
		corev1.LabelNodeExcludeBalancers: "",
		v1alpha1.LabelManagedBy:          v1alpha1.ManagedByValue,
		v1alpha1.LabelVirtualNode:        "true",
		v1alpha1.LabelCluster:            o.registration.Name,
		v1alpha1.LabelClusterID:          o.registration.Status.ClusterID,
	})
	if facts := o.summary(); facts != nil {
		setOrRemoveLabel(node.Labels, corev1.LabelArchStable, facts.Architecture)
		setOrRemoveLabel(node.Labels, corev1.LabelOSStable, facts.OperatingSystem)
	}
}

// setBackendLabels labels the Node with the storage backends that the member shares.
func setBackendLabels(node *corev1.Node, backends []string) {
	maps.DeleteFunc(node.Labels, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.LabelBackendPrefix) })
	for _, name := range backends {
		node.Labels[v1alpha1.LabelBackendPrefix+name] = ""
	}
}

func setOrRemoveLabel(labels map[string]string, key, value string) {
	if value == "" {
		delete(labels, key)
		return
	}
	labels[key] = value
}

// mergedTaints returns the taints of a Node. It adds or updates the wanted ones, removes
// those that were wanted before, and keeps all others.
func mergedTaints(there, wanted []corev1.Taint, before []taintKey) []corev1.Taint {
	dropped := sets.New(before...).Insert(taintKeyOf(awayTaint))
	missing := map[taintKey]corev1.Taint{}
	for _, t := range wanted {
		missing[taintKeyOf(t)] = t
	}
	var merged []corev1.Taint
	for _, t := range there {
		want, ours := missing[taintKeyOf(t)]
		switch {
		case ours:
			delete(missing, taintKeyOf(t))
			if t.Value != want.Value {
				t.Value, t.TimeAdded = want.Value, nil
			}
		case dropped.Has(taintKeyOf(t)):
			continue
		}
		merged = append(merged, t)
	}
	for _, t := range wanted {
		if _, ok := missing[taintKeyOf(t)]; ok {
			delete(missing, taintKeyOf(t))
			merged = append(merged, t)
		}
	}
	return merged
}

// setNodeStatus updates the status. It returns whether it changed, and when Ready must be checked
// again if there is no event.
func setNodeStatus(node *corev1.Node, o observed) (changed bool, again time.Duration) {
	before := node.Status.DeepCopy()
	again = setReadyConditions(node, o)
	if o.group != nil || o.isWholeMember() {
		for _, c := range resourceConditions(o.group) {
			nodes.SetCondition(node, c, o.now)
		}
	}
	if o.registration != nil {
		setNodeResources(node, o)
		setNodeInfo(node, o)
	}
	return !equality.Semantic.DeepEqual(before, &node.Status), again
}

// resourceConditions returns the conditions that kubelets set, besides Ready. If the Node represents the whole member,
// they are not measured. For a group, those are true that are true on all of its nodes, with the reasons of kubelets.
func resourceConditions(group *member.NodeGroup) []corev1.NodeCondition {
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Reason: v1alpha1.ReasonNotMeasured, Message: "not measured: the member's nodes report on their own memory"},
		{Type: corev1.NodeDiskPressure, Reason: v1alpha1.ReasonNotMeasured, Message: "not measured: the member's nodes report on their own disks"},
		{Type: corev1.NodePIDPressure, Reason: v1alpha1.ReasonNotMeasured, Message: "not measured: the member's nodes report on their own processes"},
		{Type: corev1.NodeNetworkUnavailable, Reason: v1alpha1.ReasonNetworkOfMember, Message: "Pods use the member's network"},
	}
	reasons := map[corev1.NodeConditionType][2]string{
		corev1.NodeMemoryPressure: {"KubeletHasSufficientMemory", "KubeletHasInsufficientMemory"},
		corev1.NodeDiskPressure:   {"KubeletHasNoDiskPressure", "KubeletHasDiskPressure"},
		corev1.NodePIDPressure:    {"KubeletHasSufficientPID", "KubeletHasInsufficientPID"},
	}
	for i := range conditions {
		c := &conditions[i]
		c.Status = corev1.ConditionFalse
		if reason, ok := reasons[c.Type]; ok && group != nil {
			c.Reason, c.Message = reason[0], "at least one node of the group has no such shortage"
			if slices.Contains(group.Pressures, c.Type) {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, reason[1], "all nodes of the group report this shortage"
			}
		}
	}
	return conditions
}

// isAwayNow reports whether the member has a permanent problem, or a temporary one for longer
// than the grace period. If the problem is newer, left is the remaining grace period.
func isAwayNow(node *corev1.Node, o observed) (away bool, left time.Duration) {
	v := judgeMember(o)
	if v.ready {
		return false, 0
	}
	if v.passing && nodes.IsReady(node) && !nodes.MemberAway(node) {
		left = max(0, o.awaySince.Add(o.grace).Sub(o.now.Time))
	}
	return left == 0, left
}

// setReadyConditions sets the conditions Ready and MemberAway. If the registration keeps the Pods of an
// away member, the Node stays Ready, because Kubernetes evicts Pods from Nodes that are not
// Ready.
func setReadyConditions(node *corev1.Node, o observed) time.Duration {
	v := judgeMember(o)
	isAway, left := isAwayNow(node, o)
	if left > 0 {
		return left
	}
	away := corev1.NodeCondition{Type: v1alpha1.NodeMemberAway, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: v.reason, Message: v.message}
	if isAway {
		away.Status = corev1.ConditionTrue
		// The text of an error may differ on each attempt (ports, times), so only a new reason
		// changes the message.
		if now := nodes.FindCondition(node, away.Type); now != nil && now.Status == away.Status && now.Reason == away.Reason {
			away.Message = now.Message
		}
		ready.Message = away.Message
		if awayPolicyOf(node, o) == v1alpha1.WhenAwayKeep {
			ready.Reason = v1alpha1.ReasonPodsKept
			ready.Message = "the node keeps its Pods and accepts no new ones (spec.node.whenAway: Keep): " + away.Message
		} else {
			ready.Status = corev1.ConditionFalse
		}
	}
	nodes.SetCondition(node, away, o.now)
	nodes.SetCondition(node, ready, o.now)
	return 0
}

// awayPolicyOf returns the registration's policy, or its last recorded policy if the registration is
// gone.
func awayPolicyOf(node *corev1.Node, o observed) v1alpha1.AwayPolicy {
	if o.registration != nil {
		return o.registration.WhenAway()
	}
	return cmp.Or(requestedBefore(node).WhenAway, v1alpha1.WhenAwayKeep)
}

// setNodeResources sets the Node's resources to the last observed sum over the member's nodes. The
// registration can override the value of each resource.
func setNodeResources(node *corev1.Node, o observed) {
	if facts := o.summary(); facts != nil {
		node.Status.Capacity, node.Status.Allocatable = facts.Capacity.DeepCopy(), facts.Allocatable.DeepCopy()
	}
	if !o.isWholeMember() {
		return
	}
	for name, quantity := range o.registration.Spec.Node.Capacity {
		if node.Status.Capacity == nil {
			node.Status.Capacity = corev1.ResourceList{}
		}
		if node.Status.Allocatable == nil {
			node.Status.Allocatable = corev1.ResourceList{}
		}
		node.Status.Capacity[name] = quantity.DeepCopy()
		node.Status.Allocatable[name] = quantity.DeepCopy()
	}
}

func setNodeInfo(node *corev1.Node, o observed) {
	info := &node.Status.NodeInfo
	switch {
	case o.state.Connected && o.state.Identity.Version != "":
		info.KubeletVersion = o.state.Identity.Version
	case o.registration.Status.KubernetesVersion != "":
		info.KubeletVersion = o.registration.Status.KubernetesVersion
	}
	if facts := o.summary(); facts != nil {
		info.Architecture, info.OperatingSystem = facts.Architecture, facts.OperatingSystem
		if o.declaresFeatures {
			node.Status.DeclaredFeatures = slices.Clone(facts.ResizeFeatures)
		}
	}
	node.Status.DaemonEndpoints = corev1.NodeDaemonEndpoints{}
	if o.podIP != "" {
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = o.port
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	if o.podIP != "" {
		node.Status.Addresses = append([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: o.podIP}}, node.Status.Addresses...)
	}
}
