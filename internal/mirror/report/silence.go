package report

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// maxTimeBetweenRetries is how long a provisioner may report nothing after a failed call: the maximum time
// after which it retries (csi-provisioner's --retry-interval-max), and a long timeout of the next call.
const maxTimeBetweenRetries = 10 * time.Minute

// ProvisioningSilence reports that a member has made no progress with a leaf claim for some time, and why: its PV
// controller has not requested the volume, the provisioner has not responded, or all of its calls were
// too slow. Before that, it returns how long to wait. This is not evidence that no volume will be
// created. A leaf claim that waits for a node must not be passed.
func ProvisioningSilence(leaf *corev1.PersistentVolumeClaim, events []corev1.Event, m mirror.Member, after time.Duration, now time.Time) (*mirror.Refusal, time.Duration) {
	if leaf.Spec.VolumeName != "" || leaf.DeletionTimestamp != nil {
		return nil, 0
	}
	provisioner, requested := leaf.Annotations[volumehelpers.AnnStorageProvisioner]
	begun, last := volumeRequestedAt(leaf), lastProvisioningFailure(leaf, events)
	if last != nil && !isSlowFailure(last.Message) {
		return nil, 0
	}
	if last != nil && eventLastSeen(last).After(begun) {
		silent := after + maxTimeBetweenRetries
		left := RemainingTime(eventLastSeen(last).Time, silent, now)
		if left == 0 {
			return silentProvisionerRefusal(leaf, provisioner, m, silent), 0
		}
		slow := RemainingTime(firstSlowFailure(leaf, events, begun), after, now)
		if slow == 0 {
			return mirror.NewRefusal(v1alpha1.ReasonProvisioningSlow, "member %q has not provisioned the volume for more than %s, and tries again. The last failure: %s",
				m.Registration, duration.HumanDuration(after), mirror.PlainText(last.Message, quotedMessageLimit)), left
		}
		return nil, min(slow, left)
	}
	if left := RemainingTime(begun, after, now); left > 0 {
		return nil, left
	}
	if !requested && last == nil {
		return mirror.NewRefusal(v1alpha1.ReasonControllerManagerSilent, "member %q has not requested the volume from a provisioner for %s. Ask the member's admin to check that its kube-controller-manager runs",
			m.Registration, duration.HumanDuration(after)), 0
	}
	return silentProvisionerRefusal(leaf, provisioner, m, after), 0
}

func silentProvisionerRefusal(leaf *corev1.PersistentVolumeClaim, provisioner string, m mirror.Member, after time.Duration) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonProvisionerSilent, "member %q asked provisioner %q for the volume, and the provisioner has reported nothing for %s. Ask the member's admin to check that the driver's controller runs, and that StorageClass %q names the right provisioner",
		m.Registration, mirror.PlainText(provisioner, quotedMessageLimit), duration.HumanDuration(after), ptr.Deref(leaf.Spec.StorageClassName, ""))
}

// SchedulerSilence reports that a member's scheduler has not processed a leaf Pod for some time. Before
// that, it returns how long to wait. The Pod may be nil.
func SchedulerSilence(leaf *corev1.Pod, m mirror.Member, after time.Duration, now time.Time) (*mirror.Refusal, time.Duration) {
	if leaf == nil || leaf.Spec.NodeName != "" || leaf.Status.NominatedNodeName != "" || leaf.DeletionTimestamp != nil ||
		podstatus.FindPodCondition(leaf.Status.Conditions, corev1.PodScheduled) != nil {
		return nil, 0
	}
	if left := RemainingTime(leaf.CreationTimestamp.Time, after, now); left > 0 {
		return nil, left
	}
	return mirror.NewRefusal(v1alpha1.ReasonSchedulerSilent, "the scheduler %s of member %q has not processed Pod %q for %s. Ask the member's admin to check that this scheduler runs",
		strconv.Quote(cmp.Or(mirror.PlainText(leaf.Spec.SchedulerName, quotedMessageLimit), corev1.DefaultSchedulerName)), m.Registration, leaf.Name, duration.HumanDuration(after)), 0
}

// RemainingTime returns how much of a duration is left, or 0. The member's clock may be ahead.
func RemainingTime(since time.Time, limit time.Duration, now time.Time) time.Duration {
	return max(0, min(limit, since.Add(limit).Sub(now)))
}

// volumeRequestedAt returns when the volume was requested, or else when the scheduler selected the node, or
// else when the leaf claim was created. leafcache keeps only this time of the managed fields.
func volumeRequestedAt(leaf *corev1.PersistentVolumeClaim) time.Time {
	if len(leaf.ManagedFields) > 0 && leaf.ManagedFields[0].Time != nil {
		return leaf.ManagedFields[0].Time.Time
	}
	return leaf.CreationTimestamp.Time
}

// firstSlowFailure returns when the first of a leaf claim's slow calls was reported, since the volume was
// requested.
func firstSlowFailure(leaf *corev1.PersistentVolumeClaim, events []corev1.Event, requested time.Time) time.Time {
	var first time.Time
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID != leaf.UID || !ReportsProvisioningFailure(e) || !isSlowFailure(e.Message) || !eventLastSeen(e).After(requested) {
			continue
		}
		seen := eventFirstSeen(e)
		if seen.Before(requested) {
			seen = requested
		}
		if first.IsZero() || seen.Before(first) {
			first = seen
		}
	}
	return first
}

func eventFirstSeen(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return eventLastSeen(e).Time
}
