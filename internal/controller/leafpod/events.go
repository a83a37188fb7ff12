package leafpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

func (r *reconciler) eventFailed(root *corev1.Pod, reason, message string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, reason, "Fail", "%s", message)
}

// eventHidden reports, when the Pod starts to run, that the host does not show its address.
func (r *reconciler) eventHidden(o observed, shown corev1.PodStatus) {
	if o.leaf == nil || o.root.Status.Phase == corev1.PodRunning || shown.Phase != corev1.PodRunning {
		return
	}
	if hidden := podstatus.HiddenPodIP(o.leaf, r.Member); hidden != "" {
		r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, v1alpha1.ReasonPodIPHidden, "Show",
			"Xylem does not copy Pod IP %q of member %q to the host: the address is special, or outside spec.node.podCIDRs of the registration. If the host's network reaches the address, add its range to spec.node.podCIDRs", hidden, r.Registration)
	}
}
