package pvc

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Translate is the leaf claim of a root claim, origin included, with the
// member's class: by the decisions of FIELDS.md. It carries nothing of any
// binding: no volume name, no bind annotations, no selected node; and no
// VolumeAttributesClass, which WithAttributesClass sets. The data source stays: whether the
// claim may be created from it is for the caller to know. The error, if
// any, is a *Refusal.
func Translate(root *corev1.PersistentVolumeClaim, class *string, m mirror.Member) (*corev1.PersistentVolumeClaim, error) {
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: fields.LeafMeta(root.ObjectMeta), Spec: *root.Spec.DeepCopy()}
	if refused := fields.Shaped(claimShape, &leaf.Spec, Table.Root); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonDataSourceUnsupported,
			Message: "the claim cannot be created in a member: " + strings.Join(refused, "; "),
		}
	}
	leaf.Spec.StorageClassName = fields.Clone(class)
	leaf.Spec.VolumeAttributesClassName = nil
	mirror.OriginFor(m.HostID, root).Stamp(leaf)
	return leaf, nil
}

// WithSource is a leaf claim that says what, by its UID in the host, it is to be created from.
func WithSource(leaf *corev1.PersistentVolumeClaim, source types.UID) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationSource, string(source))
	return leaf
}

// WithVolume is a copy of a leaf claim that asks for one volume by name: the
// one that the root is bound to already.
func WithVolume(leaf *corev1.PersistentVolumeClaim, volumeName string) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	leaf.Spec.VolumeName = volumeName
	return leaf
}

// Growth is the storage request that the leaf claim has to have now, and
// whether that differs from the one it has. It grows as the root's does. It
// shrinks only as Kubernetes lets a user withdraw a growth that failed: to
// more than the capacity that is there. Only a bound claim can be changed.
func Growth(root, leaf *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
	want := root.Spec.Resources.Requests[corev1.ResourceStorage]
	has := leaf.Spec.Resources.Requests[corev1.ResourceStorage]
	if leaf.Status.Phase != corev1.ClaimBound || want.IsZero() {
		return has.DeepCopy(), false
	}
	there, known := leaf.Status.Capacity[corev1.ResourceStorage]
	switch c := want.Cmp(has); {
	case c > 0, c < 0 && known && want.Cmp(there) > 0:
		return want.DeepCopy(), true
	default:
		return has.DeepCopy(), false
	}
}
