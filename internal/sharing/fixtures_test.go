package sharing

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// driver is the CSI driver of the shared backend.
const driver = "nfs.example.com"

// here returns the member that gets copies.
func here() placement.Member {
	return placement.Member{
		Member: mirror.Member{Registration: "cluster39", ClusterID: "id39", NodeName: "kosmos-cluster39", HostID: "host-id"},
		Rules: placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{Storage: v1alpha1.StorageSpec{
			Classes: []v1alpha1.ClassMapping{{Host: "shared", Member: "nfs"}},
			Shared:  []v1alpha1.SharedBackend{{Name: "filer", Driver: driver, Classes: []string{"nfs"}}},
		}}}),
	}
}

// sharedPV returns the host PV of a volume that member cluster38 owns.
func sharedPV() *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf-1"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		VolumeMode:  ptr.To(corev1.PersistentVolumeFilesystem),
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driver, VolumeHandle: "filer#export-1", VolumeAttributes: map[string]string{"share": "/export/1"},
		}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-1"}}
	claim.Spec.StorageClassName = ptr.To("shared")
	pv := hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"})
	if !hostpv.ShareVolume(pv, leaf, "filer") {
		panic("the volume cannot be shared")
	}
	pv.UID = "host-1"
	pv.Status.Phase = corev1.VolumeBound
	return pv
}

func hostClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Provisioner: v1alpha1.ProvisionerName}
}

func memberClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Provisioner: driver}
}
