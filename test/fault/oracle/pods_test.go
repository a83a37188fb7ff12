package oracle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// rootPod returns a root Pod in the given phase. If pushed is set, its status shows that a leaf
// runs for it.
func rootPod(phase corev1.PodPhase, runs bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: run, Name: "app", UID: rootUID}, Status: corev1.PodStatus{Phase: phase}}
	if runs {
		pod.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	}
	return pod
}

// leafPod returns the root's leaf Pod in the given phase. In phase Pending, its container has not
// started.
func leafPod(uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: run, Name: "app", UID: uid,
		Labels: map[string]string{v1alpha1.LabelHost: hostID}, Annotations: map[string]string{v1alpha1.AnnotationRootUID: rootUID},
	}, Status: corev1.PodStatus{Phase: phase}}
	states := map[corev1.PodPhase]corev1.ContainerState{
		corev1.PodPending:   {Waiting: &corev1.ContainerStateWaiting{}},
		corev1.PodRunning:   {Running: &corev1.ContainerStateRunning{}},
		corev1.PodSucceeded: {Terminated: &corev1.ContainerStateTerminated{}},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: states[phase]}}
	return pod
}

func TestAgain(t *testing.T) {
	// once returns a history in which the leaf Pod runs and is deleted.
	once := func(more ...Sighting) []Sighting {
		return append([]Sighting{
			seen(host, 0, rootPod(corev1.PodPending, false)), seen(one, 1, leafPod("a", corev1.PodPending)), seen(one, 2, leafPod("a", corev1.PodRunning)),
			ended(seen(one, 4, leafPod("a", corev1.PodRunning))),
		}, more...)
	}
	foreign := leafPod("b", corev1.PodPending)
	foreign.Labels = nil
	restored := &Restore{Cluster: one, At: second(5)}
	for name, tt := range map[string]struct {
		history  []Sighting
		restored *Restore
		want     int
	}{
		"runs once": {once(), nil, 0},
		"created again after it was withdrawn before its start": {[]Sighting{
			seen(one, 1, leafPod("a", corev1.PodPending)), ended(seen(one, 2, leafPod("a", corev1.PodPending))), seen(one, 6, leafPod("b", corev1.PodRunning)),
		}, nil, 0},
		"reported again by a later list":                          {once(seen(one, 6, leafPod("a", corev1.PodRunning))), nil, 0},
		"a Pod of the member itself":                              {once(seen(one, 6, foreign)), nil, 0},
		"created again for a deleted root":                        {once(ended(seen(host, 5, rootPod(corev1.PodSucceeded, true))), seen(one, 6, leafPod("b", corev1.PodPending))), nil, 1},
		"created again for a root that has ended":                 {once(seen(host, 5, rootPod(corev1.PodFailed, true)), seen(one, 6, leafPod("b", corev1.PodPending))), nil, 1},
		"created again in another member":                         {once(seen("cluster39", 6, leafPod("b", corev1.PodPending))), nil, 1},
		"created after a restore for a root that reports Running": {once(seen(host, 3, rootPod(corev1.PodRunning, true)), seen(one, 6, leafPod("b", corev1.PodPending))), restored, 1},
		"created after a restore for a root that has ended":       {once(seen(host, 3, rootPod(corev1.PodSucceeded, false)), seen(one, 6, leafPod("b", corev1.PodPending))), restored, 1},
		"created after a restore for a deleted root":              {once(ended(seen(host, 3, rootPod(corev1.PodRunning, false))), seen(one, 6, leafPod("b", corev1.PodPending))), restored, 1},
		"created after a restore that removed all records":        {once(seen(one, 6, leafPod("b", corev1.PodPending))), restored, 0},
		"created after a restore of the host reset the root":      {once(seen(host, 3, rootPod(corev1.PodRunning, true)), seen(host, 5, rootPod(corev1.PodPending, false)), seen(one, 6, leafPod("b", corev1.PodPending))), &Restore{Cluster: host, At: second(5)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{Namespace: run, Host: host, IDs: map[string]string{host: hostID}, Restored: tt.restored, History: tt.history}
			if got := again(e, index(e)); len(got) != tt.want {
				t.Errorf("found %v, want %d", got, tt.want)
			}
		})
	}
}

func TestUnfinished(t *testing.T) {
	deleted := leafPod("a", corev1.PodRunning)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	elsewhere := leafPod("a", corev1.PodRunning)
	elsewhere.Namespace = "other"
	for name, tt := range map[string]struct {
		root, leaf *corev1.Pod
		want       int
	}{
		"both Pods run":                                 {rootPod(corev1.PodRunning, true), leafPod("a", corev1.PodRunning), 0},
		"both Pods have ended":                          {rootPod(corev1.PodSucceeded, true), leafPod("a", corev1.PodSucceeded), 0},
		"the leaf runs before its root reports it":      {rootPod(corev1.PodPending, true), leafPod("a", corev1.PodRunning), 0},
		"the root has ended, the leaf runs":             {rootPod(corev1.PodSucceeded, true), leafPod("a", corev1.PodRunning), 1},
		"the root has failed, the leaf is Pending":      {rootPod(corev1.PodFailed, true), leafPod("a", corev1.PodPending), 1},
		"the root has ended, the leaf is being deleted": {rootPod(corev1.PodSucceeded, true), deleted, 0},
		"the root was deleted, the leaf runs":           {nil, leafPod("a", corev1.PodRunning), 1},
		"another run's leaf":                            {nil, elsewhere, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{Namespace: run, Host: host, IDs: map[string]string{host: hostID}, Live: []Sighting{seen(one, 9, tt.leaf)}}
			if tt.root != nil {
				e.Live = append(e.Live, seen(host, 9, tt.root))
			}
			if got := unfinished(e, index(e)); len(got) != tt.want {
				t.Errorf("found %v, want %d", got, tt.want)
			}
		})
	}
}
