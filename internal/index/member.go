package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	eventsByObject   = "xylem.events-by-object"
	volumesByClaimID = "xylem.volumes-by-claim-uid"
	segmentsByClass  = "xylem.segments-by-class"
)

// SetupMember adds the indexes of a member's cache; before it starts.
func SetupMember(ctx context.Context, indexer client.FieldIndexer) error {
	return setup(ctx, indexer, append(endings(func(client.Object) string { return leaves }), []field{
		{&corev1.Event{}, eventsByObject, func(obj client.Object) []string {
			event, ok := obj.(*corev1.Event)
			if !ok {
				return nil
			}
			return nonEmpty(string(event.InvolvedObject.UID))
		}},
		{&corev1.PersistentVolume{}, volumesByClaimID, func(obj client.Object) []string {
			pv, ok := obj.(*corev1.PersistentVolume)
			if !ok || pv.Spec.ClaimRef == nil {
				return nil
			}
			return nonEmpty(string(pv.Spec.ClaimRef.UID))
		}},
		{&storagev1.CSIStorageCapacity{}, segmentsByClass, func(obj client.Object) []string {
			capacity, ok := obj.(*storagev1.CSIStorageCapacity)
			if !ok {
				return nil
			}
			return nonEmpty(capacity.StorageClassName)
		}},
	}...))
}

// EventsOf are the member's Warning events about an object.
func EventsOf(ctx context.Context, r client.Reader, namespace string, uid types.UID) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{eventsByObject: string(uid)}, ReadOnly); err != nil {
		return nil, fmt.Errorf("list the events of object %s: %w", uid, err)
	}
	return list.Items, nil
}

// VolumesForClaim are the member's PVs whose claimRef names a claim by its UID.
func VolumesForClaim(ctx context.Context, r client.Reader, claim types.UID) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, client.MatchingFields{volumesByClaimID: string(claim)})
}

// SegmentsOf are the CSIStorageCapacities of a member's class, in all namespaces.
func SegmentsOf(ctx context.Context, r client.Reader, class string) ([]storagev1.CSIStorageCapacity, error) {
	var list storagev1.CSIStorageCapacityList
	if err := r.List(ctx, &list, client.MatchingFields{segmentsByClass: class}, ReadOnly); err != nil {
		return nil, fmt.Errorf("list the CSIStorageCapacities of class %s: %w", class, err)
	}
	return list.Items, nil
}
