package index

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ending is the name of the index of ending claims, volumes and Pods, which are few. In the host's
// cache, the key is the member that an object concerns. In a member's cache, the only key is
// leaves.
const (
	ending = "xylem.ending"
	leaves = "leaves"
)

// Ending contains objects that are being deleted or reclaimed.
type Ending struct {
	Claims  []corev1.PersistentVolumeClaim
	Volumes []corev1.PersistentVolume
	Pods    []corev1.Pod
}

// EndsSince returns when a claim, a volume or a Pod began to end, or nil if it is not ending. A
// volume with policy Delete begins to end when it becomes Released or Failed.
func EndsSince(obj client.Object) *metav1.Time {
	if at := obj.GetDeletionTimestamp(); at != nil {
		return at
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed) &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return pv.Status.LastPhaseTransitionTime
	}
	return nil
}

// EndingIn returns the host objects that are ending: the claims, volumes and promises of a cluster,
// and the Pods on its node.
func EndingIn(ctx context.Context, r client.Reader, clusterID, node string) (Ending, error) {
	return endingAt(ctx, r, clusterID, node)
}

// EndingLeaves returns the objects in a member's cache that are ending.
func EndingLeaves(ctx context.Context, r client.Reader) (Ending, error) {
	return endingAt(ctx, r, leaves, leaves)
}

func endingAt(ctx context.Context, r client.Reader, storage, pods string) (Ending, error) {
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	var podList corev1.PodList
	list := func(into client.ObjectList, kind, of string) error {
		if err := r.List(ctx, into, where{ending, of, ""}); err != nil {
			return fmt.Errorf("list the %s that are being deleted or reclaimed: %w", kind, err)
		}
		return nil
	}
	err := errors.Join(list(&claims, "claims", storage), list(&volumes, "volumes", storage), list(&podList, "Pods", pods))
	return Ending{Claims: claims.Items, Volumes: volumes.Items, Pods: podList.Items}, err
}

// endings returns an index of ending objects for each kind. where returns an object's key.
func endings(where func(client.Object) string) []field {
	extract := func(obj client.Object) []string {
		if EndsSince(obj) == nil {
			return nil
		}
		return nonEmpty(where(obj))
	}
	return []field{
		{&corev1.Pod{}, ending, extract},
		{&corev1.PersistentVolumeClaim{}, ending, extract},
		{&corev1.PersistentVolume{}, ending, extract},
	}
}

// place returns the member that a host object concerns: a Pod's node, or the cluster of a claim, a
// volume, or a promise without a disk.
func place(obj client.Object) string {
	switch obj := obj.(type) {
	case *corev1.Pod:
		return obj.Spec.NodeName
	case *corev1.PersistentVolumeClaim:
		return obj.Annotations[v1alpha1.AnnotationPlacedIn]
	case *corev1.PersistentVolume:
		if hostpv.IsUnfulfilled(obj) {
			return obj.Labels[v1alpha1.LabelClusterID]
		}
		cluster, _, _, _ := hostpv.LeafOf(obj)
		return cluster
	}
	return ""
}
