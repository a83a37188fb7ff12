package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// ending has the claims, volumes and Pods that are on their way out, few of many: of
// the host by the member that they concern, of a member all under leaves.
const (
	ending = "xylem.ending"
	leaves = "leaves"
)

// EndsSince is since when a claim, a volume or a Pod is on its way out; nil if it is
// not. A volume is from when it is released, if it is to be deleted then.
func EndsSince(obj client.Object) *metav1.Time {
	if at := obj.GetDeletionTimestamp(); at != nil {
		return at
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok && pv.Status.Phase == corev1.VolumeReleased &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return pv.Status.LastPhaseTransitionTime
	}
	return nil
}

// EndingIn fills a list with the claims, the volumes and promises, or the Pods of the
// host that are on their way out and concern a member: its cluster or, if the list is
// one of Pods, its node. They are the cache's own, as with ReadOnly.
func EndingIn(ctx context.Context, r client.Reader, place string, list client.ObjectList) error {
	if err := r.List(ctx, list, client.MatchingFields{ending: place}, ReadOnly); err != nil {
		return fmt.Errorf("list what is on its way out in %s: %w", place, err)
	}
	return nil
}

// EndingLeaves fills a list with the claims, volumes or Pods of a member's cache that
// are on their way out. They are the cache's own, as with ReadOnly.
func EndingLeaves(ctx context.Context, r client.Reader, list client.ObjectList) error {
	return EndingIn(ctx, r, leaves, list)
}

// endings are the indexes of what is on its way out, under what a key is made of it.
func endings(key func(client.Object) string) []field {
	extract := func(obj client.Object) []string {
		if EndsSince(obj) == nil {
			return nil
		}
		return nonEmpty(key(obj))
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
		if mirror.IsUnfulfilled(obj) {
			return obj.Labels[v1alpha1.LabelClusterID]
		}
		cluster, _, _, _ := mirror.LeafVolumeOf(obj)
		return cluster
	}
	return ""
}
