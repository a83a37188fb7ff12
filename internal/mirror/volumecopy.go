package mirror

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// VolumeCopy identifies the shared volume of which a member's claim and PV are a copy. The copy has
// this as its stamp instead of an Origin, so that only the code for copies acts on it.
type VolumeCopy struct {
	// HostID is the cluster ID of the host.
	HostID string
	// Volume and VolumeUID are the name and UID of the host PV.
	Volume    string
	VolumeUID types.UID
	// ClaimUID is the UID of the host's claim.
	ClaimUID types.UID
}

// VolumeCopyFromHost reads the stamp of a copy. It returns false for all other objects, including copies
// of another host.
func VolumeCopyFromHost(hostID string, obj metav1.Object) (VolumeCopy, bool) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	c := VolumeCopy{
		HostID: labels[v1alpha1.LabelHost], Volume: annotations[v1alpha1.AnnotationCopyOf],
		VolumeUID: types.UID(annotations[v1alpha1.AnnotationCopyOfUID]), ClaimUID: types.UID(annotations[v1alpha1.AnnotationCopyFor]),
	}
	_, root := annotations[v1alpha1.AnnotationRoot]
	return c, c.HostID == hostID && hostID != "" && labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue &&
		c.Volume != "" && c.VolumeUID != "" && c.ClaimUID != "" && !root && StampedRootUID(obj) == ""
}

// StampCopy adds the stamp to an object before its creation.
func (c VolumeCopy) StampCopy(obj metav1.Object) {
	obj.SetLabels(fields.MergeStringMaps(obj.GetLabels(), map[string]string{
		v1alpha1.LabelHost: c.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}))
	obj.SetAnnotations(fields.MergeStringMaps(obj.GetAnnotations(), map[string]string{
		v1alpha1.AnnotationCopyOf: c.Volume, v1alpha1.AnnotationCopyOfUID: string(c.VolumeUID), v1alpha1.AnnotationCopyFor: string(c.ClaimUID),
	}))
}
