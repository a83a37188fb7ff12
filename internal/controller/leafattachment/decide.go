package leafattachment

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
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/text"
)

const (
	// patience is how long attaching and detaching may take before they are reported. Both usually
	// take seconds, so an immediate report would only cost another write for each Pod.
	patience = 15 * time.Second
	// nodesShown is the maximum number of nodes in a message, since a volume may be attached to
	// many.
	nodesShown = 4
	// wordsLimit is the maximum length, in bytes, of a driver's error in a message. nodeLimit is
	// the maximum length of a node name.
	wordsLimit = 400
	nodeLimit  = 253
)

// observed is the input of decide.
type observed struct {
	// shown is the root claim's condition Attached, or nil.
	shown *corev1.PersistentVolumeClaimCondition
	// gone means that the member no longer has the leaf PV.
	gone bool
	// driver is the leaf PV's driver. It is empty for in-tree volume types, which any driver may
	// attach.
	driver string
	// attachments are the VolumeAttachments that name the leaf PV.
	attachments []storagev1.VolumeAttachment
	// unreadable is the reason why attachments are unknown, or nil.
	unreadable *mirror.Refusal
	member     mirror.Member
	now        time.Time
}

// statement is the condition Attached that a claim should have. Without a status, the claim should
// not have the condition.
type statement struct {
	status          corev1.ConditionStatus
	reason, message string
}

// decide returns the condition that the claim should have, or nil if it does not change. After the
// returned time, if any, the result may change without an event.
func decide(o observed) (*statement, time.Duration) {
	if o.unreadable != nil {
		if o.shown == nil || o.shown.Status == corev1.ConditionUnknown && o.shown.Reason == o.unreadable.Reason {
			return nil, 0
		}
		return &statement{corev1.ConditionUnknown, o.unreadable.Reason, o.unreadable.Message}, 0
	}
	if o.gone {
		return &statement{}, 0
	}
	nodes, again := o.nodes()
	if len(nodes) == 0 {
		if o.shown == nil {
			return nil, again
		}
		return &statement{corev1.ConditionFalse, v1alpha1.ReasonDetached, fmt.Sprintf("not attached to any node of member %q: no Pod there needs the volume", o.member.Registration)}, again
	}
	s := &statement{corev1.ConditionFalse, nodes[0].state.reason(), nodes[0].words(o.member)}
	if nodes[0].state >= detaching {
		s.status = corev1.ConditionTrue
	}
	for _, n := range nodes[1:min(len(nodes), nodesShown)] {
		s.message += "; " + n.words(o.member)
	}
	if more := len(nodes) - nodesShown; more > 0 {
		s.message += "; and " + text.Count(more, "other node")
	}
	if nodes[0].state <= detachFailed {
		s.message += ". Ask the member's admin to check the driver and the node"
	}
	return s, again
}

// state is the state of a volume on a node. States are ordered by importance: those for which a
// Pod waits come first.
type state int

const (
	attachFailed state = iota
	detachFailed
	attaching
	detaching // in this state and the next, the volume is attached
	attached
)

func (s state) reason() string {
	return [...]string{
		attachFailed: v1alpha1.ReasonAttachFailed, detachFailed: v1alpha1.ReasonDetachFailed, attaching: v1alpha1.ReasonAttaching,
		detaching: v1alpha1.ReasonDetaching, attached: v1alpha1.ReasonAttached,
	}[s]
}

// node is the state of the volume on one node, according to a VolumeAttachment.
type node struct {
	name  string
	state state
	since time.Time
	// failure is the driver's error.
	failure string
}

// nodes returns what the attachments report about each node, the most important first. again is the
// time until an operation counts as unusually long, or 0.
func (o observed) nodes() (nodes []node, again time.Duration) {
	for i := range o.attachments {
		a := &o.attachments[i]
		if o.driver != "" && a.Spec.Attacher != o.driver {
			continue // the attachment was made for another driver
		}
		n, wait := nodeOf(a, o.now)
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
		if n != nil {
			nodes = append(nodes, *n)
		}
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.name, b.name)) })
	return slices.CompactFunc(nodes, func(a, b node) bool { return a.name == b.name && a.state == b.state }), again
}

// nodeOf returns what a VolumeAttachment reports, or nil if the volume is not on the node and no
// operation takes unusually long. wait is the time until an operation counts as unusually long.
func nodeOf(a *storagev1.VolumeAttachment, now time.Time) (n *node, wait time.Duration) {
	n = &node{name: a.Spec.NodeName, state: attached, since: statusTime(a)}
	deleting := a.DeletionTimestamp != nil
	switch {
	case deleting && a.Status.DetachError != nil:
		n.state, n.failure = detachFailed, a.Status.DetachError.Message
	case deleting:
		if wait := until(a.DeletionTimestamp.Time, now); wait > 0 {
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
		if wait := until(n.since, now); wait > 0 {
			return nil, wait
		}
	}
	return n, 0
}

// until returns how much of patience is left. The member's clock, which set began, may be ahead.
func until(began, now time.Time) time.Duration {
	return min(began.Add(patience).Sub(now), patience)
}

// statusTime returns the time of the last status write, which leafcache keeps, or else the time at
// which the attachment was requested.
func statusTime(a *storagev1.VolumeAttachment) time.Time {
	if len(a.ManagedFields) > 0 && a.ManagedFields[0].Time != nil {
		return a.ManagedFields[0].Time.Time
	}
	return a.CreationTimestamp.Time
}

// words returns the part of the message about the node.
func (n node) words(m mirror.Member) string {
	name, since := sanitize.Plain(n.name, nodeLimit), metav1.NewTime(n.since).UTC().Format(time.RFC3339)
	switch n.state {
	case attachFailed:
		return fmt.Sprintf("member %q cannot attach the volume to node %q: %s", m.Registration, name, failure(n.failure))
	case detachFailed:
		return fmt.Sprintf("member %q cannot detach the volume from node %q: %s", m.Registration, name, failure(n.failure))
	case attaching:
		return fmt.Sprintf("member %q has been attaching the volume to node %q since %s", m.Registration, name, since)
	case detaching:
		return fmt.Sprintf("member %q has been detaching the volume from node %q since %s", m.Registration, name, since)
	case attached:
	}
	return fmt.Sprintf("attached to node %q of member %q since %s", name, m.Registration, since)
}

// failure returns a driver's error for a message.
func failure(words string) string {
	return cmp.Or(sanitize.Line(words, wordsLimit), "the driver reports no cause")
}
