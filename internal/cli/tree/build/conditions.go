package build

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/tree/gather"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

const (
	// eventsShown of each object.
	eventsShown = 4
	// manager is how Xylem's own events name their reporter.
	manager = "xylem"
)

// claimConditions are all of a claim's: each is there while there is something to say.
func claimConditions(claim *corev1.PersistentVolumeClaim) []model.Condition {
	var shown []model.Condition
	for _, c := range claim.Status.Conditions {
		shown = append(shown, model.Condition{Type: string(c.Type), Status: string(c.Status), Reason: gather.Plain(c.Reason), Message: gather.Plain(c.Message), Since: c.LastTransitionTime})
	}
	return shown
}

// podConditions are those that say why a Pod is not where, or what, it should be. Where Xylem
// reports why it has no node, the scheduler's own words are left out: they name no cause.
func podConditions(pod *corev1.Pod) []model.Condition {
	explained := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1alpha1.PodPlaceable && c.Status == corev1.ConditionFalse
	})
	var shown []model.Condition
	for _, c := range pod.Status.Conditions {
		concerns := false
		switch c.Type {
		case v1alpha1.PodPushed, v1alpha1.PodPlaceable:
			concerns = c.Status != corev1.ConditionTrue
		case corev1.PodScheduled:
			concerns = c.Status != corev1.ConditionTrue && !explained
		case corev1.PodReady:
			concerns = c.Status != corev1.ConditionTrue && c.Reason == v1alpha1.ReasonMemberAway
		case corev1.DisruptionTarget:
			concerns = c.Status == corev1.ConditionTrue
		default: // it does not say where the Pod is
		}
		if concerns {
			shown = append(shown, model.Condition{Type: string(c.Type), Status: string(c.Status), Reason: gather.Plain(c.Reason), Message: gather.Plain(c.Message), Since: c.LastTransitionTime})
		}
	}
	return shown
}

// untold are the events that no condition repeats.
func untold(events []model.Event, conditions []model.Condition) []model.Event {
	return slices.DeleteFunc(events, func(e model.Event) bool {
		return slices.ContainsFunc(conditions, func(c model.Condition) bool { return c.Reason == e.Reason && c.Message == e.Message })
	})
}

// registrationConditions are those of a member that keep claims and Pods there from
// going on. Ready sums up the others, and says what a deregistration waits for.
func registrationConditions(r *v1alpha1.ClusterRegistration) []model.Condition {
	var shown []model.Condition
	for _, c := range r.Status.Conditions {
		concerns := c.Status != metav1.ConditionTrue
		switch c.Type {
		case v1alpha1.ConditionConnected: // while destruction is suspended, True with a reason
			concerns = concerns || c.Reason != v1alpha1.ReasonConnected
		case v1alpha1.ConditionNodeReady: // of a member that is away: until when nothing happens, and what then
			concerns = concerns && (gather.Connected(r) || c.Reason == v1alpha1.ReasonMemberAway)
		case v1alpha1.ConditionSynced, v1alpha1.ConditionDeletionsProgressing:
			concerns = concerns && gather.Connected(r)
		case v1alpha1.ConditionReady:
			concerns = concerns && r.DeletionTimestamp != nil
		default:
			concerns = false
		}
		if concerns {
			shown = append(shown, model.Condition{Type: c.Type, Status: string(c.Status), Reason: gather.Plain(c.Reason), Message: gather.Plain(c.Message), Since: c.LastTransitionTime})
		}
	}
	if slices.ContainsFunc(shown, func(c model.Condition) bool { return c.Reason == v1alpha1.ReasonMemberAway }) {
		// Its message has the cause, which Connected repeats.
		shown = slices.DeleteFunc(shown, func(c model.Condition) bool { return c.Type == v1alpha1.ConditionConnected })
	}
	return shown
}

// matter are the latest of an object's Warnings and of Xylem's own events, or of
// all, each once; the latest last. Warnings from before an object got well, if it is
// known when that was, matter no more.
func matter(events []corev1.Event, all bool, well metav1.Time) []model.Event {
	var shown []model.Event
	for i := range events {
		e := &events[i]
		if at := last(e); e.Type == corev1.EventTypeWarning && !well.Time.Before(at.Time) {
			continue
		}
		if !all && e.Type != corev1.EventTypeWarning && e.ReportingController != manager && e.Source.Component != manager {
			continue
		}
		told := model.Event{Type: gather.Plain(e.Type), Reason: gather.Plain(e.Reason), Message: gather.Plain(e.Message), Count: count(e), Last: last(e)}
		same := slices.IndexFunc(shown, func(other model.Event) bool { return other.Reason == told.Reason && other.Message == told.Message })
		if same < 0 {
			shown = append(shown, told)
			continue
		}
		shown[same].Count += told.Count
		if shown[same].Last.Before(&told.Last) {
			shown[same].Last = told.Last
		}
	}
	slices.SortStableFunc(shown, func(a, b model.Event) int {
		return cmp.Or(a.Last.Compare(b.Last.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return shown[max(0, len(shown)-eventsShown):]
}

// claimWell is when a claim that is well got so: it was bound, as its volume tells,
// and what Xylem says of it became true. Zero if that is not known.
func claimWell(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) metav1.Time {
	well := volumeWell(volume)
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

// volumeWell is since when a volume is bound; zero if it is not, or that is not known.
func volumeWell(pv *corev1.PersistentVolume) metav1.Time {
	if pv == nil || pv.Status.Phase != corev1.VolumeBound || pv.Status.LastPhaseTransitionTime == nil {
		return metav1.Time{}
	}
	return *pv.Status.LastPhaseTransitionTime
}

// podWell is since when a Pod has been ready or has succeeded; otherwise zero.
func podWell(pod *corev1.Pod) metav1.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue || pod.Status.Phase == corev1.PodSucceeded) {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

// count of an event, and when it was seen last, by whichever of its two APIs it was
// made.
func count(e *corev1.Event) int {
	if e.Series != nil {
		return max(1, int(e.Series.Count))
	}
	return max(1, int(e.Count))
}

func last(e *corev1.Event) metav1.Time {
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
