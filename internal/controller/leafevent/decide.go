package leafevent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// maxEventAge is the age at which an event is ignored. The API server keeps events for an hour
	// by default (--event-ttl).
	maxEventAge = time.Hour
	// settlingTime is how long it may take until the leaf and the root of a new event are in the
	// caches, which have separate watches. settlingCheckInterval is the interval between checks until
	// then.
	settlingTime          = 10 * time.Second
	settlingCheckInterval = 2 * time.Second

	// Limits of the events.k8s.io API in bytes (k8s.io/kubernetes/pkg/apis/core/validation).
	// The core API does not validate them for old-style events.
	messageLimit = 1024
	reasonLimit  = 128
	// nameLimit is the maximum length of an object name.
	nameLimit = 253

	// failedBinding is a reason that the PV controller uses
	// (k8s.io/kubernetes/pkg/controller/volume/events).
	failedBinding = "FailedBinding"
)

// occurrence records how often an event occurred, and when it first and last occurred.
type occurrence struct {
	count       int32
	first, last time.Time
}

// occurrenceOf returns how often and when a core/v1 or events.k8s.io event occurred.
func occurrenceOf(e *corev1.Event) occurrence {
	t := occurrence{count: max(e.Count, 1), first: e.FirstTimestamp.Time, last: e.LastTimestamp.Time}
	if t.first.IsZero() {
		t.first = e.EventTime.Time
	}
	if t.last.IsZero() {
		t.last = t.first
	}
	if e.Series != nil {
		t.count = max(e.Series.Count, t.count)
		if e.Series.LastObservedTime.After(t.last) {
			t.last = e.Series.LastObservedTime.Time
		}
	}
	if t.first.IsZero() {
		t.first, t.last = e.CreationTimestamp.Time, e.CreationTimestamp.Time
	}
	// The times of a core/v1 event have a precision of a second.
	t.first, t.last = t.first.Truncate(time.Second), t.last.Truncate(time.Second)
	return t
}

// observed is an event with the leaf and the root that it concerns.
type observed struct {
	member mirror.Member
	event  *corev1.Event // nil if it does not exist
	// leaf is the event's object, and root is the object that leaf's stamp names. Each is nil if it
	// is not in the caches.
	leaf, root client.Object
	now        time.Time
}

// relevance is what to do with an event.
type relevance int

const (
	// ignored events are never copied.
	ignored relevance = iota
	// unsettled means that the leaf or the root may not be in the caches yet.
	unsettled
	// relevant events are copied to the root.
	relevant
)

// judgeRelevance decides whether an event is copied.
func judgeRelevance(o observed) relevance {
	if o.event == nil || o.event.Type != corev1.EventTypeWarning || kindOfEventObject(o.event) == "" {
		return ignored
	}
	age := o.now.Sub(occurrenceOf(o.event).last)
	switch {
	case age >= maxEventAge, o.isFailedBindingResolved():
		return ignored
	case o.reportsFailedBinding() && age < settlingTime && age > -settlingTime:
		return unsettled
	case o.leaf != nil && o.leaf.GetUID() == o.event.InvolvedObject.UID && o.isRootInMember():
		return relevant
	case age < settlingTime && age > -settlingTime:
		return unsettled
	}
	return ignored
}

// reportsFailedBinding reports whether the event states that a leaf claim cannot be bound to the volume that
// Xylem chose for it. The member's PV controller emits this event for each reused or adopted
// volume, until Xylem has set the leaf PV's claimRef to the claim.
func (o observed) reportsFailedBinding() bool {
	claim, ok := o.leaf.(*corev1.PersistentVolumeClaim)
	return ok && o.event.Reason == failedBinding && claim.Spec.VolumeName != ""
}

// isFailedBindingResolved reports whether a claim that could not be bound (reportsFailedBinding) is now bound, so that the
// event is no longer true.
func (o observed) isFailedBindingResolved() bool {
	claim, ok := o.leaf.(*corev1.PersistentVolumeClaim)
	return ok && o.reportsFailedBinding() && claim.Status.Phase == corev1.ClaimBound
}

