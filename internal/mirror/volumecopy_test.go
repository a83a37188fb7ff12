package mirror_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestVolumeCopyIn(t *testing.T) {
	want := mirror.VolumeCopy{HostID: mirrortest.HostID, Volume: "pvc-1", VolumeUID: "host-uid", ClaimUID: "claim-uid"}
	origin := mirror.Origin{HostID: mirrortest.HostID, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "claim-uid"}
	unset := func(key string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			delete(c.Labels, key)
			delete(c.Annotations, key)
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		copies bool
	}{
		"complete":                       {func(*corev1.PersistentVolumeClaim) {}, true},
		"other labels and annotations":   {func(c *corev1.PersistentVolumeClaim) { c.Labels["a"], c.Annotations["b"] = "c", "d" }, true},
		"another host":                   {func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelHost] = "other" }, false},
		"without a host":                 {unset(v1alpha1.LabelHost), false},
		"without a manager":              {unset(v1alpha1.LabelManagedBy), false},
		"another manager":                {func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelManagedBy] = "Helm" }, false},
		"without a volume":               {unset(v1alpha1.AnnotationCopyOf), false},
		"without the volume's UID":       {unset(v1alpha1.AnnotationCopyOfUID), false},
		"without the claim's UID":        {unset(v1alpha1.AnnotationCopyFor), false},
		"an Origin in addition":          {func(c *corev1.PersistentVolumeClaim) { origin.StampLeaf(c) }, false},
		"an incomplete Origin: a root":   {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationRoot] = "" }, false},
		"an incomplete Origin: its UID":  {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationRootUID] = "claim-uid" }, false},
		"the stamp is that of an Origin": {func(c *corev1.PersistentVolumeClaim) { c.Labels, c.Annotations = nil, nil; origin.StampLeaf(c) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Namespace, claim.Name = "shop", "data"
			want.StampCopy(claim)
			tc.change(claim)
			got, copies := mirror.VolumeCopyFromHost(mirrortest.HostID, claim)
			if copies != tc.copies || copies && got != want {
				t.Errorf("got %v, %t; want %t", got, copies, tc.copies)
			}
			if _, ours := mirror.LeafOriginFromHost(mirrortest.HostID, claim); ours && copies {
				t.Error("the object counts both as a copy and as a leaf")
			}
		})
	}
	if _, copies := mirror.VolumeCopyFromHost("", &corev1.PersistentVolume{}); copies {
		t.Error("an unstamped object counts as a copy of a host without an ID")
	}
}

// Only the code for copies acts on a copy.
func TestCopyHasNoOrigin(t *testing.T) {
	for name, object := range map[string]metav1.Object{"a claim": &corev1.PersistentVolumeClaim{}, "a PV": &corev1.PersistentVolume{}} {
		t.Run(name, func(t *testing.T) {
			mirror.VolumeCopy{HostID: mirrortest.HostID, Volume: "pvc-1", VolumeUID: "host-uid", ClaimUID: "claim-uid"}.StampCopy(object)
			if origin, ours := mirror.LeafOriginFromHost(mirrortest.HostID, object); ours {
				t.Errorf("its origin is %v", origin)
			}
			if uid := mirror.StampedRootUID(object); uid != "" {
				t.Errorf("its root has UID %q", uid)
			}
		})
	}
}
