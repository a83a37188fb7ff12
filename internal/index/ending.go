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

// endingIndex is the name of the index of ending claims, volumes and Pods, which are few. In the host's
// cache, the key is the member that an object concerns. In a member's cache, the only key is
// leaves.
const (
	endingIndex     = "xylem.ending"
	endingLeavesKey = "leaves"
)

// EndingObjects contains objects that are being deleted or reclaimed.
type EndingObjects struct {
	Claims  []corev1.PersistentVolumeClaim
	Volumes []corev1.PersistentVolume
	Pods    []corev1.Pod
}

// EndingSince returns when a claim, a volume or a Pod began to end, or nil if it is not ending. A
// volume with policy Delete begins to end when it becomes Released or Failed.
func EndingSince(obj client.Object) *metav1.Time {
	if at := obj.GetDeletionTimestamp(); at != nil {
		return at
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed) &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return pv.Status.LastPhaseTransitionTime
	}
	return nil
}

// EndingHostObjects returns the host objects that are ending: the claims, volumes and promises of a cluster,
// and the Pods on its nodes.
func EndingHostObjects(ctx context.Context, r client.Reader, clusterID, node string) (EndingObjects, error) {
	return listEndingObjects(ctx, r, clusterID, node)
}

// EndingLeafObjects returns the objects in a member's cache that are ending.
func EndingLeafObjects(ctx context.Context, r client.Reader) (EndingObjects, error) {
	return listEndingObjects(ctx, r, endingLeavesKey, endingLeavesKey)
}

func listEndingObjects(ctx context.Context, r client.Reader, storage, pods string) (EndingObjects, error) {
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	var podList corev1.PodList
	list := func(into client.ObjectList, kind, of string) error {
		if err := r.List(ctx, into, indexSelector{endingIndex, of, ""}); err != nil {
			return fmt.Errorf("list the %s that are being deleted or reclaimed: %w", kind, err)
		}
		return nil
	}
	err := errors.Join(list(&claims, "claims", storage), list(&volumes, "volumes", storage), list(&podList, "Pods", pods))
	return EndingObjects{Claims: claims.Items, Volumes: volumes.Items, Pods: podList.Items}, err
}

// endingIndexFields returns an index of ending objects for each kind. where returns an object's key.
func endingIndexFields(where func(client.Object) []string) []indexField {
	extract := func(obj client.Object) []string {
		if EndingSince(obj) == nil {
			return nil
		}
		return where(obj)
	}
	return []indexField{
		{&corev1.Pod{}, endingIndex, extract},
		{&corev1.PersistentVolumeClaim{}, endingIndex, extract},
		{&corev1.PersistentVolume{}, endingIndex, extract},
	}
}

// concernedMember returns the member that a host object concerns: its node for a Pod, or the cluster of a claim, a
// volume, or a promise without a disk.
func concernedMember(obj client.Object) []string {
	switch obj := obj.(type) {
	case *corev1.Pod:
		keys := nonEmptyKeys(obj.Spec.NodeName)
		if member, found := v1alpha1.MemberNodeOf(obj.Spec.NodeName); found {
			keys = append(keys, member)
		}
		return keys
	case *corev1.PersistentVolumeClaim:
		return nonEmptyKeys(obj.Annotations[v1alpha1.AnnotationPlacedIn])
	case *corev1.PersistentVolume:
		if hostpv.IsUnfulfilledPromise(obj) {
			return nonEmptyKeys(obj.Labels[v1alpha1.LabelClusterID])
		}
		cluster, _, _, _ := hostpv.LeafOfHostVolume(obj)
		return nonEmptyKeys(cluster)
	}
	return nil
}
