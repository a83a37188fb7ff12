package hostservice

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// emitEndpointInMember emits a warning on a Service that selects a Pod in a member.
func (r *Reconciler) emitEndpointInMember(service *corev1.Service, pod *corev1.Pod, registration *v1alpha1.ClusterRegistration) {
	if len(registration.Spec.Node.PodCIDRs) == 0 {
		r.Recorder.Eventf(service, pod, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
			"the Service has no endpoint for Pod %q: the Pod runs in member %q, whose Pod addresses Xylem does not copy to the host. If the networks are connected, set spec.node.podCIDRs of ClusterRegistration %q; see Networking in Xylem's README",
			pod.Name, registration.Name, registration.Name)
		return
	}
	r.Recorder.Eventf(service, pod, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
		"the endpoint for Pod %q is an address of member %q: clients reach it only if their network routes to the member's Pods. Xylem does not connect networks. Check that route; see Networking in Xylem's README",
		pod.Name, registration.Name)
}
