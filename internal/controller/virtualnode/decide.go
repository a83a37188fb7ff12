package virtualnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

// observed is the input of decideNode for a registration and its Node.
type observed struct {
	registration *v1alpha1.ClusterRegistration // nil means that a live read found none
	// name is the name of the virtual node. group is the group of the member's nodes that it represents. It is nil if the
	// Node represents the whole member, or if its group is not known yet. lost means that its group no longer exists.
	name  string
	group *member.NodeGroup
	lost  bool
	// memberReady reports whether the member is ready as a whole.
	memberReady bool
	// node is the Node with that name, even if it is foreign. It may be nil.
	node *corev1.Node
	// pods is the number of Pods bound to the Node, even if somebody has deleted it. They are counted
	// only if the Node must go.
	pods         int
	state        fleet.State
	knownToFleet bool // whether the fleet has the registration
	// awaySince is when the member was first observed as away, or zero.
	awaySince time.Time
	grace     time.Duration
	recheck   time.Duration // the interval of checks for a free name
	now       metav1.Time
	podIP     string
	port      int32
	// declaresFeatures reports whether the host has the Node's declared features.
	declaresFeatures bool
}

// registrationLeaving reports whether all of the member's Nodes must go.
func (o observed) registrationLeaving() bool {
	return o.registration == nil || o.registration.DeletionTimestamp != nil
}

// goesAlone reports whether the Node must go although the member stays, because it has lost its group.
func (o observed) goesAlone() bool { return o.lost && !o.registrationLeaving() }

// mustGo reports whether the Node must be deleted when no Pods are bound to it.
func (o observed) mustGo() bool { return o.lost || o.registrationLeaving() }

// isWholeMember reports whether the Node represents all of the member's nodes.
func (o observed) isWholeMember() bool {
	return o.registration != nil && o.name == o.registration.NodeName()
}

// groupUnknown reports whether the Node may represent a group that the Link has not published, because the rules have just
// changed. Its Pods may run, so that nothing about it changes.
func (o observed) groupUnknown() bool {
	return o.registration != nil && !o.isWholeMember() && o.group == nil && !o.lost && o.memberReady
}

// summary returns the summary of the member's nodes that the Node represents, or nil if it is not known.
func (o observed) summary() *member.NodeSummary {
	switch {
	case o.group != nil:
		return &o.group.Summary
	case o.isWholeMember():
		return o.state.NodeSummary
	}
	return nil
}

// nodeNamesRegistration reports whether the Node represents this registration, not a later one of the same
// cluster.
func (o observed) nodeNamesRegistration() bool {
	return o.registration == nil || o.node.Labels[v1alpha1.LabelCluster] == o.registration.Name
}

// isNodeOf reports whether the Node exists, and names this registration.
func (o observed) isNodeOf(registration string) bool {
	return o.node != nil && nodes.IsVirtual(o.node) && o.node.Labels[v1alpha1.LabelCluster] == registration
}

// nodeClusterID returns the cluster ID that the Node represents. It is the recorded one, because
// the cluster that the connection found may have been rejected.
func (o observed) nodeClusterID() string {
	if o.registration == nil {
		return o.node.Labels[v1alpha1.LabelClusterID]
	}
	return o.registration.Status.ClusterID
}

// decision is the next action, and when to check again if no event enqueues the registration.
type decision struct {
	do        nodeAction // nil means that nothing is done
	again     time.Duration
	nameTaken bool // another Node has the name
}

// nodeAction is one of the types below.
type nodeAction interface{ isAction() }

type (
	createNode      struct{ node *corev1.Node }
	patchNode       struct{ after *corev1.Node }
	patchNodeStatus struct{ after *corev1.Node }
	removeNode      struct{}
)

func (createNode) isAction()      {}
func (patchNode) isAction()       {}
func (patchNodeStatus) isAction() {}
func (removeNode) isAction()      {}

func decideNode(o observed) decision {
	switch {
	case o.registration == nil && o.node == nil:
		return decision{}
	case o.registration != nil && o.registration.Status.ClusterID == "":
		return decision{} // the member's identity is not recorded yet
	case nodes.NameTaken(o.node, o.nodeClusterID()):
		return decision{nameTaken: !o.registrationLeaving(), again: recheckOfTakenName(o)}
	case o.mustGo() && (o.node == nil && o.pods == 0 || o.node != nil && !o.nodeNamesRegistration()):
		return decision{}
	case o.mayRemove():
		return decision{do: removeNode{}}
	case o.node == nil:
		node := newVirtualNode(o)
		_, again := setNodeStatus(node, o)
		return decision{do: createNode{node}, again: again}
	}
	after := o.node.DeepCopy()
	setMetadata(after, o)
	if !equality.Semantic.DeepEqual(o.node, after) {
		return decision{do: patchNode{after}} // the watch enqueues the registration again for the status
	}
	changed, again := setNodeStatus(after, o)
	if o.pods == 0 {
		again = route.SoonerDelay(again, o.lostWait())
	}
	if changed {
		return decision{do: patchNodeStatus{after}, again: again}
	}
	return decision{again: again}
}

