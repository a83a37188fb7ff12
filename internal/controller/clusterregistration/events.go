package clusterregistration

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// announce says on the registration that the connection came or went.
func (r *Reconciler) announce(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionConnected)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionConnected)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason || is.Reason == v1alpha1.ReasonConnecting {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue && is.Reason == v1alpha1.ReasonConnected {
		kind = corev1.EventTypeNormal
	}
	r.Recorder.Eventf(after, nil, kind, is.Reason, "Connect", "%s", is.Message)
}

func (r *Reconciler) eventEvicted(cr *v1alpha1.ClusterRegistration, pod *corev1.Pod) {
	r.Recorder.Eventf(pod, cr, corev1.EventTypeNormal, "Evicted", "Deregister", "evicted: member %s is being deregistered", cr.Name)
}

func (r *Reconciler) eventForced(cr *v1alpha1.ClusterRegistration, what string) {
	r.Recorder.Eventf(cr, nil, corev1.EventTypeWarning, "ForcedDeregistration", "Deregister",
		"let go of the member without reaching it (%s=true): %s", v1alpha1.AnnotationForceDeregister, what)
}

func (r *Reconciler) eventWithdrawn(cr *v1alpha1.ClusterRegistration, claim *corev1.PersistentVolumeClaim) {
	r.Recorder.Eventf(claim, cr, corev1.EventTypeNormal, "PlacementWithdrawn", "Deregister",
		"member %s is being deregistered before a volume was made there: the claim can be placed anew", cr.Name)
}

func (r *Reconciler) eventClusterGone(cr *v1alpha1.ClusterRegistration, pv *corev1.PersistentVolume) {
	r.Recorder.Eventf(pv, cr, corev1.EventTypeWarning, "ClusterGone", "Deregister",
		"member %s (cluster %s) was deregistered: the data stay there, out of reach; registering the same cluster again adopts them", cr.Name, cr.Status.ClusterID)
}
