package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	podsByClaim     = "xylem.pods-by-claim"
	podsByReference = "xylem.pods-by-reference"
	podsByNode      = "xylem.pods-by-node"
	claimsByPlace   = "xylem.claims-by-place"
	volumesByLeaf   = "xylem.volumes-by-leaf"
	volumesByPlace  = "xylem.volumes-by-place"
)

// SetupHost adds the indexes of the host's cache; before it starts.
func SetupHost(ctx context.Context, indexer client.FieldIndexer) error {
	return setup(ctx, indexer, []field{
		{&corev1.Pod{}, podsByClaim, onPod(mirror.ClaimNames)},
		{&corev1.Pod{}, podsByReference, onPod(referenceKeys)},
		{&corev1.Pod{}, podsByNode, onPod(func(pod *corev1.Pod) []string { return nonEmpty(pod.Spec.NodeName) })},
		{&corev1.PersistentVolumeClaim{}, claimsByPlace, func(obj client.Object) []string {
			return nonEmpty(obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn])
		}},
		{&corev1.PersistentVolume{}, volumesByLeaf, onVolume(func(cluster, leaf string) string { return cluster + "/" + leaf })},
		{&corev1.PersistentVolume{}, volumesByPlace, onVolume(func(cluster, _ string) string { return cluster })},
	})
}

// PodsOfClaim are the host's Pods that use a claim, finished ones included.
func PodsOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.Pod, error) {
	return pods(ctx, r, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: claim.Name})
}

// PodsOfReference are the host's Pods that refer to a ConfigMap or Secret.
func PodsOfReference(ctx context.Context, r client.Reader, kind string, key types.NamespacedName) ([]corev1.Pod, error) {
	return pods(ctx, r, client.InNamespace(key.Namespace), client.MatchingFields{podsByReference: kind + "/" + key.Name})
}

// PodsOnNode are the host's Pods that are bound to a node.
func PodsOnNode(ctx context.Context, r client.Reader, node string) ([]corev1.Pod, error) {
	return pods(ctx, r, client.MatchingFields{podsByNode: node})
}

// ClaimsPlacedIn are the root claims whose placed-in names a cluster ID.
func ClaimsPlacedIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	if err := r.List(ctx, &list, client.MatchingFields{claimsByPlace: clusterID}); err != nil {
		return nil, fmt.Errorf("list the claims placed in cluster %s: %w", clusterID, err)
	}
	return list.Items, nil
}

// VolumesOfLeaf are the host PVs that stand for one leaf PV: one, unless
// somebody else made another.
func VolumesOfLeaf(ctx context.Context, r client.Reader, clusterID, leaf string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, client.MatchingFields{volumesByLeaf: clusterID + "/" + leaf})
}

// VolumesIn are the host PVs whose leaf volume is in a cluster.
func VolumesIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, client.MatchingFields{volumesByPlace: clusterID})
}

func referenceKeys(pod *corev1.Pod) []string {
	references := mirror.References(pod)
	keys := make([]string, 0, len(references))
	for _, ref := range references {
		keys = append(keys, ref.Kind+"/"+ref.Name)
	}
	return keys
}

func onVolume(key func(cluster, leaf string) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		pv, ok := obj.(*corev1.PersistentVolume)
		if !ok {
			return nil
		}
		cluster, leaf, _, ours := mirror.LeafVolumeOf(pv)
		if !ours {
			return nil
		}
		return []string{key(cluster, leaf)}
	}
}