// mayRemove reports whether the Node must go, and can be deleted now.
func (o observed) mayRemove() bool {
	return o.mustGo() && o.node != nil && o.pods == 0 && cordonedIfNeeded(o) && o.lostWait() == 0
}

func recheckOfTakenName(o observed) time.Duration {
	if o.registrationLeaving() {
		return 0
	}
	return o.recheck
}

// cordonedIfNeeded reports whether the Node is cordoned, as it must be before it is deleted. The Node
// of a registration that is gone needs no cordon.
func cordonedIfNeeded(o observed) bool { return o.registration == nil || o.node.Spec.Unschedulable }

// lostDelay is how long Xylem keeps a Node without a group at least. A Pod that the scheduler binds before it receives the
// cordon would lose its Node, and Kubernetes would delete it.
const lostDelay = 10 * time.Second

// lostWait returns how long the Node must still be kept.
func (o observed) lostWait() time.Duration {
	since := requestedBefore(o.node).Lost
	switch {
	case !o.goesAlone():
		return 0
	case since == nil:
		return lostDelay
	}
	return max(0, since.Add(lostDelay).Sub(o.now.Time))
}

// memberVerdict reports whether the host's Pods can run in a member.
type memberVerdict struct {
	ready           bool
	reason, message string
	// passing means that the problem may disappear soon without action.
	passing bool
}

// judgeMember reports whether the Node's part of the member is ready, or why it is not.
func judgeMember(o observed) memberVerdict {
	if o.registration == nil {
		return memberVerdict{reason: v1alpha1.ReasonRegistrationGone, message: "the ClusterRegistration of this node is gone, but the cluster was not deregistered"}
	}
	s := o.state
	switch {
	case o.knownToFleet && !s.Connected && s.Problem != nil:
		return memberVerdict{reason: s.Problem.Reason, message: s.Problem.Message, passing: mayPassWithoutAction(s.Problem.Reason)}
	case !o.knownToFleet, !s.Connected, s.Identity.ClusterID != o.registration.Status.ClusterID:
		return memberVerdict{reason: v1alpha1.ReasonConnecting, message: "Xylem is connecting to the member", passing: true}
	case s.Synced && o.lost:
		return memberVerdict{ready: true, reason: v1alpha1.ReasonNoUsableNodes,
			message: "no node of the member belongs to this virtual node any longer (spec.nodes). It accepts no new Pods, and Xylem deletes it once it has none"}
	case !s.Synced, o.summary() == nil:
		return memberVerdict{reason: v1alpha1.ReasonSyncing, message: "Xylem is reading the member's objects", passing: true}
	}
	return judgeNodes(o)
}

func judgeNodes(o observed) memberVerdict {
	whole, its, summary := "the member", "its", o.summary()
	if o.group != nil {
		whole, its = fmt.Sprintf("group %q of the member's nodes", o.group.Name), "the group's"
	}
	switch {
	case summary.Ready == 0:
		return memberVerdict{reason: v1alpha1.ReasonNoReadyNodes, message: whole + " has no Ready node. Check the nodes of the member"}
	case summary.Nodes == 0:
		// The Node stays Ready, because the host would otherwise evict its Pods, and in a single
		// cluster, a cordon does not evict Pods. The Node has no capacity, so no new Pods are bound
		// to it.
		return memberVerdict{ready: true, reason: v1alpha1.ReasonNoUsableNodes, message: fmt.Sprintf(
			"the member is connected, but accepts no new Pods: all of %s Ready nodes (%d) are cordoned or tainted", its, summary.Ready)}
	}
	return memberVerdict{ready: true, reason: v1alpha1.ReasonReady, message: fmt.Sprintf("the member is connected; %s Ready nodes: %d", its, summary.Nodes)}
}

func mayPassWithoutAction(reason string) bool {
	switch reason {
	case v1alpha1.ReasonUnreachable, v1alpha1.ReasonLeaseRejected, v1alpha1.ReasonWaitingForFence, v1alpha1.ReasonConnecting:
		return true
	}
	return false
}
