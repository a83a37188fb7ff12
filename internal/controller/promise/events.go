package promise

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *Reconciler) eventBroken(claim *corev1.PersistentVolumeClaim, message string) {
	r.Recorder.Eventf(claim, nil, corev1.EventTypeWarning, v1alpha1.ReasonPromiseBroken, "Promise", "%s", message)
}

func (r *Reconciler) eventUnreachable(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
	r.Recorder.Eventf(pod, claim, corev1.EventTypeWarning, v1alpha1.ReasonPromiseUnreachable, "Promise",
		"claim %q cannot be mounted on node %q: driver %s, by which members of Xylem provide it, runs on no node of this cluster. Re-create the Pod with nodeSelector %s=true, or use a class with %s=%s or %s=%s",
		claim.Name, pod.Spec.NodeName, v1alpha1.PromiseDriverName, v1alpha1.LabelVirtualNode,
		v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
}
