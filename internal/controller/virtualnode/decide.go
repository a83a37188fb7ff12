package virtualnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/nodes"
)

// observed is all that is known of a registration and its Node.
type observed struct {
	registration *v1alpha1.ClusterRegistration // nil: there is none, by a live read
	// node of that name, whosoever it is, or the one left behind; nil: none.
	node *corev1.Node
	// pods bound to the node; counted only if it may have to go.
	pods  int
	state fleet.State
	known bool // the fleet has a state
	// awaySince is when the member was first seen away, zero if it is not.
	awaySince time.Time
	grace     time.Duration
	now       metav1.Time
	podIP     string
	port      int32
}

// leaving: the Node has to go once nothing is bound to it.
func (o observed) leaving() bool {
	return o.registration == nil || o.registration.DeletionTimestamp != nil
}

// named: the Node represents this very registration, and not for a later one
// of the same cluster.
func (o observed) named() bool {
	return o.registration == nil || o.node.Labels[v1alpha1.LabelCluster] == o.registration.Name
}

// clusterID that the Node represents. The registration's record counts, and not
// what the connection found: that may have been refused.
func (o observed) clusterID() string {
	if o.registration == nil {
		return o.node.Labels[v1alpha1.LabelClusterID]
	}
	return o.registration.Status.ClusterID
}

// decision is what to do, and when to look again without being enqueued.
type decision struct {
	do    action // nil: nothing
	again time.Duration
	taken bool // the name is another Node's
}

// action is one of create, patch, patchStatus, remove.
type action interface{ isAction() }

type (
	create      struct{ node *corev1.Node }
	patch       struct{ after *corev1.Node }
	patchStatus struct{ after *corev1.Node }
	remove      struct{}
)

func (create) isAction()      {}
func (patch) isAction()       {}
func (patchStatus) isAction() {}
func (remove) isAction()      {}

func decide(o observed) decision {
	switch {
	case o.registration == nil && o.node == nil:
		return decision{}
	case o.registration != nil && o.registration.Status.ClusterID == "":
		return decision{} // who the member is, is not known
	case nodes.Taken(o.node, o.clusterID()):
		return decision{taken: !o.leaving(), again: takenAgain(o)}
	case o.leaving() && (o.node == nil || !o.named()):
		return decision{}
	case o.leaving() && o.pods == 0 && cordoned(o):
		return decision{do: remove{}}
	case o.node == nil:
		node := newNode(o)
		_, again := setStatus(node, o)
		return decision{do: create{node}, again: again}
	}
	after := o.node.DeepCopy()
	setMeta(after, o)
	if !equality.Semantic.DeepEqual(o.node, after) {
		return decision{do: patch{after}} // the watch brings us back for the status
	}
	changed, again := setStatus(after, o)
	if changed {
		return decision{do: patchStatus{after}, again: again}
	}
	return decision{again: again}
}

func takenAgain(o observed) time.Duration {
	if o.leaving() {
		return 0
	}
	return takenRetry
}

// cordoned: no new Pod can come while the Node goes. A Node that its
// registration left behind is removed as it is.
func cordoned(o observed) bool { return o.registration == nil || o.node.Spec.Unschedulable }

// verdict on whether Pods of the host can run in a member.
type verdict struct {
	ready           bool
	reason, message string
	// passing: the cause may go by itself shortly.
	passing bool
}

// judge reports whether the member is ready, and if not, why.
func judge(o observed) verdict {
	if o.registration == nil {
		return verdict{reason: v1alpha1.ReasonRegistrationGone, message: "the ClusterRegistration of this node is gone without a deregistration"}
	}
	s := o.state
	switch {
	case o.known && !s.Connected && s.Problem != nil:
		return verdict{reason: s.Problem.Reason, message: s.Problem.Message, passing: passes(s.Problem.Reason)}
	case !o.known, !s.Connected, s.Identity.ClusterID != o.registration.Status.ClusterID:
		return verdict{reason: v1alpha1.ReasonConnecting, message: "Xylem is connecting to the member", passing: true}
	case !s.Synced, s.Node == nil:
		return verdict{reason: v1alpha1.ReasonSyncing, message: "Xylem is reading the member's objects", passing: true}
	case s.Node.Ready == 0:
		return verdict{reason: v1alpha1.ReasonNoReadyNodes, message: "the member has no Ready node. Check its nodes"}
	case s.Node.Nodes == 0:
		// Were this NotReady, the host would evict what runs there, which a cordon
		// does in no single cluster. Without capacity, nothing new comes.
		return verdict{ready: true, reason: v1alpha1.ReasonReady, message: fmt.Sprintf(
			"the member is connected, but takes no new Pods: all of its Ready nodes (%d) are cordoned or tainted", s.Node.Ready)}
	}
	return verdict{ready: true, reason: v1alpha1.ReasonReady, message: fmt.Sprintf("the member is connected; its Ready nodes: %d", s.Node.Nodes)}
}

func passes(reason string) bool {
	switch reason {
	case v1alpha1.ReasonUnreachable, v1alpha1.ReasonWaitingForFence, v1alpha1.ReasonConnecting:
		return true
	}
	return false
}
