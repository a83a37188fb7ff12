package objects

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/wording"
)

// ProveUnused checks that no Pod uses the claims. It ignores the Pods of the move with the given ID, if
// the ID is not empty.
func ProveUnused(ctx context.Context, h *Client, id string, claims ...string) error {
	var pods corev1.PodList
	if err := h.List(ctx, &pods, client.InNamespace(h.Namespace)); err != nil {
		return h.ExplainHostError(fmt.Errorf("list Pods: %w", err))
	}
	names := podsUsing(pods.Items, id, claims...)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("claim %q is in use by %s (%s), but nobody may write to the disk during a move. Scale down the owner of each Pod or delete the Pod, even if it has terminated. Then run this command again",
		claims[0], wording.CountNoun(len(names), "Pod"), wording.QuotedNames(names...))
}

// podsUsing returns the names of the Pods that use one of the claims, except the Pods of the move. It
// includes terminated Pods, because they also keep the claim from being deleted.
func podsUsing(pods []corev1.Pod, id string, claims ...string) []string {
	own := LabelsOfMove(id)
	var names []string
	for i := range pods {
		if id != "" && pods[i].Labels[v1alpha1.LabelMove] == own[v1alpha1.LabelMove] && pods[i].Labels[v1alpha1.LabelManagedBy] == own[v1alpha1.LabelManagedBy] {
			continue
		}
		if slices.ContainsFunc(podspec.ClaimNamesOfPod(&pods[i]), func(name string) bool { return slices.Contains(claims, name) }) {
			names = append(names, pods[i].Name)
		}
	}
	return names
}
