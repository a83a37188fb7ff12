package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ClaimsToFill returns the claims that are bound to a promise, and whose disk is still to be created from
// the claim or VolumeSnapshot with the given name and UID, according to their record of the source
// (xylem.io/source). Nobody else keeps the source for them. For claims that are not bound yet, Kubernetes
// does: a snapshot-controller keeps the VolumeSnapshot, and a provisioner the claim that it clones. A
// claim that is being deleted never gets a disk. If live is set, r bypasses caches.
func ClaimsToFill(ctx context.Context, r client.Reader, live bool, namespace string, source datasource.Source, uid types.UID) ([]corev1.PersistentVolumeClaim, error) {
	var found []corev1.PersistentVolumeClaim
	var err error
	if live {
		var list corev1.PersistentVolumeClaimList
		err = Pages(ctx, r, &list, func() {
			for i := range list.Items {
				if waitingSource(&list.Items[i]) == source.Key() {
					found = append(found, list.Items[i])
				}
			}
		}, client.InNamespace(namespace))
	} else {
		found, err = ClaimsFrom(ctx, r, namespace, source.Key())
	}
	if err != nil {
		return nil, fmt.Errorf("list the claims that will be created from %s: %w", source, err)
	}
	var empty []corev1.PersistentVolumeClaim
	for i := range found {
		claim := &found[i]
		if record, recorded := datasource.RecordOf(claim); !recorded || record.UID != uid || claim.DeletionTimestamp != nil || claim.Spec.VolumeName == "" {
			continue
		}
		volume, err := Find[corev1.PersistentVolume](ctx, r, Named(claim.Spec.VolumeName))
		if err != nil {
			return nil, err
		}
		if volume == nil || hostpv.IsUnfulfilled(volume) {
			empty = append(empty, *claim)
		}
	}
	return empty, nil
}

// Names returns the kind and name of each claim, for messages.
func Names(claims []corev1.PersistentVolumeClaim) []string {
	var names []string
	for i := range claims {
		names = append(names, fmt.Sprintf("claim %q", claims[i].Name))
	}
	return names
}
