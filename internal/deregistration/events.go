package deregistration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

func (r *Deregisterer) emitPodEvicted(cr *v1alpha1.ClusterRegistration, pod *corev1.Pod) {
	r.Recorder.Eventf(pod, cr, corev1.EventTypeNormal, v1alpha1.ReasonEvicted, "Deregister", "evicted, because member %q is being deregistered", cr.Name)
}

// emitForcedRelease sets the object as the event's related object, because events that differ only in
// their note are counted as one.
func (r *Deregisterer) emitForcedRelease(cr *v1alpha1.ClusterRegistration, about client.Object, what string) {
	r.Recorder.Eventf(cr, about, corev1.EventTypeWarning, v1alpha1.ReasonForcedDeregistration, "Deregister",
		"abandoned the unreachable member (%s=true): %s", v1alpha1.AnnotationForceDeregister, what)
}

// emitPromiseRecalled reports, on a promise and its claim, that the disk of a lost member is abandoned.
func (r *Deregisterer) emitPromiseRecalled(cr *v1alpha1.ClusterRegistration, promise *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	what := fmt.Sprintf("member %q was deregistered while it was unreachable (%s=true), and the disk is abandoned: %s",
		cr.Name, v1alpha1.AnnotationForceDeregister, hostpv.DescribeVolume(promise))
	r.Recorder.Eventf(promise, cr, corev1.EventTypeWarning, v1alpha1.ReasonAbandoned, "Deregister", "%s", what)
	if claim != nil {
		r.Recorder.Eventf(claim, promise, corev1.EventTypeWarning, v1alpha1.ReasonAbandoned, "Deregister", "%s. The next Pod gets a new, empty disk in another member", what)
	}
}

func (r *Deregisterer) emitClaimWithdrawn(cr *v1alpha1.ClusterRegistration, claim *corev1.PersistentVolumeClaim) {
	r.Recorder.Eventf(claim, cr, corev1.EventTypeNormal, v1alpha1.ReasonPlacementWithdrawn, "Deregister",
		"withdrawn from member %q, which is being deregistered and has no volume for the claim yet. The scheduler can choose another member", cr.Name)
}

func (r *Deregisterer) emitVolumeClusterGone(cr *v1alpha1.ClusterRegistration, pv *corev1.PersistentVolume) {
	r.Recorder.Eventf(pv, cr, corev1.EventTypeWarning, v1alpha1.ReasonClusterGone, "Deregister",
		"member %q (cluster ID %s) was deregistered. The volume's data is kept in the member. To use the data again, register the same cluster, under any name", cr.Name, cr.Status.ClusterID)
}

// emitClaimClusterGone replaces the claim's condition, which the host rejects.
func (r *Deregisterer) emitClaimClusterGone(cr *v1alpha1.ClusterRegistration, claim *corev1.PersistentVolumeClaim) {
	gone := report.ClusterGoneRefusal(cr)
	r.Recorder.Eventf(claim, cr, corev1.EventTypeWarning, gone.Reason, "Deregister", "%s", gone.Message)
}
