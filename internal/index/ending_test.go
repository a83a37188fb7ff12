package index

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestEndsSince(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	volume := func(phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			Spec:   corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
			Status: corev1.PersistentVolumeStatus{Phase: phase, LastPhaseTransitionTime: &now},
		}
	}
	deleted := volume(corev1.VolumeBound, corev1.PersistentVolumeReclaimRetain)
	deleted.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		obj  client.Object
		want *metav1.Time
	}{
		"bound":                     {volume(corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete), nil},
		"released, and kept":        {volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain), nil},
		"released, to be destroyed": {volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete), &now},
		"deleted":                   {deleted, &now},
		"a claim":                   {&corev1.PersistentVolumeClaim{}, nil},
		"a claim that is deleted":   {&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, &now},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EndsSince(tc.obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
