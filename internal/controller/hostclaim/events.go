package hostclaim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// noteLimit of an event's note in bytes (k8s.io/kubernetes/pkg/apis/core/validation).
const noteLimit = 1024

// told says on a claim what was decided.
func told(recorder events.EventRecorder, claim *corev1.PersistentVolumeClaim, d decision) {
	action := "Place"
	if d.unselect {
		action = "Unselect"
	}
	recorder.Eventf(claim, nil, corev1.EventTypeWarning, d.reason, action, "%s", cut(d.note, noteLimit))
}

// cut shortens a text to so many bytes, in whole characters.
func cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
