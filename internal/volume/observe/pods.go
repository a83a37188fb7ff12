package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// PodsOfClaimHere returns the Pods that use a claim and are, or are about to be, bound to the member's
// node.
func (o Observer) PodsOfClaimHere(ctx context.Context, claim types.NamespacedName) ([]corev1.Pod, error) {
	pods, err := index.PodsOfClaim(ctx, o.Host, claim)
	if err != nil {
		return nil, err
	}
	return o.PodsBoundHere(ctx, o.Host, pods)
}

// PodsBoundHere returns the given Pods that are, or are about to be, bound to the member's node, or to the node of a
// group. It reads from host.
func (o Observer) PodsBoundHere(ctx context.Context, host client.Reader, pods []corev1.Pod) ([]corev1.Pod, error) {
	var here []corev1.Pod
	for i := range pods {
		if !mayUseDisk(&pods[i]) {
			continue
		}
		is, err := o.boundOrNominatedHere(ctx, host, &pods[i])
		if err != nil {
			return nil, err
		}
		if is {
			here = append(here, pods[i])
		}
	}
	return here, nil
}

func (o Observer) boundOrNominatedHere(ctx context.Context, host client.Reader, pod *corev1.Pod) (bool, error) {
	switch name := pod.Spec.NodeName; {
	case name == "":
		return o.nominatedWithClaim(ctx, host, pod)
	case name == o.NodeName, !o.HasNode(name):
		return name == o.NodeName, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, host, index.ClusterScopedKey(pod.Spec.NodeName))
	return placement.IsPodInMember(pod, node, o.Member), err
}

// mayUseDisk reports whether a disk can be provisioned for a Pod: the Pod has not finished, is not being
// deleted, and may be pushed.
func mayUseDisk(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(pod) && !podstatus.IsKeptFromMembers(pod)
}

// nominatedWithClaim reports whether a Pod is about to be bound to a node of the member, and has another claim for
// which the scheduler has selected that node.
func (o Observer) nominatedWithClaim(ctx context.Context, host client.Reader, pod *corev1.Pod) (bool, error) {
	if !o.HasNode(pod.Status.NominatedNodeName) {
		return false, nil
	}
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return false, err
		}
		if claim != nil && o.NodeSelectedHere(claim) {
			return true, nil
		}
	}
	return false, nil
}

// NodeSelectedHere reports whether the scheduler has selected the member's node, or the node of a group, for a claim's
// volume. The claim may already be bound while its Pod waits for the scheduler's next attempt.
// For a promise, the selected node has no meaning.
func (o Observer) NodeSelectedHere(claim *corev1.PersistentVolumeClaim) bool {
	return o.HasNode(claim.Annotations[route.AnnSelectedNode]) && !hostpv.IsPromiseName(claim.Spec.VolumeName)
}
