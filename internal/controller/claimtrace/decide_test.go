package claimtrace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 25, 5, 0, seconds, 0, time.UTC))
}

// bound returns a claim that was bound 10 seconds after this manager became the leader.
func bound() observed {
	since := at(10)
	o := observed{
		claim: &corev1.PersistentVolumeClaim{}, leaf: &corev1.PersistentVolumeClaim{},
		volume: &corev1.PersistentVolume{}, leafVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(5)}},
		now: at(20).Time, since: at(0).Time,
	}
	o.claim.Status.Phase = corev1.ClaimBound
	o.volume.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, LastPhaseTransitionTime: &since}
	return o
}

func pod(created int, state corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(created)}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state}}
	return p
}

func TestDecide(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(18)}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for name, tt := range map[string]struct {
		change func(*observed)
		export bool
		again  time.Duration
	}{
		"no Pod uses the claim":                     {func(*observed) {}, true, 0},
		"the claim's first Pod runs":                {func(o *observed) { o.pods = []*corev1.Pod{pod(2, waiting), pod(1, running)} }, true, 0},
		"the claim's first Pod has not started yet": {func(o *observed) { o.pods = []*corev1.Pod{pod(1, waiting), pod(2, running)} }, false, patience - 10*time.Second},
		"no container has a status": {func(o *observed) {
			o.pods = []*corev1.Pod{pod(1, running)}
			o.pods[0].Status.ContainerStatuses = nil
		}, false, patience - 10*time.Second},
		"the claim's first Pod failed without containers": {func(o *observed) {
			o.pods = []*corev1.Pod{pod(1, waiting)}
			o.pods[0].Status.Phase = corev1.PodFailed
		}, true, 0},
		"the claim's first Pod crashes": {func(o *observed) {
			o.pods = []*corev1.Pod{pod(1, waiting)}
			o.pods[0].Status.ContainerStatuses[0].RestartCount = 1
		}, true, 0},
		"the claim's first Pod does not start in time":                {func(o *observed) { o.pods, o.now = []*corev1.Pod{pod(1, waiting)}, at(10).Add(patience) }, true, 0},
		"the claim was deleted":                                       {func(o *observed) { o.claim = nil }, false, 0},
		"the claim is not bound":                                      {func(o *observed) { o.claim.Status.Phase = corev1.ClaimPending }, false, 0},
		"the volume is not bound":                                     {func(o *observed) { o.volume.Status.Phase = corev1.VolumeAvailable }, false, 0},
		"a promise without its disk":                                  {func(o *observed) { o.leafVolume = nil }, false, 0},
		"the leaf is not in the cache":                                {func(o *observed) { o.leaf = nil }, false, 0},
		"bound before this manager became the leader":                 {func(o *observed) { o.since = at(11).Time }, false, 0},
		"bound in the second in which this manager became the leader": {func(o *observed) { o.since = at(10).Time }, true, 0},
		"a promise that was bound before this manager became the leader, and fulfilled afterwards": {func(o *observed) {
			o.since, o.leafVolume.CreationTimestamp = at(11).Time, at(12)
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := bound()
			tt.change(&o)
			if export, again := decide(o); export != tt.export || again != tt.again {
				t.Errorf("decide = %t, %s; want %t, %s", export, again, tt.export, tt.again)
			}
		})
	}
}
