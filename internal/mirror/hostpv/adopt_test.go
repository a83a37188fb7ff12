package hostpv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// comeBack contains a re-created claim that requests the volume of an earlier claim with the same
// name.
type comeBack struct {
	root   *corev1.PersistentVolumeClaim
	leaf   *corev1.PersistentVolume
	member mirror.Member
}

func back(change func(*comeBack)) comeBack {
	b := comeBack{
		member: mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "host-id"},
		root: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "new-uid"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}},
		leaf: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}},
	}
	mirror.Origin{HostID: "host-id", Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "old-uid"}.StampLeaf(b.leaf)
	change(&b)
	return b
}

func TestRequests(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*comeBack)
		want   bool
	}{
		"requests the volume by its leaf name":                     {func(*comeBack) {}, true},
		"requests the volume by its name in the host":              {func(b *comeBack) { b.root.Spec.VolumeName = HostVolumeName("pv-1", "id38", true) }, true},
		"requests no particular volume":                            {func(b *comeBack) { b.root.Spec.VolumeName = "" }, false},
		"requests another volume":                                  {func(b *comeBack) { b.root.Spec.VolumeName = "pv-2" }, false},
		"requests the volume of a claim with another name":         {func(b *comeBack) { b.root.Name = "other" }, false},
		"requests the volume of a claim in another namespace (I8)": {func(b *comeBack) { b.root.Namespace = "attacker" }, false},
		"requests a volume that is not stamped (I4)":               {func(b *comeBack) { b.leaf.Labels = nil }, false},
		"requests a volume of another host (I4)":                   {func(b *comeBack) { b.leaf.Labels[v1alpha1.LabelHost] = "other" }, false},
		"already has the volume":                                   {func(b *comeBack) { b.root.UID = "old-uid" }, false},
		"the claim is being deleted":                               {func(b *comeBack) { b.root.DeletionTimestamp = &now }, false},
		"requests a volume that is being deleted":                  {func(b *comeBack) { b.leaf.DeletionTimestamp = &now }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := back(tc.change)
			if got := RequestsEarlierVolume(b.root, b.leaf, b.member); got != tc.want {
				t.Errorf("Requests returned %v, want %v", got, tc.want)
			}
		})
	}
}