// kindOfEventObject returns the kind of an event's object, or an empty string if Xylem does not push
// that kind.
func kindOfEventObject(e *corev1.Event) string {
	switch kind := e.InvolvedObject.Kind; kind {
	case "Pod", "PersistentVolumeClaim":
		return kind
	}
	return ""
}

// isRootInMember reports whether the root is the one in the leaf's stamp and, according to the
// host, has its leaf in this member.
func (o observed) isRootInMember() bool {
	origin, ours := mirror.LeafOriginFromHost(o.member.HostID, o.leaf)
	// A leaf has the name and namespace of its root. Without this check, a stamp in one
	// namespace of the member could add events to another namespace of the host.
	if !ours || origin.Root != client.ObjectKeyFromObject(o.leaf) || o.root == nil || o.root.GetUID() != origin.UID {
		return false
	}
	switch root := o.root.(type) {
	case *corev1.Pod:
		return o.member.HasNode(root.Spec.NodeName) || root.Spec.NodeName == "" && o.member.HasNode(root.Status.NominatedNodeName)
	case *corev1.PersistentVolumeClaim:
		return root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID ||
			root.Spec.VolumeName == "" && o.member.HasNode(root.Annotations[route.AnnSelectedNode])
	}
	return false
}

// newHostEvent returns the copy of the event for the host.
func newHostEvent(o observed) *corev1.Event {
	t := occurrenceOf(o.event)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.root.GetNamespace(),
			Name:      hostEventName(o.root.GetName(), o.member.ClusterID, o.event.UID),
			Labels:    map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelClusterID: o.member.ClusterID},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: kindOfEventObject(o.event), Namespace: o.root.GetNamespace(), Name: o.root.GetName(), UID: o.root.GetUID(),
			FieldPath: mirror.PlainText(o.event.InvolvedObject.FieldPath, messageLimit),
		},
		Type:           corev1.EventTypeWarning,
		Reason:         mirror.PlainText(o.event.Reason, reasonLimit),
		Message:        mirror.PlainText(fmt.Sprintf("member %q: %s", o.member.Registration, o.event.Message), messageLimit),
		Source:         corev1.EventSource{Component: eventComponent(o.event), Host: o.nodeOfRoot()},
		Count:          t.count,
		FirstTimestamp: metav1.NewTime(t.first),
		LastTimestamp:  metav1.NewTime(t.last),
	}
}

// nodeOfRoot returns the name of the root's node in this member. A claim without a selected node has the member's.
func (o observed) nodeOfRoot() string {
	var names []string
	switch root := o.root.(type) {
	case *corev1.Pod:
		names = []string{root.Spec.NodeName, root.Status.NominatedNodeName}
	case *corev1.PersistentVolumeClaim:
		names = []string{root.Annotations[route.AnnSelectedNode]}
	}
	if i := slices.IndexFunc(names, o.member.HasNode); i >= 0 {
		return names[i]
	}
	return o.member.NodeName
}

// eventComponent returns the component that reported the event in the member.
func eventComponent(e *corev1.Event) string {
	if e.Source.Component != "" {
		return mirror.PlainText(e.Source.Component, reasonLimit)
	}
	return mirror.PlainText(e.ReportingController, reasonLimit)
}

// updatedEvent returns an updated copy of an existing event, or nil if it is up to date.
func updatedEvent(there, want *corev1.Event) *corev1.Event {
	if there.Count == want.Count && there.LastTimestamp.Equal(&want.LastTimestamp) && there.Message == want.Message {
		return nil
	}
	after := there.DeepCopy()
	after.Count, after.LastTimestamp, after.Message = want.Count, want.LastTimestamp, want.Message
	return after
}

// hostEventName returns the name of a copied event. As for other events, it is the object's name and
// a unique suffix.
func hostEventName(root, clusterID string, event types.UID) string {
	sum := sha256.Sum256([]byte(clusterID + "/" + string(event)))
	suffix := "." + hex.EncodeToString(sum[:8])
	if longest := nameLimit - len(suffix); len(root) > longest {
		root = strings.TrimRight(root[:longest], ".-")
	}
	return root + suffix
}
