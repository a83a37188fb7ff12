package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// copyOf returns a clone of the claim golden, and the host's objects for its source.
func copyOf(change ...func(*corev1.PersistentVolumeClaim, *CopySource)) (*corev1.PersistentVolumeClaim, *CopySource) {
	sized := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-1", Annotations: map[string]string{}},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}}},
		}
	}
	claim, golden := sized("copy"), sized("golden")
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	golden.Spec.VolumeName, golden.Status.Phase = "pv-1", corev1.ClaimBound
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}}}}
	s := &CopySource{Claim: golden, Volume: hostpv.TranslateVolume(leaf, golden, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "cluster38", ClusterID: "id38"})}
	s.Of, _ = mirror.DataSourceOf(claim)
	for _, c := range change {
		c(claim, s)
	}
	return claim, s
}

func recorded(record string) func(*corev1.PersistentVolumeClaim, *CopySource) {
	return func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
		c.Annotations[v1alpha1.AnnotationSource] = record
	}
}

func noSource(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Claim, s.Volume = nil, nil }

func TestLocate(t *testing.T) {
	type changes = []func(*corev1.PersistentVolumeClaim, *CopySource)
	promise := func(s *CopySource) *corev1.PersistentVolume {
		pv := hostpv.NewPromiseFor(s.Claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
		s.Claim.Spec.VolumeName = pv.Name
		return pv
	}
	here := CopyLocation{DataSourceRecord: mirror.DataSourceRecord{ClusterID: "id38", UID: "uid-1"}, LeafVolume: "pv-1", LeafUID: "leaf-1"}
	for name, tc := range map[string]struct {
		change changes
		reason string
		says   string
	}{
		"the source is in a member": {},
		"the source is recorded":    {change: changes{recorded("id38/uid-1")}},
		"the claim is larger than its source": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		}}},
		"the source's capacity is larger than its request":  {}, // the driver rounded it up
		"the source does not exist":                         {change: changes{noSource}, reason: v1alpha1.ReasonSourceNotReady, says: "does not exist"},
		"the recorded source was deleted":                   {change: changes{noSource, recorded("id38/uid-1")}, reason: v1alpha1.ReasonSourceGone, says: "was deleted"},
		"the recorded source was re-created":                {change: changes{recorded("id38/uid-0")}, reason: v1alpha1.ReasonSourceGone, says: "another claim has its name"},
		"the source is being deleted":                       {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Claim.DeletionTimestamp = &metav1.Time{} }}, reason: v1alpha1.ReasonSourceGone, says: "is being deleted"},
		"the source is unbound":                             {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Claim.Spec.VolumeName = "" }}, reason: v1alpha1.ReasonSourceNotReady, says: "create a Pod"},
		"the source has a volumeName, but is not bound yet": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Claim.Status.Phase = corev1.ClaimPending }}, reason: v1alpha1.ReasonSourceNotReady},
		"the source is Lost":                                {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Claim.Status.Phase = corev1.ClaimLost }}, reason: v1alpha1.ReasonSourceNotReady, says: "lost its volume"},
		"the source's volume does not exist":                {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Volume = nil }}, reason: v1alpha1.ReasonSourceNotReady},
		"the source's volume belongs to another claim":      {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Volume.Spec.ClaimRef.UID = "other" }}, reason: v1alpha1.ReasonSourceNotReady},
		"the source's volume is abandoned": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) {
			s.Volume.Annotations[v1alpha1.AnnotationAbandon] = "true"
		}}, reason: v1alpha1.ReasonSourceGone, says: "abandoned"},
		"the source is bound to a promise without a disk": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Volume = promise(s) }}, reason: v1alpha1.ReasonSourceNotReady, says: "no disk yet"},
		"the source's volume has another driver":          {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Volume.Spec.CSI.Driver = "host.example.com" }}, reason: v1alpha1.ReasonDataSourceUnsupported, says: `"host.example.com"`},
		"the member in the volume's label differs from the one in its handle": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) {
			s.Volume.Labels[v1alpha1.LabelClusterID] = "id39"
		}}, reason: v1alpha1.ReasonDataSourceUnsupported},
		"the claim is smaller than its source": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		}}, reason: v1alpha1.ReasonSourceMismatch, says: "with 2Gi or more"},
		"the claim has another volume mode": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}}, reason: v1alpha1.ReasonSourceMismatch, says: "with volumeMode Filesystem"},
		"the claim names itself":                     {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) { c.Name = "golden" }}, reason: v1alpha1.ReasonDataSourceUnsupported, says: "names itself"},
		"the source is in another namespace":         {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Of.Namespace = "victim" }}, reason: v1alpha1.ReasonDataSourceUnsupported, says: `claim "victim/golden"`},
		"the claim is placed in the source's member": {change: changes{recorded("id38/uid-1"), placedIn("id38")}},
		"the claim is placed in another member":      {change: changes{recorded("id38/uid-1"), placedIn("id39")}, reason: v1alpha1.ReasonSourceElsewhere},
		"the claim's promise selects another member": {change: changes{recorded("id39/uid-1"), func(c *corev1.PersistentVolumeClaim, _ *CopySource) { c.Spec.VolumeName = "pvc-mock-x" }}, reason: v1alpha1.ReasonSourceElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			claim, source := copyOf(tc.change...)
			got := source.Locate(claim)
			want := here
			if tc.reason != "" {
				want = CopyLocation{Refusal: got.Refusal}
				if got.Refusal == nil || got.Refusal.Reason != tc.reason || !strings.Contains(got.Refusal.Message, tc.says) {
					t.Errorf("refused with %v, want %s: %s", got.Refusal, tc.reason, tc.says)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func placedIn(cluster string) func(*corev1.PersistentVolumeClaim, *CopySource) {
	return func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
		c.Annotations[v1alpha1.AnnotationPlacedIn] = cluster
	}
}
