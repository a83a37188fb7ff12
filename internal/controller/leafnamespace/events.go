package leafnamespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// emitNamespaceRefused emits an event on the Pods that need the namespace. It reports that the member
// rejected the namespace's creation.
func (r *reconciler) emitNamespaceRefused(ctx context.Context, name string, refusal *mirror.Refusal) error {
	pods, err := r.needingPods(ctx, name)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, refusal.Reason, "Push", "%s", refusal.Message)
	}
	return nil
}
