package report

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

func TestUsableDespite(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u"}}
	claim.Status.Phase = corev1.ClaimBound
	pending := claim.DeepCopy()
	pending.Status.Phase = corev1.ClaimPending
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-1"}
	volume := hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "a", ClusterID: "id-a", NodeName: "kosmos-a", HostID: "host"})
	other := volume.DeepCopy()
	other.Spec.CSI.Driver = "disk.example.com"
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		reason string
		want   bool
	}{
		"the volume cannot grow":                   {claim, volume, v1alpha1.ReasonRefusedByMember, true},
		"its attributes cannot change":             {claim, volume, v1alpha1.ReasonAttributesClassNotFound, true},
		"Kubernetes reports a failed expansion":    {claim, volume, "", true},
		"the volume is lost":                       {claim, volume, v1alpha1.ReasonVolumeLost, false},
		"the member was deregistered":              {claim, volume, v1alpha1.ReasonClusterGone, false},
		"the member rejects the claim's namespace": {claim, volume, v1alpha1.ReasonNamespaceRefused, false},
		"the claim is not bound":                   {pending, volume, v1alpha1.ReasonRefusedByMember, false},
		"the volume is not observed":               {claim, nil, v1alpha1.ReasonRefusedByMember, false},
		"the volume has no disk in a member":       {claim, other, v1alpha1.ReasonRefusedByMember, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsClaimUsableDespite(tc.claim, tc.volume, tc.reason); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
