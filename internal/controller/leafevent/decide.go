package leafevent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// tooOld: the API server keeps events for an hour by default (--event-ttl);
	// older ones are not repeated again.
	tooOld = time.Hour
	// settling is how long the objects of a new event may take to be in the
	// caches, which come by watches of their own; lookAgain, how often it is
	// looked meanwhile.
	settling  = 10 * time.Second
	lookAgain = 2 * time.Second

	// Limits of the events API in bytes (k8s.io/kubernetes/pkg/apis/core/validation),
	// which the core API does not hold old-style events to.
	messageLimit = 1024
	reasonLimit  = 128
	// nameLimit of an object.
	nameLimit = 253
)

// told is how often, first and last, an event happened.
type told struct {
	count       int32
	first, last time.Time
}

// occurrences reads both styles of events.
func occurrences(e *corev1.Event) told {
	t := told{count: max(e.Count, 1), first: e.FirstTimestamp.Time, last: e.LastTimestamp.Time}
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
	// A core/v1 event has times in seconds.
	t.first, t.last = t.first.Truncate(time.Second), t.last.Truncate(time.Second)
	return t
}

// observed is an event and what it is about, on both sides.
type observed struct {
	member mirror.Member
	event  *corev1.Event // nil: gone
	// leaf that it is about, root as the stamp names it; nil: not in the caches.
	leaf, root client.Object
	now        time.Time
}

// relevance of an event.
type relevance int

const (
	// ignored permanently.
	ignored relevance = iota
	// unsettled: what it is about may still come into the caches.
	unsettled
	// relevant: to be repeated on the root.
	relevant
)

// judge reports whether an event is to be repeated.
func judge(o observed) relevance {
	if o.event == nil || o.event.Type != corev1.EventTypeWarning || kindOf(o.event) == "" {
		return ignored
	}
	age := o.now.Sub(occurrences(o.event).last)
	switch {
	case age >= tooOld:
		return ignored
	case o.leaf != nil && o.leaf.GetUID() == o.event.InvolvedObject.UID && o.rootIsHere():
		return relevant
	case age < settling && age > -settling:
		return unsettled
	}
	return ignored
}

// kindOf the object that an event is about, empty unless it is one that we push.
func kindOf(e *corev1.Event) string {
	switch kind := e.InvolvedObject.Kind; kind {
	case "Pod", "PersistentVolumeClaim":
		return kind
	}
	return ""
}

// rootIsHere: the root is the one that the leaf's stamp names, and it has its
// leaf in this member by what the host says of it.
func (o observed) rootIsHere() bool {
	origin, ours := mirror.OriginIn(o.member.HostID, o.leaf)
	// A leaf has the name and namespace of its root: who can write a stamp in one
	// namespace of the member must not write to another namespace's users.
	if !ours || origin.Root != client.ObjectKeyFromObject(o.leaf) || o.root == nil || o.root.GetUID() != origin.UID {
		return false
	}
	switch root := o.root.(type) {
	case *corev1.Pod:
		return root.Spec.NodeName == o.member.NodeName || root.Spec.NodeName == "" && root.Status.NominatedNodeName == o.member.NodeName
	case *corev1.PersistentVolumeClaim:
		return root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID ||
			root.Spec.VolumeName == "" && root.Annotations[route.AnnSelectedNode] == o.member.NodeName
	}
	return false
}

// repeated is the event as it is repeated in the host.
func repeated(o observed) *corev1.Event {
	t := occurrences(o.event)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.root.GetNamespace(),
			Name:      nameOf(o.root.GetName(), o.member.ClusterID, o.event.UID),
			Labels:    map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelClusterID: o.member.ClusterID},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: kindOf(o.event), Namespace: o.root.GetNamespace(), Name: o.root.GetName(), UID: o.root.GetUID(),
			FieldPath: sanitize.Plain(o.event.InvolvedObject.FieldPath, messageLimit),
		},
		Type:           corev1.EventTypeWarning,
		Reason:         sanitize.Plain(o.event.Reason, reasonLimit),
		Message:        sanitize.Plain(fmt.Sprintf("member %q: %s", o.member.Registration, o.event.Message), messageLimit),
		Source:         corev1.EventSource{Component: sourceOf(o.event), Host: o.member.NodeName},
		Count:          t.count,
		FirstTimestamp: metav1.NewTime(t.first),
		LastTimestamp:  metav1.NewTime(t.last),
	}
}

// sourceOf is who says it in the member.
func sourceOf(e *corev1.Event) string {
	if e.Source.Component != "" {
		return sanitize.Plain(e.Source.Component, reasonLimit)
	}
	return sanitize.Plain(e.ReportingController, reasonLimit)
}

// brought brings an event that was repeated before up to date; nil if it is.
func brought(there, want *corev1.Event) *corev1.Event {
	if there.Count == want.Count && there.LastTimestamp.Equal(&want.LastTimestamp) && there.Message == want.Message {
		return nil
	}
	after := there.DeepCopy()
	after.Count, after.LastTimestamp, after.Message = want.Count, want.LastTimestamp, want.Message
	return after
}

// nameOf is the name under which an event of a member is repeated on a root:
// like other events, the object's name and something that is the event's own.
func nameOf(root, clusterID string, event types.UID) string {
	sum := sha256.Sum256([]byte(clusterID + "/" + string(event)))
	suffix := "." + hex.EncodeToString(sum[:8])
	if longest := nameLimit - len(suffix); len(root) > longest {
		root = strings.TrimRight(root[:longest], ".-")
	}
	return root + suffix
}
