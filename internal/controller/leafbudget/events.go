package leafbudget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// emitNotEnforced emits a warning on a host budget that the member does not enforce as it should. It returns when
// the event must be repeated.
func (r *reconciler) emitNotEnforced(host *policyv1.PodDisruptionBudget, problem *mirror.Refusal) time.Duration {
	due, again := r.news.EventDue(host.UID, *problem)
	if due {
		r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, problem.Reason, "ProtectPods", "%s", problem.Message)
	}
	return again
}
