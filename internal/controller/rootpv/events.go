package rootpv

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// warnOnHostVolume reports a problem of a host PV, and returns when to do so again.
func (r *reconciler) warnOnHostVolume(host *corev1.PersistentVolume, problem *mirror.Refusal) time.Duration {
	due, again := r.news.EventDue(host.UID, problem.Message)
	if due {
		r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, problem.Reason, "Release", "%s", problem.Message)
	}
	return again
}

// emitVolumeReleased reports a disk that was released with its last Pod.
func (r *reconciler) emitVolumeReleased(s *volume.Observed, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	r.Recorder.Eventf(claim, s.Host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeReleased, "Release",
		"destroyed volume %q in member %q: no Pod used the claim. The next Pod gets a new disk", s.Name, r.Registration)
}
