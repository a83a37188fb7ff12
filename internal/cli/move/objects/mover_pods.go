package objects

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/wording"
)

// StartMover creates a Pod, and waits until it runs. where is its member, for messages.
func StartMover(ctx context.Context, h *Client, pod *corev1.Pod, where Place) error {
	name := pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName // admission may add other volumes
	h.ReportLine("Starting Pod %q in member %q", pod.Name, where.Registration)
	if err := h.Create(ctx, pod, command.FieldOwner); err != nil {
		return h.ExplainHostError(fmt.Errorf("create Pod %q: %w", pod.Name, err))
	}
	return h.AwaitCondition(ctx, fmt.Sprintf("Pod %q to run", pod.Name), func(ctx context.Context) (string, error) {
		now, err := index.FindObject[corev1.Pod](ctx, h, client.ObjectKeyFromObject(pod))
		switch {
		case err != nil:
			return "", h.ExplainHostError(err)
		case now == nil, now.DeletionTimestamp != nil:
			return "", fmt.Errorf("somebody deleted Pod %q", pod.Name)
		case now.Status.Phase == corev1.PodFailed, now.Status.Phase == corev1.PodSucceeded:
			return "", fmt.Errorf("in member %q, Pod %q terminated: %s %s", where.Registration, pod.Name, now.Status.Reason, now.Status.Message)
		case podIsRunning(now):
			return "", nil
		}
		claim, err := h.ReadClaim(ctx, name)
		if err != nil {
			return "", err
		}
		return whyMoverWaits(now, claim), nil
	})
}

func podIsRunning(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 && pod.DeletionTimestamp == nil
}

// whyMoverWaits returns the reason why a Pod is not running yet, as reported by Xylem, the scheduler or
// the container runtime.
func whyMoverWaits(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{v1alpha1.ClaimPlaced, v1alpha1.ClaimPlaceable} {
		if claim == nil {
			break
		}
		if problem := report.ClaimConditionProblem(claim, kind); problem != nil {
			return fmt.Sprintf("claim %q: %s", claim.Name, problem.Message)
		}
	}
	for _, kind := range []corev1.PodConditionType{v1alpha1.PodPlaceable, v1alpha1.PodPushed, corev1.PodScheduled} {
		if problem := report.PodConditionProblem(pod, kind); problem != nil {
			return problem.Message
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if w := pod.Status.ContainerStatuses[i].State.Waiting; w != nil && w.Message != "" {
			return w.Message
		}
	}
	return "its phase is " + string(pod.Status.Phase)
}

// RunningMover returns the name of a running Pod that belongs to the move and uses the claim, or "".
func RunningMover(ctx context.Context, h *Client, id, claim string) (string, error) {
	pods, err := moversOf(ctx, h, id)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if podIsRunning(&pods[i]) && slices.Contains(podspec.ClaimNamesOfPod(&pods[i]), claim) {
			return pods[i].Name, nil
		}
	}
	return "", nil
}

// DeleteMovers deletes the Pods of all runs of the move, and waits until they are gone.
func DeleteMovers(ctx context.Context, h *Client, id string) error {
	return h.AwaitCondition(ctx, "the move's Pods to be deleted", func(ctx context.Context) (string, error) {
		pods, err := moversOf(ctx, h, id)
		if err != nil {
			return "", err
		}
		var names []string
		for i := range pods {
			names = append(names, pods[i].Name)
			if pods[i].DeletionTimestamp != nil {
				continue
			}
			if err := client.IgnoreNotFound(h.Delete(ctx, &pods[i], client.Preconditions{UID: &pods[i].UID})); err != nil {
				return "", h.ExplainHostError(fmt.Errorf("delete Pod %q: %w", pods[i].Name, err))
			}
		}
		if len(names) == 0 {
			return "", nil
		}
		return wording.QuotedNames(names...) + " not deleted yet", nil
	})
}

// moversOf returns the Pods of the move with the given ID.
func moversOf(ctx context.Context, h *Client, id string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := h.List(ctx, &pods, client.InNamespace(h.Namespace), client.MatchingLabels(LabelsOfMove(id))); err != nil {
		return nil, h.ExplainHostError(fmt.Errorf("list Pods: %w", err))
	}
	return pods.Items, nil
}
