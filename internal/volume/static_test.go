package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A member may keep a copy of another member's shared volume. The copy's label xylem.io/host is part of
// its stamp. If a host PV adopted the copy, Xylem could destroy the shared volume under it (I2).
func TestCopyIsNotImportable(t *testing.T) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "xylem-copy-1", UID: "copy-uid"}}
	leaf.Spec.Capacity, leaf.Spec.PersistentVolumeReclaimPolicy = size, corev1.PersistentVolumeReclaimRetain
	leaf.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	leaf.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "gone"}
	leaf.Status.Phase = corev1.VolumeReleased
	asks := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "asks", UID: "asks"}}
	asks.Spec.Capacity, asks.Spec.AccessModes = size, leaf.Spec.AccessModes
	asks.Spec.NodeAffinity = mirror.NodeAffinityToMember("id38")
	asks.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: "id38/xylem-copy-1"}
	s := &Observed{Member: mirror.Member{HostID: "host-id", ClusterID: "id38", Registration: "cluster38"}, Name: leaf.Name, UID: leaf.UID, Leaf: leaf, Imports: []corev1.PersistentVolume{asks}}

	leaf.Labels = map[string]string{v1alpha1.LabelHost: "host-id"}
	if !ImportAllowed(s) {
		t.Fatalf("the member's own volume cannot be adopted: %v", ReportImportRefused(s))
	}
	mirror.VolumeCopy{HostID: "host-id", Volume: "pvc-1", VolumeUID: "host-pv", ClaimUID: "claim-uid"}.StampCopy(leaf)
	s.Stamp, s.LeafStamped = mirror.LeafOriginFromHost("host-id", leaf)
	if why := ReportImportRefused(s); ImportAllowed(s) || why == nil || !strings.Contains(why.Message, `copy of the shared volume "pvc-1"`) {
		t.Errorf("a copy of a shared volume can be adopted, or the report does not explain why not: %v", why)
	}
}
