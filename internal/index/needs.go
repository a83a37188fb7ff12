package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ClaimsToFill returns the claims that are bound to a promise, and whose disk is still to be created from
// the claim or VolumeSnapshot with the given name and UID, according to their record of the source
// (xylem.io/source). Nobody else keeps the source for them. For claims that are not bound yet, Kubernetes
// does: a snapshot-controller keeps the VolumeSnapshot, and a provisioner the claim that it clones. A
// claim that is being deleted never gets a disk. waiting are the claims whose volume may still be created
// from this source, or from any source in the namespace. r reads their promises.
func ClaimsToFill(ctx context.Context, r client.Reader, waiting []corev1.PersistentVolumeClaim, source mirror.DataSource, uid types.UID) ([]corev1.PersistentVolumeClaim, error) {
	var empty []corev1.PersistentVolumeClaim
	for i := range waiting {
		claim := &waiting[i]
		record, recorded := mirror.DataSourceRecordOf(claim)
		if unfilledSourceKey(claim) != source.IndexKey() || !recorded || record.UID != uid || claim.DeletionTimestamp != nil || claim.Spec.VolumeName == "" {
			continue
		}
		volume, err := FindObject[corev1.PersistentVolume](ctx, r, ClusterScopedKey(claim.Spec.VolumeName))
		if err != nil {
			return nil, err
		}
		if volume == nil || hostpv.IsUnfulfilledPromise(volume) {
			empty = append(empty, *claim)
		}
	}
	return empty, nil
}

// LiveUnfilledClaims returns a namespace's claims whose volume may still be created from any source. r bypasses
// caches.
func LiveUnfilledClaims(ctx context.Context, r client.Reader, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	var found []corev1.PersistentVolumeClaim
	err := ListPages(ctx, r, &list, func() {
		for i := range list.Items {
			if unfilledSourceKey(&list.Items[i]) != "" {
				found = append(found, list.Items[i])
			}
		}
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list the claims in namespace %s that will be created from others: %w", namespace, err)
	}
	return found, nil
}

// DescribeClaims returns the kind and name of each claim, for messages.
func DescribeClaims(claims []corev1.PersistentVolumeClaim) []string {
	var names []string
	for i := range claims {
		names = append(names, fmt.Sprintf("claim %q", claims[i].Name))
	}
	return names
}
