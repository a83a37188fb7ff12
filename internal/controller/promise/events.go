package promise

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

func (r *Reconciler) eventBroken(about runtime.Object, message string) {
	r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, v1alpha1.ReasonPromiseBroken, "Promise", "%s", message)
}

// tellPods reports on the Pods that wait for a claim's disk why there is no disk, once for each Pod
// and cause. The Pods' own conditions do not report it, because the claim is bound, and the Pods are
// pushed.
func (r *Reconciler) tellPods(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim == nil {
		return nil
	}
	broken := report.ClaimProblem(claim, v1alpha1.ClaimPromise)
	if broken == nil || broken.Reason != v1alpha1.ReasonBroken {
		return nil
	}
	cause := broken.Reason
	if problem := report.ClaimProblem(claim, v1alpha1.ClaimPlaced); problem != nil {
		cause = problem.Reason
	}
	pods, err := index.PodsOfClaim(ctx, r.Client, client.ObjectKeyFromObject(claim))
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		if told, _ := r.told.Get(pod.UID); told == cause || podstatus.Finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		r.told.Add(pod.UID, cause)
		r.eventBroken(pod, "claim "+claim.Name+": "+broken.Message)
	}
	return nil
}
