package hostvolume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

func (r *Reconciler) emitVolumeAbandoned(pv *corev1.PersistentVolume, clusterID string) {
	if clusterID == "" {
		r.Recorder.Eventf(pv, nil, corev1.EventTypeWarning, v1alpha1.ReasonAbandoned, "Release",
			"abandoned the volume because of annotation %s: no member has the volume, so no objects remain in any member", v1alpha1.AnnotationAbandon)
		return
	}
	r.Recorder.Eventf(pv, nil, corev1.EventTypeWarning, v1alpha1.ReasonAbandoned, "Release",
		"abandoned %s in member %q (cluster ID %s) because of annotation %s: the data is kept in the member, and the host no longer uses the volume",
		hostpv.DescribeVolume(pv), pv.Labels[v1alpha1.LabelCluster], clusterID, v1alpha1.AnnotationAbandon)
}

func (r *Reconciler) emitStrayImport(pv *corev1.PersistentVolume, clusterID string) {
	r.Recorder.Eventf(pv, nil, corev1.EventTypeWarning, v1alpha1.ReasonAdoptionRefused, "Adopt",
		"no registered member has cluster ID %q, with which spec.csi.volumeHandle begins. Register that cluster, or delete the PersistentVolume and create one whose volumeHandle begins with the status.clusterID of a ClusterRegistration", clusterID)
}
