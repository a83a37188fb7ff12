package rootpod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

func (r *reconciler) eventProblem(root *corev1.Pod, problem *mirror.Refusal) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

func (r *reconciler) eventWithdrawn(root *corev1.Pod, why string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonWithdrawn, "Withdraw", "withdrawn from member %q: %s", r.Registration, why)
}

// eventLeftOut emits an event that names the fields that the Pod's leaf lacks, if there are any.
func (r *reconciler) eventLeftOut(root *corev1.Pod) {
	if names := podspec.LeftOut(root); len(names) > 0 {
		r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, v1alpha1.ReasonFieldsLeftOut, "PushFields",
			"the Pod runs in member %q without %s, which have no meaning outside this cluster. Remove them if the Pod does not need them, or run it on a node of this cluster",
			r.Registration, strings.Join(names, ", "))
	}
}
