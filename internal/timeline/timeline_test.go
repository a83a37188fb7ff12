package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 25, 5, 0, seconds, 0, time.UTC))
}

func wrote(manager, annotation string, seconds int) metav1.ManagedFieldsEntry {
	when := at(seconds)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: &when,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:` + annotation + `":{}}}}`),
	}
}

// ran returns a claim each of whose steps took one second longer than the previous one.
func ran() *Objects {
	o := &Objects{
		Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: at(0), Annotations: map[string]string{storagehelpers.AnnSelectedNode: "node"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				wrote("kubectl", "example.com/other", 0),
				wrote("kube-scheduler", storagehelpers.AnnSelectedNode, 1), wrote("xylem-root-pvc", v1alpha1.AnnotationPlacedIn, 3),
			},
		}},
		LeafClaim:  &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(6)}},
		LeafVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(10)}},
		Volume:     &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(15)}},
		Pod:        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}},
	}
	bound := at(21)
	o.Volume.Status.Phase, o.Volume.Status.LastPhaseTransitionTime = corev1.VolumeBound, &bound
	o.Pod.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	o.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(28)}}
	o.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(36), FinishedAt: at(50)}}},
		{Name: "b", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(35)}}},
	}
	return o
}

func TestOf(t *testing.T) {
	all := []Step{
		{Selected, Host, at(0), at(1)}, {Placed, Host, at(1), at(3)}, {LeafCreated, Host, at(3), at(6)}, {Provisioned, Member, at(6), at(10)},
		{Mirrored, Host, at(10), at(15)}, {Bound, Host, at(15), at(21)}, {PodBound, Host, at(21), at(28)}, {PodRunning, Member, at(28), at(36)},
	}
	for name, tt := range map[string]struct {
		change func(*Objects)
		want   []Step
	}{
		"a claim with its Pod": {func(*Objects) {}, all},
		"no claim":             {func(o *Objects) { o.Claim = nil }, nil},
		"a claim that waits for its first Pod": {func(o *Objects) {
			*o = Objects{Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}}}
		}, nil},
		"the member's provisioner has not created the volume yet": {func(o *Objects) { o.LeafVolume, o.Volume, o.Pod = nil, nil, nil }, all[:3]},
		"a bound claim without a Pod":                             {func(o *Objects) { o.Pod = nil }, all[:6]},
		"a claim that does not wait for a Pod": {func(o *Objects) {
			delete(o.Claim.Annotations, storagehelpers.AnnSelectedNode)
			o.Claim.ManagedFields = o.Claim.ManagedFields[2:]
		}, append([]Step{{Placed, Host, at(0), at(3)}}, all[2:]...)},
		"no managedFields": {func(o *Objects) { o.Claim.ManagedFields = nil }, all[3:]},
		"managedFields that cannot be read": {func(o *Objects) {
			o.Claim.ManagedFields[1].FieldsV1, o.Claim.ManagedFields[2].FieldsV1 = nil, metav1.NewFieldsV1(`[]`)
		}, all[3:]},
		"a status write does not count as the placement": {func(o *Objects) { o.Claim.ManagedFields[2].Subresource = "status" }, append([]Step{all[0]}, all[3:]...)},
		"root_pvc wrote the claim again later": {func(o *Objects) {
			o.Claim.ManagedFields[2] = wrote("xylem-root-pvc", v1alpha1.AnnotationPlacedIn, 60)
		}, append([]Step{all[0]}, all[3:]...)},
		"the scheduler's write is later than the placement": {func(o *Objects) {
			o.Claim.ManagedFields[1] = wrote("kube-scheduler", storagehelpers.AnnSelectedNode, 4)
		}, all[2:]},
		"two field managers own the annotation": {func(o *Objects) {
			o.Claim.ManagedFields = append(o.Claim.ManagedFields, wrote("other", v1alpha1.AnnotationPlacedIn, 5))
		}, all},
		"an adopted volume is older than its claim": {func(o *Objects) { o.LeafVolume.CreationTimestamp = at(-60) }, []Step{
			all[0], all[1], all[2], all[5], all[6], all[7],
		}},
		"a promise was bound before its disk existed": {func(o *Objects) {
			bound := at(2)
			o.Volume.CreationTimestamp, o.Volume.Status.LastPhaseTransitionTime = at(1), &bound
		}, []Step{all[0], all[1], {Bound, Host, at(1), at(2)}, {PodBound, Host, at(2), at(28)}, all[2], all[3], all[7]}},
		"a released volume does not show when it was bound": {func(o *Objects) { o.Volume.Status.Phase = corev1.VolumeReleased }, append(append([]Step{}, all[:5]...), all[7])},
		"an API server without transition times":            {func(o *Objects) { o.Volume.Status.LastPhaseTransitionTime = nil }, append(append([]Step{}, all[:5]...), all[7])},
		"a Pod created after the claim was bound": {func(o *Objects) { o.Pod.CreationTimestamp = at(25) },
			append(append([]Step{}, all[:6]...), Step{PodBound, Host, at(25), at(28)}, all[7])},
		"a Pod that is waiting for a node": {func(o *Objects) {
			o.Pod.Status.Conditions[0].Status = corev1.ConditionFalse
			o.Pod.Status.ContainerStatuses = nil
		}, all[:6]},
		"a Pod with a waiting container": {func(o *Objects) {
			o.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		}, all[:7]},
		"a restarted container":          {func(o *Objects) { o.Pod.Status.ContainerStatuses[1].RestartCount = 1 }, all[:7]},
		"a member whose clock is behind": {func(o *Objects) { o.LeafClaim.CreationTimestamp = at(2) }, []Step{all[0], {Provisioned, Member, at(2), at(10)}, all[4], all[5], all[6], all[7]}},
	} {
		t.Run(name, func(t *testing.T) {
			o := ran()
			tt.change(o)
			if diff := cmp.Diff(tt.want, StepsOfClaim(*o)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstPod(t *testing.T) {
	older, newer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(1)}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(2)}}
	if got := OldestPod([]*corev1.Pod{nil, newer, older}); got != older {
		t.Errorf("FirstPod = %v, want the older one", got)
	}
	if got := OldestPod(nil); got != nil {
		t.Errorf("FirstPod without Pods = %v, want nil", got)
	}
}

func TestTook(t *testing.T) {
	if got := (Step{Start: at(3), End: at(6)}).Duration(); got != 3*time.Second {
		t.Errorf("Took = %s, want 3s", got)
	}
}
