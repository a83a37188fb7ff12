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
	"github.com/xylem-io/xylem/internal/route"
)

// PodsHere are the Pods that use a claim and are bound to the member's node, or about to be.
func (o ClaimObserver) PodsHere(ctx context.Context, claim types.NamespacedName) ([]corev1.Pod, error) {
	pods, err := index.PodsOfClaim(ctx, o.Host, claim)
	if err != nil {
		return nil, err
	}
	return o.BoundHere(ctx, o.Host, pods)
}

// BoundHere are those of some Pods that are bound to the member's node, or about to be, by a
// reader of the host.
func (o ClaimObserver) BoundHere(ctx context.Context, host client.Reader, pods []corev1.Pod) ([]corev1.Pod, error) {
	var here []corev1.Pod
	for i := range pods {
		if !uses(&pods[i]) {
			continue
		}
		is := pods[i].Spec.NodeName == o.NodeName
		if !is {
			var err error
			if is, err = o.nominated(ctx, host, &pods[i]); err != nil {
				return nil, err
			}
		}
		if is {
			here = append(here, pods[i])
		}
	}
	return here, nil
}

// uses reports whether a Pod can be what a disk is provisioned for: it has neither ended nor is
// it being deleted, and may be pushed.
func uses(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !podstatus.Finished(pod) && !podstatus.KeptOut(pod)
}

// nominated reports whether a Pod is about to be bound to the member's node, and waits, or has
// waited, for the volume of another claim that was selected for here.
func (o ClaimObserver) nominated(ctx context.Context, host client.Reader, pod *corev1.Pod) (bool, error) {
	if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != o.NodeName {
		return false, nil
	}
	for _, name := range podspec.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return false, err
		}
		if claim != nil && o.SelectedHere(claim) {
			return true, nil
		}
	}
	return false, nil
}

// SelectedHere reports whether the scheduler has selected the member's node for a claim's volume.
// The claim may be bound by now: its Pod is not, until the scheduler looks again. Of a promise, a
// selected node says nothing.
func (o ClaimObserver) SelectedHere(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[route.AnnSelectedNode] == o.NodeName && !hostpv.NamesPromise(claim.Spec.VolumeName)
}
