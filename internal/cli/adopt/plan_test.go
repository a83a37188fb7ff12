package adopt

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/mirror"
)

// claims is a cluster that can only be read, and has claims only.
type claims struct {
	client.Client
	all []corev1.PersistentVolumeClaim
}

func (claims) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (c claims) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if claim, ok := into.(*corev1.PersistentVolumeClaim); ok {
		for i := range c.all {
			if client.ObjectKeyFromObject(&c.all[i]) == key {
				c.all[i].DeepCopyInto(claim)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A stamped volume whose claim exists is not adopted, even if the host has lost its PersistentVolume.
func TestVolumeOfExistingClaim(t *testing.T) {
	there := mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "host-id"}
	root := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	for name, tc := range map[string]struct {
		roots []corev1.PersistentVolumeClaim
		want  bool
	}{
		"the claim exists":                   {[]corev1.PersistentVolumeClaim{root}, true},
		"the claim is gone":                  {nil, false},
		"another claim has the claim's name": {[]corev1.PersistentVolumeClaim{withUID(root, "other")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid", Annotations: map[string]string{v1alpha1.AnnotationReclaimPolicy: "Retain"}},
				Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}}},
				Status:     corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
			}
			mirror.OriginForRoot(there.HostID, &root).StampLeaf(leaf)
			r := &run{
				host: &command.Cluster{Client: claims{all: tc.roots}}, member: &command.Cluster{Client: claims{}},
				cr: &v1alpha1.ClusterRegistration{}, there: there, leafName: leaf.Name, leaf: leaf,
				asks: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "adopted"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: "id38/pv-1"}}}},
			}
			err := r.checkVolume(t.Context())
			if got := err != nil && strings.Contains(err.Error(), `belongs to claim "shop/data" of this host`); got != tc.want {
				t.Errorf("checkVolume returned %v", err)
			}
		})
	}
}

func withUID(claim corev1.PersistentVolumeClaim, uid types.UID) corev1.PersistentVolumeClaim {
	claim.UID = uid
	return claim
}
