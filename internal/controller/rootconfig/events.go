package rootconfig

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/mirror"
)

// reportRefused reports on the Pods why an object that they refer to, or their tokens, are not in the member.
func (r *copier[T]) reportRefused(ctx context.Context, users []*corev1.Pod, refusal *mirror.Refusal) error {
	if r.podTokens != nil {
		return r.podTokens.reportMissing(ctx, users[0], refusal)
	}
	eventRefused(r.Recorder, users, refusal)
	return nil
}

func eventRefused(recorder events.EventRecorder, users []*corev1.Pod, refusal *mirror.Refusal) {
	for _, pod := range users {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, refusal.Reason, "Push", "%s", refusal.Message)
	}
}
