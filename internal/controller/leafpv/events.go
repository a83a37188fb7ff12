package leafpv

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

func (r *reconciler) emitVolumeMirrored(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeMirrored, "Mirror",
		"member %q has provisioned volume %q", r.Registration, host.Name)
}

func (r *reconciler) emitVolumeNotUsed(root *corev1.PersistentVolumeClaim, problem *mirror.Refusal) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, problem.Reason, "Mirror", "%s", problem.Message)
}

func (r *reconciler) emitVolumeRecreated(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeWarning, v1alpha1.ReasonVolumeRecreated, "Mirror",
		"Xylem re-created PersistentVolume %q for the volume in member %q, because it was missing from the host. Its policy is Retain. Set it to Delete if the data should be deleted with the claim", host.Name, r.Registration)
}

func (r *reconciler) emitVolumeNotShared(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume, backend string) {
	r.Recorder.Eventf(root, host, corev1.EventTypeWarning, v1alpha1.ReasonNotShared, "Mirror",
		"only Pods in member %q can use volume %q, although backend %q is shared: the volume's handle or attributes are too long or contain unusual characters. Use a class with other parameters if Pods in other members need the volume", r.Registration, host.Name, backend)
}

func (r *reconciler) emitVolumeAdopted(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"the claim now uses volume %q in member %q, which belonged to an earlier claim of the same name. The policy of the volume is Retain", host.Name, r.Registration)
}

// warnOnHostVolume reports a problem of an admin's host PV, and returns when to do so again.
func (r *reconciler) warnOnHostVolume(host *corev1.PersistentVolume, problem *mirror.Refusal) time.Duration {
	due, again := r.news.EventDue(host.UID, problem.Message)
	if due {
		r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, problem.Reason, "Adopt", "%s", problem.Message)
	}
	return again
}

// emitVolumeTaken reports that an admin's host PV has adopted its volume.
func (r *reconciler) emitVolumeTaken(s *volume.Observed) {
	r.news.ForgetState(s.Host.UID)
	r.Recorder.Eventf(s.Host, nil, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"Xylem adopted volume %q of member %q with the consent of that member's admin. While the volume is in use, its policy in the member is Retain", s.Name, r.Registration)
}

// emitPromiseFulfilled reports on the claim, and on the Pods that use it, that the promise was fulfilled.
func (r *reconciler) emitPromiseFulfilled(s *volume.Observed, host *corev1.PersistentVolume, consumers []corev1.Pod) {
	if s.Root == nil {
		return
	}
	about := []runtime.Object{s.Root}
	for i := range consumers {
		about = append(about, &consumers[i])
	}
	storage := host.Spec.Capacity[corev1.ResourceStorage]
	for _, object := range about {
		r.Recorder.Eventf(object, host, corev1.EventTypeNormal, v1alpha1.ReasonPromiseFulfilled, "Fulfil",
			"member %q has provisioned volume %q of %s for claim %q", r.Registration, s.Name, storage.String(), s.Root.Name)
	}
}

// eventLastClaimLost reports that the host PV has policy Retain now.
func (r *reconciler) eventLastClaimLost(s *volume.Observed) {
	last, _ := s.LastOtherOrigin()
	r.Recorder.Eventf(s.Host, s.Root, corev1.EventTypeWarning, v1alpha1.ReasonLastClaimLost, "Retain",
		"claim %q may have used volume %q in member %q last, and the host may have lost this claim when the host was restored from a backup: the volume may have newer data than the backup. "+
			"Xylem has set the reclaim policy of the PersistentVolume to Retain. Check the data before you set the policy to Delete again", last.Root, s.Name, r.Registration)
}
