package promise

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

func (r *Reconciler) emitPromiseBroken(about runtime.Object, message string) {
	r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, v1alpha1.ReasonPromiseBroken, "Promise", "%s", message)
}

// tellPods reports on the Pods that wait for a claim's disk why there is no disk, and returns when
// to do so again, or 0. The Pods' own conditions do not report it, because the claim is bound, and the Pods are
// pushed.
func (r *Reconciler) emitOnPods(ctx context.Context, claim *corev1.PersistentVolumeClaim) (again time.Duration, err error) {
	if claim == nil {
		return 0, nil
	}
	broken := report.ClaimConditionProblem(claim, v1alpha1.ClaimPromise)
	if broken == nil || broken.Reason != v1alpha1.ReasonBroken {
		return 0, nil
	}
	cause := broken.Reason
	if problem := report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced); problem != nil {
		cause = problem.Reason
	}
	pods, err := index.PodsOfClaim(ctx, r.Client, client.ObjectKeyFromObject(claim))
	if err != nil {
		return 0, err
	}
	for i := range pods {
		pod := &pods[i]
		if podstatus.IsPodFinished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		due, next := r.news.EventDue(pod.UID, cause)
		if due {
			r.emitPromiseBroken(pod, "claim "+claim.Name+": "+broken.Message)
		}
		again = route.SoonerDelay(again, next)
	}
	return again, nil
}
