package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	eventsByObject   = "xylem.events-by-object"
	volumesByClaimID = "xylem.volumes-by-claim-uid"
	volumesByRootID  = "xylem.volumes-by-root-uid"
	copiesByVolume   = "xylem.copies-by-volume"
	segmentsByClass  = "xylem.segments-by-class"
)

// SetupMember adds the indexes to a member's cache. Call it before the cache starts.
func SetupMember(ctx context.Context, indexer client.FieldIndexer) error {
	copyOf := func(obj client.Object) []string { return nonEmpty(obj.GetAnnotations()[v1alpha1.AnnotationCopyOf]) }
	return setup(ctx, indexer, append(endings(func(client.Object) string { return leaves }), []field{
		{&corev1.Event{}, eventsByObject, by(func(event *corev1.Event) string { return string(event.InvolvedObject.UID) })},
		{&corev1.PersistentVolume{}, volumesByClaimID, by(func(pv *corev1.PersistentVolume) string {
			return string(ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID)
		})},
		{&corev1.PersistentVolume{}, volumesByRootID, by(func(pv *corev1.PersistentVolume) string { return pv.Annotations[v1alpha1.AnnotationRootUID] })},
		{&corev1.PersistentVolume{}, copiesByVolume, copyOf},
		{&corev1.PersistentVolumeClaim{}, copiesByVolume, copyOf},
		{&storagev1.CSIStorageCapacity{}, segmentsByClass, by(classOf)},
	}...))
}

// EventsOf returns the member's Warning events for an object.
func EventsOf(ctx context.Context, r client.Reader, namespace string, uid types.UID) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := r.List(ctx, &list, where{eventsByObject, string(uid), namespace}); err != nil {
		return nil, fmt.Errorf("list the events of object %s: %w", uid, err)
	}
	return list.Items, nil
}

// VolumesForClaim returns the member's PVs whose claimRef contains a claim's UID.
func VolumesForClaim(ctx context.Context, r client.Reader, claim types.UID) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByClaimID, string(claim), ""})
}

// VolumesOfRoot returns the member's PVs that are stamped for a root claim, by the claim's UID.
func VolumesOfRoot(ctx context.Context, r client.Reader, root types.UID) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByRootID, string(root), ""})
}

func classOf(capacity *storagev1.CSIStorageCapacity) string { return capacity.StorageClassName }

// SegmentsOf returns the CSIStorageCapacities of a class. In a member, its drivers publish them. In
// the host, Xylem publishes them for members.
func SegmentsOf(ctx context.Context, r client.Reader, class string) ([]storagev1.CSIStorageCapacity, error) {
	var list storagev1.CSIStorageCapacityList
	if err := r.List(ctx, &list, where{segmentsByClass, class, ""}); err != nil {
		return nil, fmt.Errorf("list the CSIStorageCapacities of class %s: %w", class, err)
	}
	return list.Items, nil
}

// CopiesOf returns the member's claims and PVs that are stamped as copies of the volume that a host
// PV represents, by the host PV's name.
func CopiesOf(ctx context.Context, r client.Reader, host string) ([]corev1.PersistentVolumeClaim, []corev1.PersistentVolume, error) {
	of := where{copiesByVolume, host, ""}
	found, err := claims(ctx, r, of)
	if err != nil {
		return nil, nil, err
	}
	pvs, err := volumes(ctx, r, of)
	return found, pvs, err
}
