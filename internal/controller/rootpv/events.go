package rootpv

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// warnOnce emits the event of a problem on a host PV, unless this process has emitted it
// already.
func (r *reconciler) warnOnce(host *corev1.PersistentVolume, problem *mirror.Refusal) {
	key := string(host.UID) + "/" + problem.Reason
	if _, emitted := r.kept.Get(key); emitted {
		return
	}
	r.kept.Add(key, true)
	r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, problem.Reason, "Release", "%s", problem.Message)
}

// eventReleased reports a disk that was released with its last Pod.
func (r *reconciler) eventReleased(s *volume.Observed, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	r.Recorder.Eventf(claim, s.Host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeReleased, "Release",
		"destroyed volume %q in member %q: no Pod used the claim. The next Pod gets a new disk", s.Name, r.Registration)
}
