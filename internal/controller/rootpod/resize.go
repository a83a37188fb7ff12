package rootpod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// resizeLeafPod resizes the leaf and records that. If the member rejects the resize, the leaf keeps its resources, an
// event reports the rejection, and the Pod's other changes still reach the leaf.
func (r *reconciler) resizeLeafPod(ctx context.Context, o lifecycle.Observed, d lifecycle.ResizeLeaf) error {
	resized, outOfRange := podspec.ResizePod(o.Leaf, d.Drift)
	if len(outOfRange) > 0 {
		r.reportNotResized(o.Root, report.ResizeOutOfRange(r.Registration, outOfRange))
		return r.continueWithoutResize(ctx, o) // only another resize helps, and its event enqueues the Pod
	}
	err := r.MemberWriter.ResizePod(ctx, actor, o.Leaf, resized)
	if err != nil {
		if apierrors.IsConflict(err) {
			return err // the cache will catch up
		}
		if problem := report.ResizeRefusal(r.Registration, err); problem != nil {
			r.reportNotResized(o.Root, problem)
		}
		return errors.Join(err, r.continueWithoutResize(ctx, o))
	}
	if changed := podspec.AmountsNotResized(resized, d.Drift); len(changed) > 0 {
		r.reportNotResized(o.Root, report.ResizeAltered(r.Registration, changed))
	} else {
		r.news.ForgetState(resizeState(o.Root))
	}
	if err := r.MemberWriter.PatchStamped(ctx, actor, resized, podspec.RecordResize(o.Root, resized)); err != nil {
		return fmt.Errorf("record the resize of Pod %s/%s: %w", resized.Namespace, resized.Name, err)
	}
	return nil
}

// continueWithoutResize takes the next step for a Pod that cannot be resized.
func (r *reconciler) continueWithoutResize(ctx context.Context, o lifecycle.Observed) error {
	o.ResizeRejected = true
	return r.executeDecision(ctx, o, lifecycle.NextDecision(o))
}

// resizeState is the state about a Pod's rejected resize in news. No container has this name.
func resizeState(root *corev1.Pod) string { return string(root.UID) + "//resize" }

// reportNotResized reports why the leaf's resources differ from the root's.
func (r *reconciler) reportNotResized(root *corev1.Pod, problem *mirror.Refusal) {
	if due, _ := r.news.EventDue(resizeState(root), problem.Message); due {
		r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, problem.Reason, "Resize", "%s", problem.Message)
	}
}
