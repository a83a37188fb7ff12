package sharing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// stamps returns the metadata that all objects of the copy have.
func stamps(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{v1alpha1.LabelHost: "host-id", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		Annotations: map[string]string{v1alpha1.AnnotationCopyOf: "pvc-1", v1alpha1.AnnotationCopyOfUID: "host-1", v1alpha1.AnnotationCopyFor: "claim-1"},
	}
}

func TestClaim(t *testing.T) {
	o := seen()
	want := &corev1.PersistentVolumeClaim{ObjectMeta: stamps("shop", "data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		VolumeMode:       ptr.To(corev1.PersistentVolumeFilesystem),
		StorageClassName: ptr.To("nfs"),
		VolumeName:       CopyVolumeName("host-id", o.Host),
		Resources:        corev1.VolumeResourceRequirements{Requests: o.Host.Spec.Capacity},
	}}
	if diff := cmp.Diff(want, o.newCopyClaim()); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
}

func TestVolume(t *testing.T) {
	o := seen(withClaim)
	o.Host.Spec.CSI.ReadOnly, o.Host.Spec.CSI.FSType = true, "ext4"
	o.Host.Spec.MountOptions = []string{"of-the-owner"}
	o.MemberClass.MountOptions = []string{"nfsvers=4.2"}
	want := &corev1.PersistentVolume{ObjectMeta: stamps("", CopyVolumeName("host-id", o.Host)), Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driver, VolumeHandle: "filer#export-1", ReadOnly: true, FSType: "ext4", VolumeAttributes: map[string]string{"share": "/export/1"},
		}},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Capacity:                      o.Host.Spec.Capacity,
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
		StorageClassName:              "nfs",
		MountOptions:                  []string{"nfsvers=4.2"},
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "copy-uid"},
	}}
	got, refusal := o.newCopyVolume()
	if refusal != nil {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PV (-want +got):\n%s", diff)
	}
	if stamp, ours := mirror.VolumeCopyFromHost("host-id", got); !ours || stamp.ClaimUID != "claim-1" {
		t.Errorf("the PV's stamp is %v, set by this host: %t", stamp, ours)
	}
}

// The name of a copy's PV is valid, and distinguishes hosts and handles.
func TestName(t *testing.T) {
	host, other := sharedPV(), sharedPV()
	other.Spec.CSI.VolumeHandle = "id38/pvc-2"
	names := map[string]bool{}
	for _, name := range []string{CopyVolumeName("host-id", host), CopyVolumeName("another", host), CopyVolumeName("host-id", other)} {
		names[name] = true
		if !strings.HasPrefix(name, copyNamePrefix) || len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%q is not a valid name of a copy", name)
		}
	}
	if len(names) != 3 || CopyVolumeName("host-id", host) != CopyVolumeName("host-id", sharedPV()) {
		t.Errorf("the names %v are not unique, or not deterministic", names)
	}
}

func TestSecrets(t *testing.T) {
	type secrets struct{ publish, stage, node *corev1.SecretReference }
	for name, tc := range map[string]struct {
		parameters map[string]string
		want       secrets
		refused    bool
	}{
		"no Secrets": {nil, secrets{}, false},
		"fixed names": {map[string]string{
			controllerPublishKey + "-name": "a", controllerPublishKey + "-namespace": "storage",
			nodeStageKey + "-name": "b", nodeStageKey + "-namespace": "storage",
			nodePublishKey + "-name": "c", nodePublishKey + "-namespace": "storage",
		}, secrets{&corev1.SecretReference{Name: "a", Namespace: "storage"}, &corev1.SecretReference{Name: "b", Namespace: "storage"}, &corev1.SecretReference{Name: "c", Namespace: "storage"}}, false},
		"templates with the claim's name and namespace": {map[string]string{nodeStageKey + "-name": "key-${pvc.name}", nodeStageKey + "-namespace": "${pvc.namespace}"},
			secrets{stage: &corev1.SecretReference{Name: "key-data", Namespace: "shop"}}, false},
		"a template with the PV's name":          {map[string]string{nodeStageKey + "-name": "${pv.name}", nodeStageKey + "-namespace": "storage"}, secrets{}, true},
		"a template with an annotation":          {map[string]string{nodePublishKey + "-name": "${pvc.annotations['team']}", nodePublishKey + "-namespace": "storage"}, secrets{}, true},
		"a template in the namespace":            {map[string]string{controllerPublishKey + "-name": "a", controllerPublishKey + "-namespace": "${pv.name}"}, secrets{}, true},
		"the provisioner's Secret is not copied": {map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "admin", "csi.storage.k8s.io/provisioner-secret-namespace": "storage"}, secrets{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pv, refusal := seen(withClaim, parameters(tc.parameters)).newCopyVolume()
			if tc.refused {
				if refusal == nil || refusal.Reason != v1alpha1.ReasonBackendMismatch {
					t.Errorf("got %v, want a refusal", refusal)
				}
				return
			}
			if refusal != nil {
				t.Fatal(refusal)
			}
			csi := pv.Spec.CSI
			if diff := cmp.Diff(tc.want, secrets{csi.ControllerPublishSecretRef, csi.NodeStageSecretRef, csi.NodePublishSecretRef}, cmp.AllowUnexported(secrets{})); diff != "" {
				t.Errorf("Secrets (-want +got):\n%s", diff)
			}
		})
	}
}
