package tree

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

const (
	// eventsShown is the maximum number of events to show for each object.
	eventsShown = 4
	// manager is the reporting controller of Xylem's own events.
	manager = "xylem"
)

// claimConditions returns all conditions of a claim, because each reports a problem or
// progress. The exception is Unused=False, which every claim that a Pod uses has from Kubernetes
// 1.37 on.
func claimConditions(claim *corev1.PersistentVolumeClaim) []inspect.Condition {
	var shown []inspect.Condition
	for _, c := range claim.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimUnused && c.Status == corev1.ConditionFalse {
			continue
		}
		shown = append(shown, inspect.ConditionOf(string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime))
	}
	return shown
}

// podConditions returns the conditions that explain why a Pod does not run as expected. If Xylem
// reports why the Pod has no node, podConditions omits the scheduler's message, because it does not
// contain the cause.
func podConditions(pod *corev1.Pod) []inspect.Condition {
	explained := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1alpha1.PodPlaceable && c.Status == corev1.ConditionFalse
	})
	var shown []inspect.Condition
	for _, c := range pod.Status.Conditions {
		concerns := false
		switch c.Type {
		case v1alpha1.PodPushed, v1alpha1.PodPlaceable, v1alpha1.PodAPIAccess:
			concerns = c.Status != corev1.ConditionTrue
		case corev1.PodScheduled:
			concerns = c.Status != corev1.ConditionTrue && !explained
		case corev1.PodReady:
			concerns = c.Status != corev1.ConditionTrue && c.Reason == v1alpha1.ReasonMemberAway
		case corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
			concerns = c.Status == corev1.ConditionTrue
		default: // unrelated to the Pod's placement
		}
		if concerns {
			shown = append(shown, inspect.ConditionOf(string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime))
		}
	}
	return shown
}

// eventsWithoutCondition returns the events that no condition repeats.
func eventsWithoutCondition(events []inspect.Event, conditions []inspect.Condition) []inspect.Event {
	return slices.DeleteFunc(events, func(e inspect.Event) bool {
		return slices.ContainsFunc(conditions, func(c inspect.Condition) bool { return c.Reason == e.Reason && c.Message == e.Message })
	})
}

// registrationConditions returns a member's conditions that affect its claims and Pods. It includes
// Ready only during deregistration, because Ready otherwise summarizes the others.
func registrationConditions(r *v1alpha1.ClusterRegistration) []inspect.Condition {
	var shown []inspect.Condition
	for _, c := range r.Status.Conditions {
		concerns := c.Status != metav1.ConditionTrue
		switch c.Type {
		case v1alpha1.ConditionConnected: // True, with a reason, while destruction is suspended
			concerns = concerns || c.Reason != v1alpha1.ReasonConnected
		case v1alpha1.ConditionNodeReady: // if the member is away, shows when and how Xylem reacts
			concerns = concerns && (inspect.IsConnected(r) || c.Reason == v1alpha1.ReasonMemberAway)
		case v1alpha1.ConditionSynced, v1alpha1.ConditionDeletionsProgressing:
			concerns = concerns && inspect.IsConnected(r)
		case v1alpha1.ConditionReady:
			concerns = concerns && r.DeletionTimestamp != nil
		default:
			concerns = false
		}
		if concerns {
			shown = append(shown, inspect.ConditionOf(c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime))
		}
	}
	if slices.ContainsFunc(shown, func(c inspect.Condition) bool { return c.Reason == v1alpha1.ReasonMemberAway }) {
		// NodeReady's message already contains the cause, which Connected repeats.
		shown = slices.DeleteFunc(shown, func(c inspect.Condition) bool { return c.Type == v1alpha1.ConditionConnected })
	}
	return shown
}

// relevantEvents returns the latest of an object's Warnings and of Xylem's own events, or of all events if
// all is set. It merges repeated events, and returns the latest one last. It drops Warnings from
// before the object became healthy, if that time is known.
func relevantEvents(events []corev1.Event, all bool, well metav1.Time) []inspect.Event {
	var shown []inspect.Event
	for i := range events {
		e := &events[i]
		if at := lastOccurrence(e); e.Type == corev1.EventTypeWarning && !well.Time.Before(at.Time) {
			continue
		}
		if !all && e.Type != corev1.EventTypeWarning && e.ReportingController != manager && e.Source.Component != manager {
			continue
		}
		event := inspect.Event{Type: inspect.Plain(e.Type), Reason: inspect.Plain(e.Reason), Message: inspect.Plain(e.Message), Count: countOccurrences(e), Last: lastOccurrence(e)}
		same := slices.IndexFunc(shown, func(other inspect.Event) bool { return other.Reason == event.Reason && other.Message == event.Message })
		if same < 0 {
			shown = append(shown, event)
			continue
		}
		shown[same].Count += event.Count
		if shown[same].Last.Before(&event.Last) {
			shown[same].Last = event.Last
		}
	}
	slices.SortStableFunc(shown, func(a, b inspect.Event) int {
		return cmp.Or(a.Last.Compare(b.Last.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return shown[max(0, len(shown)-eventsShown):]
}

// claimHealthySince returns when a healthy claim became healthy: its volume was bound, and Xylem's
// conditions became True. It returns zero if the time is unknown.
func claimHealthySince(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) metav1.Time {
	well := volumeHealthySince(volume)
	if claim.Status.Phase != corev1.ClaimBound || well.IsZero() {
		return metav1.Time{}
	}
	for _, c := range claim.Status.Conditions {
		if strings.HasPrefix(string(c.Type), v1alpha1.Prefix) && c.Status == corev1.ConditionTrue && well.Before(&c.LastTransitionTime) {
			well = c.LastTransitionTime
		}
	}
	return well
}

// volumeHealthySince returns when a volume became bound, or zero if it is not bound or the time is unknown.
func volumeHealthySince(pv *corev1.PersistentVolume) metav1.Time {
	if pv == nil || pv.Status.Phase != corev1.VolumeBound || pv.Status.LastPhaseTransitionTime == nil {
		return metav1.Time{}
	}
	return *pv.Status.LastPhaseTransitionTime
}

// podHealthySince returns when a Pod became ready or succeeded, or zero.
func podHealthySince(pod *corev1.Pod) metav1.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue || pod.Status.Phase == corev1.PodSucceeded) {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

// countOccurrences returns how often an event occurred, for both versions of the Event API.
func countOccurrences(e *corev1.Event) int {
	if e.Series != nil {
		return max(1, int(e.Series.Count))
	}
	return max(1, int(e.Count))
}

func lastOccurrence(e *corev1.Event) metav1.Time {
	latest := e.CreationTimestamp
	for _, t := range []metav1.Time{e.LastTimestamp, {Time: e.EventTime.Time}} {
		if latest.Before(&t) {
			latest = t
		}
	}
	if e.Series != nil && latest.Time.Before(e.Series.LastObservedTime.Time) {
		latest = metav1.Time{Time: e.Series.LastObservedTime.Time}
	}
	return latest
}
