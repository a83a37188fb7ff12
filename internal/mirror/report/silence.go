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
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// betweenRetries is how long a provisioner may report nothing after a failed call: the maximum time
// after which it retries (csi-provisioner's --retry-interval-max), and a long timeout of the next call.
const betweenRetries = 10 * time.Minute

// Silence reports that a member has made no progress with a leaf claim for some time, and why: its PV
// controller has not requested the volume, the provisioner has not responded, or all of its calls were
// too slow. Before that, it returns how long to wait. This is not evidence that no volume will be
// created. A leaf claim that waits for a node must not be passed.
func Silence(leaf *corev1.PersistentVolumeClaim, events []corev1.Event, m mirror.Member, after time.Duration, now time.Time) (*mirror.Refusal, time.Duration) {
	if leaf.Spec.VolumeName != "" || leaf.DeletionTimestamp != nil {
		return nil, 0
	}
	provisioner, requested := leaf.Annotations[volumehelpers.AnnStorageProvisioner]
	begun, last := requestedAt(leaf), lastFailure(leaf, events)
	if last != nil && !isSlow(last.Message) {
		return nil, 0
	}
	if last != nil && lastSeen(last).After(begun) {
		silent := after + betweenRetries
		left := Remaining(lastSeen(last).Time, silent, now)
		if left == 0 {
			return silentProvisioner(leaf, provisioner, m, silent), 0
		}
		slow := Remaining(firstSlow(leaf, events, begun), after, now)
		if slow == 0 {
			return mirror.Refuse(v1alpha1.ReasonProvisioningSlow, "member %q has not provisioned the volume for more than %s, and tries again. The last failure: %s",
				m.Registration, duration.HumanDuration(after), sanitize.Plain(last.Message, wordsLimit)), left
		}
		return nil, min(slow, left)
	}
	if left := Remaining(begun, after, now); left > 0 {
		return nil, left
	}
	if !requested && last == nil {
		return mirror.Refuse(v1alpha1.ReasonControllerManagerSilent, "member %q has not requested the volume from a provisioner for %s. Ask the member's admin to check that its kube-controller-manager runs",
			m.Registration, duration.HumanDuration(after)), 0
	}
	return silentProvisioner(leaf, provisioner, m, after), 0
}

func silentProvisioner(leaf *corev1.PersistentVolumeClaim, provisioner string, m mirror.Member, after time.Duration) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonProvisionerSilent, "member %q asked provisioner %q for the volume, and the provisioner has reported nothing for %s. Ask the member's admin to check that the driver's controller runs, and that StorageClass %q names the right provisioner",
		m.Registration, sanitize.Plain(provisioner, wordsLimit), duration.HumanDuration(after), ptr.Deref(leaf.Spec.StorageClassName, ""))
}

// SilentScheduler reports that a member's scheduler has not processed a leaf Pod for some time. Before
// that, it returns how long to wait. The Pod may be nil.
func SilentScheduler(leaf *corev1.Pod, m mirror.Member, after time.Duration, now time.Time) (*mirror.Refusal, time.Duration) {
	if leaf == nil || leaf.Spec.NodeName != "" || leaf.Status.NominatedNodeName != "" || leaf.DeletionTimestamp != nil ||
		podstatus.Condition(leaf.Status.Conditions, corev1.PodScheduled) != nil {
		return nil, 0
	}
	if left := Remaining(leaf.CreationTimestamp.Time, after, now); left > 0 {
		return nil, left
	}
	return mirror.Refuse(v1alpha1.ReasonSchedulerSilent, "the scheduler %s of member %q has not processed Pod %q for %s. Ask the member's admin to check that this scheduler runs",
		strconv.Quote(cmp.Or(sanitize.Plain(leaf.Spec.SchedulerName, wordsLimit), corev1.DefaultSchedulerName)), m.Registration, leaf.Name, duration.HumanDuration(after)), 0
}

// Remaining returns how much of a duration is left, or 0. The member's clock may be ahead.
func Remaining(since time.Time, limit time.Duration, now time.Time) time.Duration {
	return max(0, min(limit, since.Add(limit).Sub(now)))
}

// requestedAt returns when the volume was requested, or else when the scheduler selected the node, or
// else when the leaf claim was created. leafcache keeps only this time of the managed fields.
func requestedAt(leaf *corev1.PersistentVolumeClaim) time.Time {
	if len(leaf.ManagedFields) > 0 && leaf.ManagedFields[0].Time != nil {
		return leaf.ManagedFields[0].Time.Time
	}
	return leaf.CreationTimestamp.Time
}

// firstSlow returns when the first of a leaf claim's slow calls was reported, since the volume was
// requested.
func firstSlow(leaf *corev1.PersistentVolumeClaim, events []corev1.Event, requested time.Time) time.Time {
	var first time.Time
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID != leaf.UID || !ReportsProvisioningFailure(e) || !isSlow(e.Message) || !lastSeen(e).After(requested) {
			continue
		}
		seen := firstSeen(e)
		if seen.Before(requested) {
			seen = requested
		}
		if first.IsZero() || seen.Before(first) {
			first = seen
		}
	}
	return first
}

func firstSeen(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return lastSeen(e).Time
}
