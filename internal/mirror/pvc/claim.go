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

// TranslateClaim returns the leaf claim of a root claim, with its origin and the member's class,
// according to FIELDS.md. It has no binding: no volume name, bind annotations or selected node. It
// has no VolumeAttributesClass; ClaimWithAttributesClass sets it. It has the data source; the caller
// must decide whether the claim may use it. The error, if any, is a *Refusal.
func TranslateClaim(root *corev1.PersistentVolumeClaim, class *string, m mirror.Member) (*corev1.PersistentVolumeClaim, error) {
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: fields.TranslateMetadata(root.ObjectMeta), Spec: *root.Spec.DeepCopy()}
	if refused := fields.ApplyDecisions(claimDecisions, &leaf.Spec, ClaimFieldTable.PathPrefix); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonDataSourceUnsupported,
			Message: "the claim cannot be created in a member: " + strings.Join(refused, "; "),
		}
	}
	if refused := fields.QuantitiesOutOfRange(&leaf.Spec, ClaimFieldTable.PathPrefix); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonQuantityOutOfRange,
			Message: "the claim cannot be created in a member: " + strings.Join(refused, "; ") + ". Correct spec.resources of the claim",
		}
	}
	if RequiresNewVolume(leaf) {
		leaf.Spec.Selector = nil
	}
	leaf.Spec.StorageClassName = fields.ClonePointer(class)
	leaf.Spec.VolumeAttributesClassName = nil
	leaf.Annotations[v1alpha1.AnnotationPushed] = string(fields.MustMarshalJSON(fields.PushedMetaOfLeaf(leaf.ObjectMeta)))
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf, nil
}

// ClaimMetaDriftOf returns the labels and annotations that a leaf claim needs because its root has changed, as
// for Pods. A leaf of another origin does not drift, because Xylem must not change it. Nor does one that a backup tool
// created: a patch would make the managed fields that the tool restored look new, and so the leaf like Xylem's own.
func ClaimMetaDriftOf(root, leaf *corev1.PersistentVolumeClaim, m mirror.Member) fields.MetaDrift {
	if origin, ok := mirror.LeafOriginFromHost(m.HostID, leaf); !ok || origin != mirror.OriginForRoot(m.HostID, root) || mirror.IsLeafCreatedByOthers(leaf) {
		return fields.MetaDrift{}
	}
	want := fields.TranslateMetadata(root.ObjectMeta)
	is, was := fields.PushedMetaOfLeaf(want), fields.PushedMeta{}
	if json.Unmarshal([]byte(leaf.Annotations[v1alpha1.AnnotationPushed]), &was) != nil {
		was = fields.PushedMeta{} // Xylem did not write this value
	}
	drift := fields.MetaDriftOf(want, leaf.ObjectMeta, is, was)
	drift.RecordPush(leaf.ObjectMeta, v1alpha1.AnnotationPushed, string(fields.MustMarshalJSON(is)))
	return drift
}

// ContradictorySelector returns a selector that contradicts itself. A claim with this selector is never bound to
// an Available volume of the host, but gets a new volume: the scheduler and the PV controller apply a
// selector only to existing volumes. The leaf claim lacks the selector, because provisioners reject
// claims with a selector.
func ContradictorySelector() *metav1.LabelSelector {
	const key = v1alpha1.MovePrefix + "none"
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpExists}, {Key: key, Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

// RequiresNewVolume reports whether a claim may be bound only to a volume that is provisioned for it.
func RequiresNewVolume(claim *corev1.PersistentVolumeClaim) bool {
	return equality.Semantic.DeepEqual(claim.Spec.Selector, ContradictorySelector())
}

// ClaimWithDataSourceUID returns a leaf claim that records the UID of its data source in the host.
func ClaimWithDataSourceUID(leaf *corev1.PersistentVolumeClaim, source types.UID) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationSource, string(source))
	return leaf
}

// ClaimWithVolumeName returns a copy of a leaf claim that names the volume that the root is already bound
// to.
func ClaimWithVolumeName(leaf *corev1.PersistentVolumeClaim, volumeName string) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	leaf.Spec.VolumeName = volumeName
	return leaf
}

// LeafStorageRequest returns the storage request that the leaf claim must have, and whether it differs from the
// current one. It follows the root's request. It shrinks only as far as Kubernetes lets a user
// cancel a failed expansion: to more than the current capacity. Only a bound claim can be changed.
func LeafStorageRequest(root, leaf *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
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
