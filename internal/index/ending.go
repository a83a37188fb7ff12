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

// ending has the claims, volumes and Pods that are on their way out, few of many: of
// the host by the member that they concern, of a member all under leaves.
const (
	ending = "xylem.ending"
	leaves = "leaves"
)

// Ending is what is on its way out.
type Ending struct {
	Claims  []corev1.PersistentVolumeClaim
	Volumes []corev1.PersistentVolume
	Pods    []corev1.Pod
}

// EndsSince is since when a claim, a volume or a Pod is on its way out; nil if it is
// not. A volume is from when it is released, or reclaiming it fails, if it is to be
// deleted then.
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

// EndingIn is what is on its way out of the host's claims and volumes, promises
// included, that are in a cluster, and of the Pods on its node.
func EndingIn(ctx context.Context, r client.Reader, clusterID, node string) (Ending, error) {
	return endingAt(ctx, r, clusterID, node)
}

// EndingLeaves is what is on its way out in a member's cache.
func EndingLeaves(ctx context.Context, r client.Reader) (Ending, error) {
	return endingAt(ctx, r, leaves, leaves)
}

func endingAt(ctx context.Context, r client.Reader, storage, pods string) (Ending, error) {
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	var podList corev1.PodList
	list := func(into client.ObjectList, where string) error {
		if err := r.List(ctx, into, client.MatchingFields{ending: where}, ReadOnly); err != nil {
			return fmt.Errorf("look up, in a %T, what is on its way out: %w", into, err)
		}
		return nil
	}
	err := errors.Join(list(&claims, storage), list(&volumes, storage), list(&podList, pods))
	return Ending{Claims: claims.Items, Volumes: volumes.Items, Pods: podList.Items}, err
}

// endings are the indexes of what is on its way out, by where it is.
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

// place is the member that an object of the host concerns: the node of a Pod, the
// cluster of a claim, of a volume, or of a promise without a disk.
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
