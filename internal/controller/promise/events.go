package promise

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// eventBroken reports on a claim, and on the Pods that wait for its disk, why there is no disk. The
// Pods' own conditions do not report it, because the claim is bound, and the Pods are pushed.
func (r *Reconciler) eventBroken(ctx context.Context, claim *corev1.PersistentVolumeClaim, message string) error {
	pods, err := index.PodsOfClaim(ctx, r.Client, client.ObjectKeyFromObject(claim))
	if err != nil {
		return err
	}
	r.event(claim, message)
	for i := range pods {
		if pod := &pods[i]; !podstatus.Finished(pod) && pod.DeletionTimestamp == nil {
			r.event(pod, fmt.Sprintf("claim %q: %s", claim.Name, message))
		}
	}
	return nil
}

func (r *Reconciler) event(about runtime.Object, message string) {
	r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, v1alpha1.ReasonPromiseBroken, "Promise", "%s", message)
}
