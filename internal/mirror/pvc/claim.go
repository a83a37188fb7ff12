package pvc

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Translate returns the leaf claim of a root claim, with its origin and the member's class,
// according to FIELDS.md. It has no binding: no volume name, bind annotations or selected node. It
// has no VolumeAttributesClass; WithAttributesClass sets it. It has the data source; the caller
// must decide whether the claim may use it. The error, if any, is a *Refusal.
func Translate(root *corev1.PersistentVolumeClaim, class *string, m mirror.Member) (*corev1.PersistentVolumeClaim, error) {
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: fields.LeafMeta(root.ObjectMeta), Spec: *root.Spec.DeepCopy()}
	if refused := fields.Shaped(claimShape, &leaf.Spec, Table.Root); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonDataSourceUnsupported,
			Message: "the claim cannot be created in a member: " + strings.Join(refused, "; "),
		}
	}
	if refused := fields.OutOfRange(&leaf.Spec, Table.Root); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonQuantityOutOfRange,
			Message: "the claim cannot be created in a member: " + strings.Join(refused, "; ") + ". Correct spec.resources of the claim",
		}
	}
	if WantsNew(leaf) {
		leaf.Spec.Selector = nil
	}
	leaf.Spec.StorageClassName = fields.Clone(class)
	leaf.Spec.VolumeAttributesClassName = nil
	leaf.Annotations[v1alpha1.AnnotationPushed] = string(fields.MustJSON(fields.PushedMetaOf(leaf.ObjectMeta)))
	mirror.OriginFor(m.HostID, root).Stamp(leaf)
	return leaf, nil
}

// MetaDrift returns the labels and annotations that a leaf claim needs because its root has changed, as
// for Pods. A leaf of another origin does not drift, because Xylem must not change it. Nor does one that a backup tool
// created: a patch would make the managed fields that the tool restored look new, and so the leaf like Xylem's own.
func MetaDrift(root, leaf *corev1.PersistentVolumeClaim, m mirror.Member) fields.MetaDrift {
	if origin, ok := mirror.OriginIn(m.HostID, leaf); !ok || origin != mirror.OriginFor(m.HostID, root) || mirror.Copied(leaf) {
		return fields.MetaDrift{}
	}
	want := fields.LeafMeta(root.ObjectMeta)
	is, was := fields.PushedMetaOf(want), fields.PushedMeta{}
	if json.Unmarshal([]byte(leaf.Annotations[v1alpha1.AnnotationPushed]), &was) != nil {
		was = fields.PushedMeta{} // Xylem did not write this value
	}
	drift := fields.DriftOfMeta(want, leaf.ObjectMeta, is, was)
	drift.Record(leaf.ObjectMeta, v1alpha1.AnnotationPushed, string(fields.MustJSON(is)))
	return drift
}

// SelectsNone returns a selector that contradicts itself. A claim with this selector is never bound to
// an Available volume of the host, but gets a new volume: the scheduler and the PV controller apply a
// selector only to existing volumes. The leaf claim lacks the selector, because provisioners reject
// claims with a selector.
func SelectsNone() *metav1.LabelSelector {
	const key = v1alpha1.MovePrefix + "none"
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpExists}, {Key: key, Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

// WantsNew reports whether a claim may be bound only to a volume that is provisioned for it.
func WantsNew(claim *corev1.PersistentVolumeClaim) bool {
	return equality.Semantic.DeepEqual(claim.Spec.Selector, SelectsNone())
}

// WithSource returns a leaf claim that records the UID of its data source in the host.
func WithSource(leaf *corev1.PersistentVolumeClaim, source types.UID) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationSource, string(source))
	return leaf
}

// WithVolume returns a copy of a leaf claim that names the volume that the root is already bound
// to.
func WithVolume(leaf *corev1.PersistentVolumeClaim, volumeName string) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	leaf.Spec.VolumeName = volumeName
	return leaf
}

// Growth returns the storage request that the leaf claim must have, and whether it differs from the
// current one. It follows the root's request. It shrinks only as far as Kubernetes lets a user
// cancel a failed expansion: to more than the current capacity. Only a bound claim can be changed.
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
