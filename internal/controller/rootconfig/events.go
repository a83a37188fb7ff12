package rootconfig

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/mirror"
)

// eventRefused reports on the Pods why an object that they refer to is not copied.
func (r *copier[T]) eventRefused(users []*corev1.Pod, refusal *mirror.Refusal) {
	eventRefused(r.Recorder, users, refusal)
}

func eventRefused(recorder events.EventRecorder, users []*corev1.Pod, refusal *mirror.Refusal) {
	for _, pod := range users {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, refusal.Reason, "Push", "%s", refusal.Message)
	}
}
