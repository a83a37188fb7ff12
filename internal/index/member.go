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
	eventsByObject    = "xylem.events-by-object"
	volumesByClaimUID = "xylem.volumes-by-claim-uid"
	volumesByRootUID  = "xylem.volumes-by-root-uid"
	copiesByVolume    = "xylem.copies-by-volume"
	segmentsByClass   = "xylem.segments-by-class"
)

// SetupMemberIndexes adds the indexes to a member's cache. Call it before the cache starts.
func SetupMemberIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	copyOf := func(obj client.Object) []string { return nonEmptyKeys(obj.GetAnnotations()[v1alpha1.AnnotationCopyOf]) }
	return addIndexFields(ctx, indexer, append(endingIndexFields(func(client.Object) []string { return []string{endingLeavesKey} }), []indexField{
		{&corev1.Event{}, eventsByObject, indexByKey(func(event *corev1.Event) string { return string(event.InvolvedObject.UID) })},
		{&corev1.PersistentVolume{}, volumesByClaimUID, indexByKey(func(pv *corev1.PersistentVolume) string {
			return string(ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID)
		})},
		{&corev1.PersistentVolume{}, volumesByRootUID, indexByKey(func(pv *corev1.PersistentVolume) string { return pv.Annotations[v1alpha1.AnnotationRootUID] })},
		{&corev1.PersistentVolume{}, copiesByVolume, copyOf},
		{&corev1.PersistentVolumeClaim{}, copiesByVolume, copyOf},
		{&storagev1.CSIStorageCapacity{}, segmentsByClass, indexByKey(capacityClassOf)},
	}...))
}

// LeafEventsOf returns the member's Warning events for an object.
func LeafEventsOf(ctx context.Context, r client.Reader, namespace string, uid types.UID) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := r.List(ctx, &list, indexSelector{eventsByObject, string(uid), namespace}); err != nil {
		return nil, fmt.Errorf("list the events of object %s: %w", uid, err)
	}
	return list.Items, nil
}

// LeafVolumesOfClaim returns the member's PVs whose claimRef contains a claim's UID.
func LeafVolumesOfClaim(ctx context.Context, r client.Reader, claim types.UID) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByClaimUID, string(claim), ""})
}

// LeafVolumesOfRoot returns the member's PVs that are stamped for a root claim, by the claim's UID.
func LeafVolumesOfRoot(ctx context.Context, r client.Reader, root types.UID) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByRootUID, string(root), ""})
}

func capacityClassOf(capacity *storagev1.CSIStorageCapacity) string { return capacity.StorageClassName }

// CapacitySegmentsOf returns the CSIStorageCapacities of a class. In a member, its drivers publish them. In
// the host, Xylem publishes them for members.
func CapacitySegmentsOf(ctx context.Context, r client.Reader, class string) ([]storagev1.CSIStorageCapacity, error) {
	var list storagev1.CSIStorageCapacityList
	if err := r.List(ctx, &list, indexSelector{segmentsByClass, class, ""}); err != nil {
		return nil, fmt.Errorf("list the CSIStorageCapacities of class %s: %w", class, err)
	}
	return list.Items, nil
}

// VolumeCopiesOf returns the member's claims and PVs that are stamped as copies of the volume that a host
// PV represents, by the host PV's name.
func VolumeCopiesOf(ctx context.Context, r client.Reader, host string) ([]corev1.PersistentVolumeClaim, []corev1.PersistentVolume, error) {
	of := indexSelector{copiesByVolume, host, ""}
	found, err := listClaims(ctx, r, of)
	if err != nil {
		return nil, nil, err
	}
	pvs, err := listVolumes(ctx, r, of)
	return found, pvs, err
}
