package leafnamespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// eventRefused emits an event on the Pods that need the namespace. It reports that the member
// rejected the namespace's creation.
func (r *reconciler) eventRefused(ctx context.Context, name string, cause error) error {
	pods, err := r.needingPods(ctx, name)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.ReasonNamespaceRefused, "Push",
			"member %q rejects the creation of namespace %q: %v. Ask the member's admin to allow the namespace, or to create it and hand it over with `kubectl label namespace %s xylem.io/host=%s`",
			r.Registration, name, cause, name, r.HostID)
	}
	return nil
}
