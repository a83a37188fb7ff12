package oracle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// whenUnused reports whether a host PV is a promise with release WhenUnused.
func whenUnused(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == v1alpha1.PromiseDriverName &&
		pv.Spec.CSI.VolumeAttributes[v1alpha1.ParameterRelease] == v1alpha1.ReleaseWhenUnused
}

// used checks the proof that no Pod used the disk of an existing claim at the given time (I2, case
// c). It returns the part that was missing, or "".
func (h *history) used(leaf []volumeAt, promise *corev1.PersistentVolume, when time.Time) string {
	since, err := time.Parse(time.RFC3339, promise.Annotations[v1alpha1.AnnotationUnusedSince])
	grace, graceErr := time.ParseDuration(promise.Spec.CSI.VolumeAttributes[v1alpha1.ParameterReleaseGrace])
	state, known := before(leaf, when)
	switch {
	case promise.Annotations[v1alpha1.AnnotationReleasing] != promise.Annotations[v1alpha1.AttributeLeafUID]:
		return fmt.Sprintf("host PV %s, whose claim existed, was not marked as being released", promise.Name)
	case promise.Annotations[v1alpha1.AnnotationConsumer] == "":
		return fmt.Sprintf("host PV %s never had a consumer", promise.Name)
	case promise.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf("host PV %s had policy %s", promise.Name, promise.Spec.PersistentVolumeReclaimPolicy)
	case known && state.obj.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(corev1.PersistentVolumeReclaimRetain):
		return "the member's policy was Retain"
	case err != nil || graceErr != nil || when.Add(lag).Before(since.Add(grace)):
		return fmt.Sprintf("host PV %s had been unused only since %q, and its grace period is %s", promise.Name, promise.Annotations[v1alpha1.AnnotationUnusedSince], grace)
	}
	return h.user(promise, when)
}

// user describes the Pod, if any, that was bound in the promise's member before the promise was
// marked as releasing, and that still used it at the given time. A Pod that is bound after the mark
// does not get the disk.
func (h *history) user(promise *corev1.PersistentVolume, when time.Time) string {
	marked := when
	for _, s := range h.mirrors[standsFor(promise)] {
		if s.obj.Annotations[v1alpha1.AnnotationReleasing] != "" {
			marked = s.time
			break
		}
	}
	node := v1alpha1.DefaultNodeNamePrefix + promise.Labels[v1alpha1.LabelCluster]
	uses := func(states []podAt, at time.Time) bool {
		s, known := before(states, at)
		return known && !s.gone && s.obj.Spec.NodeName == node && s.obj.Namespace == promise.Spec.ClaimRef.Namespace &&
			!finished(s.obj) &&
			slices.ContainsFunc(s.obj.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == promise.Spec.ClaimRef.Name
			})
	}
	for _, states := range h.pods {
		if uses(states, marked.Add(-lag)) && uses(states, when) {
			return fmt.Sprintf("Pod %s used it", states[0].obj.Name)
		}
	}
	return ""
}
