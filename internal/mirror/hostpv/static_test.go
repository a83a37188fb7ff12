package hostpv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// static returns a host PV as an admin creates it.
func static(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: v1alpha1.ProvisionerName, VolumeHandle: "id38/disk-7",
		}},
		NodeAffinity: mirror.NodeAffinityToMember("id38"),
	}}
	for _, f := range change {
		f(pv)
	}
	return pv
}

func TestImportOf(t *testing.T) {
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		asks bool
	}{
		"a complete PV":                  {static(), true},
		"other labels":                   {static(func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"disk": "7"} }), true},
		"another driver":                 {static(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk.example.com" }), false},
		"no CSI driver":                  {static(func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil }), false},
		"no nodeAffinity":                {static(func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = nil }), false},
		"nodeAffinity to another member": {static(func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = mirror.NodeAffinityToMember("id39") }), false},
		"a handle without a cluster ID":  {static(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "disk-7" }), false},
		"a handle with an invalid name":  {static(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "id38/a/b" }), false},
		"recorded":                       {RecordImport(static(), staticLeaf(), mirror.Member{Registration: "cluster38", ClusterID: "id38"}), false},
		"the promise driver":             {static(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = v1alpha1.PromiseDriverName }), false},
		"a mirror that lost its label":   {static(func(pv *corev1.PersistentVolume) { pv.Finalizers = []string{v1alpha1.FinalizerLeafVolume} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, leaf, asks := RequestedImport(tc.pv)
			if asks != tc.asks || asks && (cluster != "id38" || leaf != "disk-7") {
				t.Errorf("got %q, %q, %t; want %t", cluster, leaf, asks, tc.asks)
			}
			if _, _, _, ours := LeafOfHostVolume(tc.pv); ours && asks {
				t.Error("the PV counts both as recorded and as not recorded")
			}
		})
	}
}

func staticLeaf() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-7", UID: "leaf-uid"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-7"}},
	}}
}

func TestRecorded(t *testing.T) {
	member := mirror.Member{Registration: "cluster38", ClusterID: "id38"}
	retains := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	attribute := func(uid string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes = map[string]string{v1alpha1.AttributeLeafUID: uid}
		}
	}
	claimed := func(uid types.UID, phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef, pv.Status.Phase = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid}, phase
		}
	}
	retained, noted := staticLeaf(), staticLeaf()
	retains(retained)
	retains(noted)
	noted.Annotations = map[string]string{v1alpha1.AnnotationReclaimPolicy: "Delete"}
	for name, tc := range map[string]struct {
		host, leaf *corev1.PersistentVolume
		policy     corev1.PersistentVolumeReclaimPolicy
		ours       bool
	}{
		"both policies are Delete": {static(), staticLeaf(), corev1.PersistentVolumeReclaimDelete, true},
		"the host retains":         {static(retains), staticLeaf(), corev1.PersistentVolumeReclaimRetain, true},
		"the member retains":       {static(), retained, corev1.PersistentVolumeReclaimRetain, true},
		"the member's policy was Delete before Xylem stamped the leaf": {static(), noted, corev1.PersistentVolumeReclaimDelete, true},
		"the UID is in the attributes":                                 {static(attribute("leaf-uid")), staticLeaf(), corev1.PersistentVolumeReclaimDelete, true},
		"another UID is in the attributes":                             {static(attribute("other")), staticLeaf(), corev1.PersistentVolumeReclaimDelete, false},
		"exported, and its claim is gone":                              {static(claimed("gone", corev1.VolumeReleased)), staticLeaf(), corev1.PersistentVolumeReclaimRetain, true},
		"exported, and the host has not processed it yet":              {static(claimed("gone", "")), staticLeaf(), corev1.PersistentVolumeReclaimRetain, true},
		"exported, and bound to its claim":                             {static(claimed("there", corev1.VolumeBound)), staticLeaf(), corev1.PersistentVolumeReclaimDelete, true},
		"reserved for a claim by name":                                 {static(claimed("", corev1.VolumePending)), staticLeaf(), corev1.PersistentVolumeReclaimDelete, true},
	} {
		t.Run(name, func(t *testing.T) {
			pv := RecordImport(tc.host, tc.leaf, member)
			cluster, leaf, uid, ours := LeafOfHostVolume(pv)
			if ours != tc.ours || ours && (cluster != "id38" || leaf != "disk-7" || uid != types.UID("leaf-uid") || !IsImportedVolume(pv)) {
				t.Errorf("LeafOf returned %q, %q, %q, %t; want the requested leaf: %t", cluster, leaf, uid, ours, tc.ours)
			}
			if pv.Spec.PersistentVolumeReclaimPolicy != tc.policy {
				t.Errorf("has policy %s, want %s", pv.Spec.PersistentVolumeReclaimPolicy, tc.policy)
			}
			if _, _, again := RequestedImport(pv); again {
				t.Error("a recorded PV requests its leaf again")
			}
		})
	}
}
