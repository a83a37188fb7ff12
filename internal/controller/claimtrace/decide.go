package claimtrace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/timeline"
)

// patience is how long the first Pod of a bound claim may take to start before the claim is
// exported without that step.
const patience = 5 * time.Minute

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	claim, leaf        *corev1.PersistentVolumeClaim
	volume, leafVolume *corev1.PersistentVolume
	// pods are the host's Pods that use the claim.
	pods []*corev1.Pod
	// since is when this manager became the leader.
	now, since time.Time
}

// decide reports whether to export the claim now. Otherwise, it returns when to check again if no
// event comes first; 0 means that only an event can change the decision.
func decide(o observed) (export bool, again time.Duration) {
	if o.claim == nil || o.volume == nil || o.leaf == nil || o.leafVolume == nil ||
		o.claim.Status.Phase != corev1.ClaimBound || o.volume.Status.Phase != corev1.VolumeBound {
		return false, 0
	}
	at := o.boundAt()
	if at.Before(o.since) {
		return false, 0
	}
	first := timeline.FirstPod(o.pods)
	if first == nil || settled(first) {
		return true, 0
	}
	if left := at.Add(patience).Sub(o.now); left > 0 {
		return false, left
	}
	return true, 0
}

// boundAt returns when the claim got its disk: when it was bound, or, for a promise, when its disk
// was created.
func (o observed) boundAt() time.Time {
	at := o.leafVolume.CreationTimestamp.Time
	if bound := o.volume.Status.LastPhaseTransitionTime; bound != nil && bound.After(at) {
		at = bound.Time
	}
	return at
}

// settled reports whether the Pod's containers have all started, or the Pod has finished.
func settled(pod *corev1.Pod) bool {
	if podstatus.Finished(pod) || pod.DeletionTimestamp != nil {
		return true
	}
	return len(pod.Status.ContainerStatuses) >= len(pod.Spec.Containers) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running == nil && c.State.Terminated == nil && c.RestartCount == 0
	})
}
