package clusterregistration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

func TestTally(t *testing.T) {
	here := mirror.Member{Registration: "cluster38", ClusterID: clusterID, NodeName: "kosmos-cluster38"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u-1"}}
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}}
	volume := func(phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		pv := hostpv.TranslateVolume(leaf, claim, policy, here)
		pv.Status.Phase = phase
		return pv
	}
	promise := func(phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		pv := hostpv.PromiseWithMember(hostpv.NewPromiseFor(claim, &storagev1.StorageClass{}), here, nil)
		pv.Status.Phase = phase
		return pv
	}
	const retained, deleted = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	ending := volume(corev1.VolumeBound, retained)
	ending.DeletionTimestamp = &now
	abroad := volume(corev1.VolumeBound, deleted)
	abroad.Labels[v1alpha1.LabelClusterID] = "another"
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want v1alpha1.VolumeCounts
	}{
		"bound":                        {volume(corev1.VolumeBound, deleted), v1alpha1.VolumeCounts{Bound: 1}},
		"not bound yet":                {volume(corev1.VolumeAvailable, deleted), v1alpha1.VolumeCounts{}},
		"released":                     {volume(corev1.VolumeReleased, deleted), v1alpha1.VolumeCounts{Deleting: 1}},
		"released, with policy Retain": {volume(corev1.VolumeReleased, retained), v1alpha1.VolumeCounts{}},
		"being deleted":                {ending, v1alpha1.VolumeCounts{Deleting: 1}},
		"a bound promise":              {promise(corev1.VolumeBound), v1alpha1.VolumeCounts{Pending: 1}},
		"a released promise":           {promise(corev1.VolumeReleased), v1alpha1.VolumeCounts{Deleting: 1}},
		"a fulfilled promise":          {hostpv.FulfillPromise(promise(corev1.VolumeBound), leaf, deleted, here), v1alpha1.VolumeCounts{Bound: 1}},
		"a promise without a member":   {hostpv.PromiseWithoutMember(promise(corev1.VolumeBound)), v1alpha1.VolumeCounts{}},
		"a volume in another member":   {abroad, v1alpha1.VolumeCounts{}},
		"a foreign PV":                 {&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}, v1alpha1.VolumeCounts{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.VolumeCounts
			tallyVolume(&got, tc.pv, clusterID)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}
