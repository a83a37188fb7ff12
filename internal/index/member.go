package index

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const volumesByClaim = "xylem.volumes-by-claim"

// SetupMember adds the indexes of a member's cache; before it starts.
func SetupMember(ctx context.Context, indexer client.FieldIndexer) error {
	return setup(ctx, indexer, []field{
		{&corev1.Pod{}, podsByClaim, onPod(claimNamesAsWritten)},
		{&corev1.PersistentVolume{}, volumesByClaim, func(obj client.Object) []string {
			pv, ok := obj.(*corev1.PersistentVolume)
			if !ok || pv.Spec.ClaimRef == nil {
				return nil
			}
			return []string{pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name}
		}},
	})
}

// LeafPodsOfClaim are the leaf Pods that use a leaf claim.
func LeafPodsOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.Pod, error) {
	return pods(ctx, r, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: claim.Name})
}

// LeafVolumesOfClaim are the member's PVs whose claimRef names a claim,
// whatever UID it gives.
func LeafVolumesOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, client.MatchingFields{volumesByClaim: claim.String()})
}

// claimNamesAsWritten are the claims that a leaf Pod names: translation leaves
// it no other kind of claim volume.
func claimNamesAsWritten(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}
