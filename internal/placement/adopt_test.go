package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// comeBack is a re-created claim that requests the volume of an earlier claim with the same name.
type comeBack struct {
	root      *corev1.PersistentVolumeClaim
	leaf      *corev1.PersistentVolume
	class     *storagev1.StorageClass
	namespace types.UID
	kept      bool
	rules     v1alpha1.ClusterRegistration
}

func back(change ...func(*comeBack)) comeBack {
	b := comeBack{
		namespace: "namespace-uid", kept: true,
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}},
		root: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "new-uid"},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: "pv-1", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}},
		leaf: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid",
			Annotations: map[string]string{v1alpha1.AnnotationNamespaceUID: "namespace-uid"}},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: "disk", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	mirror.Origin{HostID: "host-id", Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "old-uid"}.StampLeaf(b.leaf)
	for _, c := range change {
		c(&b)
	}
	return b
}

func TestAdoptable(t *testing.T) {
	released := func(b *comeBack) { b.kept = false }
	anotherNamespace := func(b *comeBack) { b.namespace = "another-uid" }
	allow := func(what ...string) func(*comeBack) {
		return func(b *comeBack) {
			b.rules.Annotations = map[string]string{v1alpha1.AnnotationAdopt: strings.Join(what, ", ")}
		}
	}
	bound := func(name string) func(*comeBack) {
		return func(b *comeBack) {
			b.leaf.Status.Phase = corev1.VolumeBound
			b.leaf.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: name, UID: "in-the-member"}
		}
	}
	for name, tc := range map[string]struct {
		back comeBack
		want string
	}{
		"the same tenant, never released":                              {back(), ""},
		"the namespace was re-created (I8)":                            {back(anotherNamespace), v1alpha1.ReasonAdoptionUnconfirmed},
		"the namespace was re-created, an admin allows the volume":     {back(anotherNamespace, allow("pv-1")), ""},
		"the namespace was re-created, an admin allows all":            {back(anotherNamespace, allow(AdoptAllVolumes)), ""},
		"the namespace was re-created, an admin allows another volume": {back(anotherNamespace, allow("pv-2")), v1alpha1.ReasonAdoptionUnconfirmed},
		"the earlier namespace is unknown (I8)":                        {back(func(b *comeBack) { b.leaf.Annotations[v1alpha1.AnnotationNamespaceUID], b.namespace = "", "" }), v1alpha1.ReasonAdoptionUnconfirmed},
		"the volume was released (I8)":                                 {back(released), v1alpha1.ReasonAdoptionUnconfirmed},
		"the volume was released, an admin allows it":                  {back(released, allow("pv-1")), ""},
		"somebody removed the claimRef":                                {back(released, allow("pv-1"), func(b *comeBack) { b.leaf.Status.Phase = corev1.VolumeAvailable }), v1alpha1.ReasonVolumeMismatch},
		"another claim in the member uses the volume":                  {back(released, allow("pv-1"), bound("else")), v1alpha1.ReasonVolumeMismatch},
		"the earlier claim was just deleted in the member":             {back(released, allow("pv-1"), bound("data")), ""},
		"its claim is bound in the member":                             {back(bound("data")), ""},
		"reclaiming the volume failed":                                 {back(released, allow("pv-1"), func(b *comeBack) { b.leaf.Status.Phase = corev1.VolumeFailed }), v1alpha1.ReasonVolumeMismatch},
		"the claim requests more":                                      {back(func(b *comeBack) { b.root.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi") }), v1alpha1.ReasonVolumeMismatch},
		"the claim requests more, an admin allows the volume":          {back(allow("pv-1"), func(b *comeBack) { b.root.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi") }), v1alpha1.ReasonVolumeMismatch},
		"the claim requests less":                                      {back(func(b *comeBack) { b.leaf.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }), ""},
		"the claim has another class":                                  {back(func(b *comeBack) { b.class.Name = "other" }), v1alpha1.ReasonVolumeMismatch},
		"the claim's class maps to the volume's class": {back(func(b *comeBack) {
			b.class.Name, b.rules.Spec.Storage.Classes = "other", []v1alpha1.ClassMapping{{Host: "other", Member: "disk"}}
		}), ""},
		"the claim requests another access mode": {back(func(b *comeBack) { b.root.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany} }), v1alpha1.ReasonVolumeMismatch},
		"the claim requests a block device": {back(func(b *comeBack) {
			block := corev1.PersistentVolumeBlock
			b.root.Spec.VolumeMode = &block
		}), v1alpha1.ReasonVolumeMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			b, got := tc.back, ""
			if r := MemberOfRegistration(&b.rules, nil).RefuseAdoption(b.root, b.class, b.namespace, b.leaf, b.kept); r != nil {
				got = r.Reason
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
