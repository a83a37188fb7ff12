package objects

import (
	"context"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// stored is a host with one claim and one volume.
type stored struct {
	client.Client
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

func (s stored) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolumeClaim:
		s.claim.DeepCopyInto(into)
	case *corev1.PersistentVolume:
		s.volume.DeepCopyInto(into)
	}
	return nil
}

// The copy deletes all files of its volume, so the volume must have been provisioned for the copy's
// claim.
func TestCopyDiskRejectsExistingVolumes(t *testing.T) {
	member := mirror.Member{Registration: "cluster38", ClusterID: "id38"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-copy", UID: "copy-uid"}}
	claim.Spec.VolumeName, claim.Status.Phase = "disk-7", corev1.ClaimBound
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-7", UID: "leaf-uid", Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"}}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-7"}
	leaf.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data-copy", UID: "leaf-claim"}
	mirrored := func(root types.UID) *corev1.PersistentVolume {
		owner := claim.DeepCopy()
		owner.UID = root
		pv := hostpv.TranslateVolume(leaf, owner, corev1.PersistentVolumeReclaimDelete, member)
		hostpv.RecordProvisioned(pv, leaf, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf-claim"}})
		pv.Spec.ClaimRef.UID = claim.UID
		return pv
	}
	requested := func(attributes map[string]string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-7", UID: "host-uid"}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: "id38/disk-7", VolumeAttributes: attributes}
		pv.Spec.NodeAffinity = mirror.NodeAffinityToMember("id38")
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data-copy", UID: "copy-uid"}
		return hostpv.RecordImport(pv, leaf, member)
	}
	for name, tc := range map[string]struct {
		pv       *corev1.PersistentVolume
		accepted bool
	}{
		"provisioned for the copy":                     {mirrored("copy-uid"), true},
		"provisioned for an earlier claim, then freed": {mirrored("earlier-uid"), false},
		"an existing volume of the member":             {hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, member), false},
		"adopted":                                      {requested(nil), false},
		"adopted, with a forged record":                {requested(map[string]string{v1alpha1.AttributeProvisionedFor: "copy-uid"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Client{
				Cluster:   &command.Cluster{Client: stored{claim: claim, volume: tc.pv}, Config: &rest.Config{}},
				Namespace: "shop", Timeout: time.Second, Env: &command.Env{IOStreams: genericiooptions.IOStreams{Out: io.Discard}},
			}
			r := &Record{ID: "abcde", Copy: "data-copy", To: Place{Registration: "cluster38", ClusterID: "id38"}}
			if _, err := NewObjectWriter(h, nil, "data").CopyDisk(t.Context(), r); (err == nil) != tc.accepted {
				t.Errorf("CopyDisk returned %v; want accepted: %t", err, tc.accepted)
			}
		})
	}
}
