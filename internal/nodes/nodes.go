package nodes

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// IsVirtual reports whether a Node represents a member.
func IsVirtual(node *corev1.Node) bool {
	return node.Labels[v1alpha1.LabelVirtualNode] == "true" &&
		node.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
}

// resizeFeatures are the features that a Node must declare so that API servers accept resizes of a Pod's own resources, and
// of init containers that are not sidecars (k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize).
var resizeFeatures = []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"}

// ResizeFeaturesOf returns those of a Node's declared features on which resizes of Pods depend.
func ResizeFeaturesOf(node *corev1.Node) []string {
	return slices.DeleteFunc(slices.Clone(resizeFeatures), func(name string) bool { return !slices.Contains(node.Status.DeclaredFeatures, name) })
}

// RepresentsCluster reports whether a Node is the virtual node of the member with the given cluster ID.
func RepresentsCluster(node *corev1.Node, clusterID string) bool {
	return IsVirtual(node) && clusterID != "" && node.Labels[v1alpha1.LabelClusterID] == clusterID
}

// NameTaken reports whether another Node uses the name of a member's node: a real Node, or a Node that
// represents another cluster. Xylem never changes such a Node (I4). It returns false for nil.
func NameTaken(node *corev1.Node, clusterID string) bool {
	return node != nil && !RepresentsCluster(node, clusterID)
}

// DescribeNameTaken describes the name conflict and its solution, for a condition or an event.
func DescribeNameTaken(node *corev1.Node) string {
	if IsVirtual(node) {
		return fmt.Sprintf("Node %q represents another cluster (registration %q, cluster ID %q). Choose another spec.node.name. If that cluster is permanently gone, delete the Node once it has no Pods",
			node.Name, node.Labels[v1alpha1.LabelCluster], node.Labels[v1alpha1.LabelClusterID])
	}
	return fmt.Sprintf("Node %q already exists, and Xylem did not create it. Choose another spec.node.name, or delete that Node", node.Name)
}

// RegistrationReadyCondition returns the NodeReady condition of a registration. It reads the condition from
// the cached Node, which may be nil. The caller sets ObservedGeneration.
func RegistrationReadyCondition(node *corev1.Node, registration *v1alpha1.ClusterRegistration) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady}
	name := registration.NodeName()
	switch {
	case node == nil && registration.Status.ClusterID == "":
		c.Reason, c.Message = v1alpha1.ReasonNotConnected, fmt.Sprintf("Xylem creates Node %q once the member is connected", name)
		return c
	case node == nil:
		c.Message = fmt.Sprintf("Node %q does not exist", name)
		return c
	case NameTaken(node, registration.Status.ClusterID):
		c.Reason, c.Message = v1alpha1.ReasonNodeNameTaken, DescribeNameTaken(node)
		return c
	}
	ready := FindReadyCondition(node)
	if away := FindCondition(node, v1alpha1.NodeMemberAway); ready != nil && MemberAway(node) {
		if away.Reason == v1alpha1.ReasonConnecting || away.Reason == v1alpha1.ReasonSyncing {
			c.Message = away.Message // the Node will be created soon, usually for the first time
			return c
		}
		if away.Reason != v1alpha1.ReasonNoReadyNodes {
			c.Reason = v1alpha1.ReasonMemberAway
		}
		c.Message = awayMessage(registration, away)
		return c
	}
	if csiNode := FindCondition(node, v1alpha1.NodeCSINode); csiNode != nil {
		c.Reason, c.Message = csiNode.Reason, csiNode.Message
		return c
	}
	if ready == nil {
		c.Message = fmt.Sprintf("Node %q has not reported yet whether it is Ready", name)
		return c
	}
	if ready.Status == corev1.ConditionTrue {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonNodeReady
	}
	c.Message = ready.Message
	return c
}

// GroupsReadyCondition returns the NodeReady condition of a registration with spec.nodes, which is True if at least one of its
// virtual nodes is Ready, and the name of none is taken. list contains the virtual nodes, ordered by name, and taken a
// Node that has the name of one of them, or nil. problem describes problems of the groups.
func GroupsReadyCondition(list []corev1.Node, taken *corev1.Node, problem string, registration *v1alpha1.ClusterRegistration) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady}
	ready := 0
	for i := range list {
		one := RegistrationReadyCondition(&list[i], registration)
		if one.Status == metav1.ConditionTrue {
			ready++
		} else if c.Message == "" {
			c.Reason, c.Message = one.Reason, one.Message
		}
	}
	count := fmt.Sprintf("ready nodes: %d of %d", ready, len(list))
	switch {
	case taken != nil:
		c.Reason, c.Message = v1alpha1.ReasonNodeNameTaken, DescribeNameTaken(taken)+". "+count
	case ready > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNodeReady, count
	case registration.Status.ClusterID == "":
		c.Reason, c.Message = v1alpha1.ReasonNotConnected, "Xylem creates the virtual nodes of spec.nodes once the member is connected"
	case len(list) == 0:
		c.Message = "the member has no virtual node, because no rule in spec.nodes matches a node, or because Xylem has not read the member's nodes yet"
	default:
		c.Message = count + ": " + c.Message
	}
	if problem != "" {
		c.Message += "; " + problem
	}
	return c
}

