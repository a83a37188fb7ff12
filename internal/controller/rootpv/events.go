package rootpv

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *reconciler) eventKept(host *corev1.PersistentVolume) {
	r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, v1alpha1.ReasonReleaseRefused, "Release",
		"no Pod uses the volume, and its disk in member %s is kept all the same, since its reclaim policy is Retain here or there", r.Registration)
}

// eventReleased tells of a disk that went with its last Pod.
func (r *reconciler) eventReleased(o observed, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	r.Recorder.Eventf(claim, o.host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeReleased, "Release",
		"volume %s in member %s is destroyed, since no Pod uses the claim: the next one has another made", o.leafName, r.Registration)
}
