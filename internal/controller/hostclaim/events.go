package hostclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// emitDecisionEvent emits the decision's event on the claim.
func emitDecisionEvent(recorder events.EventRecorder, claim *corev1.PersistentVolumeClaim, d decision) {
	action := "Place"
	if d.unselect {
		action = "Unselect"
	}
	recorder.Eventf(claim, nil, corev1.EventTypeWarning, d.reason, action, "%s", d.note)
}
