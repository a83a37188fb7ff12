package leafpvc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	// attachPatience is how long attaching and detaching may take before they are reported. Both usually
	// take seconds, so an immediate report would only cost another write for each Pod.
	attachPatience = 15 * time.Second
	// maxNodesInMessage is the maximum number of nodes in a message, since a volume may be attached to
	// many.
	maxNodesInMessage = 4
	// maxDriverError is the maximum length, in bytes, of a driver's error in a message. maxNodeName is
	// the maximum length of a node name.
	maxDriverError = 400
	maxNodeName    = 253
)

// attachments is the input of decideAttached.
type attachments struct {
	// shown is the root claim's condition Attached, or nil.
	shown *corev1.PersistentVolumeClaimCondition
	// gone means that the member no longer has the leaf PV.
	gone bool
	// driver is the leaf PV's driver. It is empty for in-tree volume types, which any driver may
	// attach.
	driver string
	// found are the VolumeAttachments that name the leaf PV.
	found []storagev1.VolumeAttachment
	// unreadable is the reason why attachments are unknown, or nil.
	unreadable *mirror.Refusal
	member     mirror.Member
	now        time.Time
}

// decideAttached returns the condition that the claim should have, or nil if it does not change. After the
// returned time, if any, the result may change without an event.
func decideAttached(o attachments) (*report.AttachedCondition, time.Duration) {
	if o.unreadable != nil {
		if o.shown == nil || o.shown.Status == corev1.ConditionUnknown && o.shown.Reason == o.unreadable.Reason {
			return nil, 0
		}
		return &report.AttachedCondition{Status: corev1.ConditionUnknown, Reason: o.unreadable.Reason, Message: o.unreadable.Message}, 0
	}
	if o.gone {
		return &report.AttachedCondition{}, 0
	}
	nodes, again := o.statesOnNodes()
	if len(nodes) == 0 {
		if o.shown == nil {
			return nil, again
		}
		return &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonDetached, Message: fmt.Sprintf("not attached to any node of member %q: no Pod there needs the volume", o.member.Registration)}, again
	}
	s := &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: nodes[0].state.conditionReason(), Message: nodes[0].describe(o.member)}
	if nodes[0].state >= detaching {
		s.Status = corev1.ConditionTrue
	}
	for _, n := range nodes[1:min(len(nodes), maxNodesInMessage)] {
		s.Message += "; " + n.describe(o.member)
	}
	if more := len(nodes) - maxNodesInMessage; more > 0 {
		s.Message += "; and " + wording.CountNoun(more, "other node")
	}
	if nodes[0].state <= detachFailed {
		s.Message += ". Ask the member's admin to check the driver and the node"
	}
	return s, again
}

// attachState is the state of a volume on a node. States are ordered by importance: those for which a
// Pod waits come first.
type attachState int

const (
	attachFailed attachState = iota
	detachFailed
	attaching
	detaching // in this state and the next, the volume is attached
	attached
)

func (s attachState) conditionReason() string {
	return [...]string{
		attachFailed: v1alpha1.ReasonAttachFailed, detachFailed: v1alpha1.ReasonDetachFailed, attaching: v1alpha1.ReasonAttaching,
		detaching: v1alpha1.ReasonDetaching, attached: v1alpha1.ReasonAttached,
	}[s]
}

// nodeState is the state of the volume on one node, according to a VolumeAttachment.
type nodeState struct {
	name  string
	state attachState
	since time.Time
	// failure is the driver's error.
	failure string
}

// statesOnNodes returns what the attachments report about each node, the most important first. again is the
// time until an operation counts as unusually long, or 0.
func (o attachments) statesOnNodes() (nodes []nodeState, again time.Duration) {
	for i := range o.found {
		a := &o.found[i]
		if o.driver != "" && a.Spec.Attacher != o.driver {
			continue // the attachment was made for another driver
		}
		n, wait := stateOnNode(a, o.now)
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
		if n != nil {
			nodes = append(nodes, *n)
		}
	}
	slices.SortFunc(nodes, func(a, b nodeState) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.name, b.name)) })
	return slices.CompactFunc(nodes, func(a, b nodeState) bool { return a.name == b.name && a.state == b.state }), again
}

// stateOnNode returns what a VolumeAttachment reports, or nil if the volume is not on the node and no
// operation takes unusually long. wait is the time until an operation counts as unusually long.
func stateOnNode(a *storagev1.VolumeAttachment, now time.Time) (n *nodeState, wait time.Duration) {
	n = &nodeState{name: a.Spec.NodeName, state: attached, since: lastStatusWrite(a)}
	deleting := a.DeletionTimestamp != nil
	switch {
	case deleting && a.Status.DetachError != nil:
		n.state, n.failure = detachFailed, a.Status.DetachError.Message
	case deleting:
		if wait := patienceLeft(a.DeletionTimestamp.Time, now); wait > 0 {
			if a.Status.Attached {
				return n, wait
			}
			return nil, wait
		}
		if !a.Status.Attached {
			return nil, 0
		}
		n.state, n.since = detaching, a.DeletionTimestamp.Time
	case a.Status.Attached:
	case a.Status.AttachError != nil:
		n.state, n.failure = attachFailed, a.Status.AttachError.Message
	default:
		n.state, n.since = attaching, a.CreationTimestamp.Time
		if wait := patienceLeft(n.since, now); wait > 0 {
			return nil, wait
		}
	}
	return n, 0
}

// patienceLeft returns how much of attachPatience is left. The member's clock, which set began, may be ahead.
func patienceLeft(began, now time.Time) time.Duration {
	return min(began.Add(attachPatience).Sub(now), attachPatience)
}

// lastStatusWrite returns the time of the last status write, which leafcache keeps, or else the time at
// which the attachment was requested.
func lastStatusWrite(a *storagev1.VolumeAttachment) time.Time {
	if len(a.ManagedFields) > 0 && a.ManagedFields[0].Time != nil {
		return a.ManagedFields[0].Time.Time
	}
	return a.CreationTimestamp.Time
}

// describe returns the part of the message about the node.
func (n nodeState) describe(m mirror.Member) string {
	name, since := mirror.PlainText(n.name, maxNodeName), metav1.NewTime(n.since).UTC().Format(time.RFC3339)
	switch n.state {
	case attachFailed:
		return fmt.Sprintf("member %q cannot attach the volume to node %q: %s", m.Registration, name, driverError(n.failure))
	case detachFailed:
		return fmt.Sprintf("member %q cannot detach the volume from node %q: %s", m.Registration, name, driverError(n.failure))
	case attaching:
		return fmt.Sprintf("member %q has been attaching the volume to node %q since %s", m.Registration, name, since)
	case detaching:
		return fmt.Sprintf("member %q has been detaching the volume from node %q since %s", m.Registration, name, since)
	case attached:
	}
	return fmt.Sprintf("attached to node %q of member %q since %s", name, m.Registration, since)
}

// driverError returns a driver's error for a message.
func driverError(text string) string {
	return cmp.Or(mirror.PlainLine(text, maxDriverError), "the driver reports no cause")
}
