package objects

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// manager is the value of the label app.kubernetes.io/managed-by.
const manager = "kubectl-xylem"

// LabelsOfMove returns the labels of everything that the move with the given ID creates.
func LabelsOfMove(id string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: manager, v1alpha1.LabelMove: id}
}

// ofKubernetes contains the prefixes of annotations that Kubernetes controllers write to claims.
var ofKubernetes = []string{"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/storage-provisioner"}

// keptKeys returns the labels or annotations that a user wrote.
func keptKeys(all map[string]string) map[string]string {
	mine := maps.Clone(all)
	maps.DeleteFunc(mine, func(key, _ string) bool {
		return v1alpha1.Reserved(key) || strings.HasPrefix(key, v1alpha1.MovePrefix) ||
			slices.ContainsFunc(ofKubernetes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return mine
}

// ClaimManifest returns a claim as its user would create it again, without a volume. The manifest has no
// data source, because the data comes from the move.
func ClaimManifest(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	spec := claim.Spec.DeepCopy()
	spec.VolumeName, spec.DataSource, spec.DataSourceRef = "", nil, nil
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, Labels: keptKeys(claim.Labels), Annotations: keptKeys(claim.Annotations),
			OwnerReferences: slices.Clone(claim.OwnerReferences),
		},
		Spec: *spec,
	}
}

// ClaimBoundTo returns the claim of the move, for an existing volume.
func (r *Record) ClaimBoundTo(volume string) *corev1.PersistentVolumeClaim {
	claim := r.Claim.DeepCopy()
	claim.Spec.VolumeName = volume
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1alpha1.LabelMove, r.ID)
	return claim
}

// IsBoundTo reports whether this move created the claim for the volume.
func (r *Record) IsBoundTo(claim *corev1.PersistentVolumeClaim, volume string) bool {
	return claim.Annotations[v1alpha1.LabelMove] == r.ID && claim.Spec.VolumeName == volume
}

// CopyClaim returns the second claim. It is at least as large as the old volume, even if the user
// requested less. It is never bound to an existing volume of the host, because the copy overwrites
// the data of its volume.
func (r *Record) CopyClaim(old *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	spec := r.Claim.Spec.DeepCopy()
	spec.Selector = pvc.ContradictorySelector()
	size := old.Spec.Capacity[corev1.ResourceStorage]
	if requested := spec.Resources.Requests[corev1.ResourceStorage]; requested.Cmp(size) > 0 {
		size = requested
	}
	spec.Resources = corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}}
	return &corev1.PersistentVolumeClaim{ObjectMeta: r.MetaOfCopy(r.Copy), Spec: *spec}
}

// MetaOfCopy returns the metadata of a claim or Pod that the move creates.
func (r *Record) MetaOfCopy(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: r.Claim.Namespace, Name: name, Labels: LabelsOfMove(r.ID),
		Annotations: map[string]string{v1alpha1.AnnotationMoveClaim: MovedClaim(r.Claim.Namespace, r.Claim.Name)},
	}
}

// MovedClaim returns the value of v1alpha1.AnnotationMoveClaim for a claim.
func MovedClaim(namespace, name string) string { return namespace + "/" + name }

// Marks returns the annotations for a disk that is kept after the move.
func (r *Record) Marks(d Disk) map[string]string {
	place := r.To
	if d.UID == r.Old.UID {
		place = r.From
	}
	return map[string]string{
		v1alpha1.LabelMove: r.ID, v1alpha1.AnnotationMoveClaim: MovedClaim(r.Claim.Namespace, r.Claim.Name),
		v1alpha1.AnnotationMoveRestores: place.Restores,
	}
}

// Retain sets a volume's policy to Retain. It records the policy that the volume had before this
// move in an annotation of the volume, because a tenant can write the record, but not the volume.
func (r *Record) Retain(pv *corev1.PersistentVolume) {
	if !r.Retains(pv) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationMovePolicy, string(pv.Spec.PersistentVolumeReclaimPolicy))
	}
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.LabelMove, r.ID)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// Retains reports whether this move set the volume's policy to Retain.
func (r *Record) Retains(pv *corev1.PersistentVolume) bool {
	return pv.Annotations[v1alpha1.LabelMove] == r.ID && pv.Annotations[v1alpha1.AnnotationMovePolicy] != ""
}

// RestorePolicy sets the policy that a volume had before Retain, and removes the annotations of Retain and
// Marks.
func RestorePolicy(pv *corev1.PersistentVolume) {
	if policy := pv.Annotations[v1alpha1.AnnotationMovePolicy]; policy != "" {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(policy)
	}
	for _, key := range []string{v1alpha1.LabelMove, v1alpha1.AnnotationMoveClaim, v1alpha1.AnnotationMovePolicy, v1alpha1.AnnotationMoveRestores} {
		delete(pv.Annotations, key)
	}
}
