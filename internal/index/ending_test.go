package index

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
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
		"bound":                   {volume(corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete), nil},
		"released, policy Retain": {volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain), nil},
		"released, policy Delete": {volume(corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete), &now},
		"failed, policy Delete":   {volume(corev1.VolumeFailed, corev1.PersistentVolumeReclaimDelete), &now},
		"deleted":                 {deleted, &now},
		"released, but the time is unknown": {&corev1.PersistentVolume{
			Spec:   corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
		}, nil},
		"a claim":                       {&corev1.PersistentVolumeClaim{}, nil},
		"a claim that is being deleted": {&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, &now},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EndingSince(tc.obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPlace checks that place returns the keys by which EndingHostObjects looks up each kind.
func TestPlace(t *testing.T) {
	in := mirror.Member{Registration: "one", ClusterID: "id-one", NodeName: "kosmos-one", HostID: "host"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid",
		Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: in.ClusterID}}}
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d"}}}}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "pod-uid"}, Spec: corev1.PodSpec{NodeName: in.NodeName}}
	host := hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, in)
	promise := hostpv.NewPromiseFor(claim, class)
	had := hostpv.PromiseWithMember(promise, in, pod)
	fulfilled := hostpv.FulfillPromise(had, leaf, corev1.PersistentVolumeReclaimDelete, in)
	forged := host.DeepCopy()
	forged.Labels[v1alpha1.LabelClusterID] = "id-two"
	for name, tc := range map[string]struct {
		obj  client.Object
		want string
	}{
		"a Pod": {pod, in.NodeName},
		"a Pod on the node of a group, or of a member with such a name": {&corev1.Pod{Spec: corev1.PodSpec{NodeName: "a.node"}}, "a.node node"},
		"a claim":  {claim, in.ClusterID},
		"a volume": {host, in.ClusterID},
		"a volume with different members in label and handle": {forged, ""},
		"a host volume that does not belong to Xylem":         {leaf, ""},
		"a promise without a member":                          {promise, ""},
		"a promise with a member":                             {had, in.ClusterID},
		"a promise with a disk":                               {fulfilled, in.ClusterID},
		"another kind":                                        {class, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(concernedMember(tc.obj), " "); got != tc.want {
				t.Errorf("place is %q, want %q", got, tc.want)
			}
		})
	}
}
