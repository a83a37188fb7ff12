package rootpod

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

func (r *reconciler) emitPodProblem(root *corev1.Pod, problem *mirror.Refusal) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

// emitLeafPodGated reports the scheduling gates of a leaf, and returns when to do so again, or 0. The root's
// gates were removed before it was scheduled, so programs in the member added these.
func (r *reconciler) emitLeafPodGated(o lifecycle.Observed) time.Duration {
	if o.Root == nil || o.Root.DeletionTimestamp != nil || o.Leaf == nil || o.Root.UID != o.Origin.UID || o.Leaf.DeletionTimestamp != nil || len(o.Leaf.Spec.SchedulingGates) == 0 {
		return 0
	}
	var names []string
	for _, gate := range o.Leaf.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	gates := mirror.QuotedMemberNames(names)
	due, again := r.news.EventDue(string(o.Leaf.UID)+"//gates", gates)
	if due {
		r.Recorder.Eventf(o.Root, nil, corev1.EventTypeWarning, v1alpha1.ReasonLeafPodGated, "Schedule",
			"member %q does not schedule the Pod until a program in the member, such as a queue, removes the scheduling gates that it added: %s. Wait, or ask the member's admin about this program", r.Registration, gates)
	}
	return again
}

func (r *reconciler) emitLeafPodWithdrawn(root *corev1.Pod, why string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonWithdrawn, "Withdraw", "withdrawn from member %q: %s", r.Registration, why)
}

// emitFieldsLeftOut emits an event that names the fields that the Pod's leaf lacks, if there are any.
func (r *reconciler) emitFieldsLeftOut(root *corev1.Pod) {
	if names := podspec.OmittedFields(root, r.Member); len(names) > 0 {
		r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, v1alpha1.ReasonFieldsLeftOut, "PushFields",
			"the Pod runs in member %q without %s, which have no meaning outside the host. Remove these fields if the Pod does not need them, or run the Pod on one of the host's own nodes",
			r.Registration, strings.Join(names, ", "))
	}
}