// MemberAway reports whether a Node's member has been unreachable for longer than the grace period.
func MemberAway(node *corev1.Node) bool {
	c := FindCondition(node, v1alpha1.NodeMemberAway)
	return c != nil && c.Status == corev1.ConditionTrue
}

// AcceptsNoPods reports whether a Node has no capacity for Pods because all Ready nodes of its member
// are cordoned or tainted. A capacity that the registration declares still counts.
func AcceptsNoPods(node *corev1.Node) bool {
	ready := FindReadyCondition(node)
	return ready != nil && ready.Reason == v1alpha1.ReasonNoUsableNodes && node.Status.Allocatable.Pods().IsZero()
}

// DefaultEvictionDelay is how long a Pod without its own tolerations remains on a Node that is not
// ready: the tolerationSeconds that the API server's admission plugin sets.
const DefaultEvictionDelay = 300 * time.Second

// awayMessage describes how long a member has been unreachable, and what happens to its Pods.
func awayMessage(registration *v1alpha1.ClusterRegistration, away *corev1.NodeCondition) string {
	since := away.LastTransitionTime.UTC()
	cause, is, remedy := away.Message, "away", "Make the member reachable"
	if away.Reason == v1alpha1.ReasonNoReadyNodes {
		is, remedy = "unavailable", "Repair the member's nodes"
	}
	if registration.WhenAway() == v1alpha1.WhenAwayEvict {
		return fmt.Sprintf("member %q has been %s since %s: %s. The host keeps the member's Pods until %s. From then on, it evicts the Pods, unless their tolerations let them stay longer (spec.node.whenAway: Evict). The volumes remain. %s, or set spec.node.whenAway to Keep",
			registration.Name, is, since.Format(time.RFC3339), cause, since.Add(DefaultEvictionDelay).Format(time.RFC3339), remedy)
	}
	return fmt.Sprintf("member %q has been %s since %s: %s. The host keeps the member's Pods and volumes, however long the outage lasts, and the scheduler places new Pods in other members (spec.node.whenAway: Keep). %s. If the member is lost permanently, delete its ClusterRegistration and set the annotation %s=true on that ClusterRegistration",
		registration.Name, is, since.Format(time.RFC3339), cause, remedy, v1alpha1.AnnotationForceDeregister)
}

// FindReadyCondition returns a Node's Ready condition, or nil.
func FindReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	return FindCondition(node, corev1.NodeReady)
}

// IsReady reports whether a Node is Ready.
func IsReady(node *corev1.Node) bool {
	ready := FindReadyCondition(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// IsUsable reports whether a member's scheduler can place the host's Pods on one of the member's nodes.
func IsUsable(node *corev1.Node) bool {
	return IsReady(node) && !node.Spec.Unschedulable && node.DeletionTimestamp == nil && !slices.ContainsFunc(node.Spec.Taints, taintRepelsPods)
}

// taintRepelsPods reports whether a taint keeps ordinary Pods off a node, as on a control plane node. Such a
// node provides no capacity for the host's Pods.
func taintRepelsPods(taint corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule
}

// FindCondition returns a Node's condition of the given type, or nil.
func FindCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// SetCondition sets a condition and its times if it has changed. It does not update the
// heartbeat time, because the Lease is the heartbeat.
func SetCondition(node *corev1.Node, c corev1.NodeCondition, now metav1.Time) {
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	there := FindCondition(node, c.Type)
	if there == nil {
		node.Status.Conditions = append(node.Status.Conditions, c)
		return
	}
	if there.Status == c.Status {
		if there.Reason == c.Reason && there.Message == c.Message {
			return
		}
		c.LastTransitionTime = there.LastTransitionTime
	}
	*there = c
}

// UserName returns the user name of a node in the cluster that has it (k8s.io/kubernetes/pkg/auth/nodeidentifier).
func UserName(node string) string { return "system:node:" + node }
