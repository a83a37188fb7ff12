package member

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/reduced"
)

// Workload is a Pod on one of the member's nodes that this host did not create, reduced to what the node's
// capacity depends on. A Pod takes 1.3 KiB even without containers, and a member may have 100,000 of them.
type Workload struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	NodeName string
	// Requests are the effective requests of the Pod. Workloads share equal ones.
	Requests corev1.ResourceList
}

// WorkloadOf returns the part of a Pod that a node's capacity depends on, or nil if the Pod uses no node: it
// is unbound or finished.
func WorkloadOf(pod *corev1.Pod) *Workload {
	if pod.Spec.NodeName == "" || podstatus.IsPodFinished(pod) {
		return nil
	}
	return &Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: reduced.InternText(pod.Namespace), Name: pod.Name, ResourceVersion: pod.ResourceVersion},
		NodeName:   reduced.InternText(pod.Spec.NodeName),
		Requests: reduced.InternResources(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true, // as the member's scheduler counts a resize
		})),
	}
}

// DeepCopyObject implements runtime.Object. The copy shares Requests, which nobody changes.
func (w *Workload) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}
