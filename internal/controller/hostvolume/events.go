package hostvolume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *Reconciler) eventAbandoned(pv *corev1.PersistentVolume, leaf, clusterID string) {
	r.Recorder.Eventf(pv, nil, corev1.EventTypeWarning, v1alpha1.ReasonAbandoned, "Release",
		"let go of leaf volume %s in cluster %s (registration %s) by annotation %s: its data stay there",
		leaf, clusterID, pv.Labels[v1alpha1.LabelCluster], v1alpha1.AnnotationAbandon)
}
