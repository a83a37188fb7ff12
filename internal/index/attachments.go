package index

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const attachmentsByVolume = "xylem.attachments-by-volume"

// SetupAttachmentIndex adds the index to the cache of a member's VolumeAttachments. Call it before
// the cache starts.
func SetupAttachmentIndex(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexFields(ctx, indexer, []indexField{{&storagev1.VolumeAttachment{}, attachmentsByVolume, indexByKey(func(a *storagev1.VolumeAttachment) string {
		return ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
	})}})
}

// AttachmentsOfVolume returns the VolumeAttachments that name one of the member's PVs.
func AttachmentsOfVolume(ctx context.Context, r client.Reader, volume string) ([]storagev1.VolumeAttachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.List(ctx, &list, indexSelector{attachmentsByVolume, volume, ""}); err != nil {
		return nil, fmt.Errorf("list the VolumeAttachments of volume %s: %w", volume, err)
	}
	return list.Items, nil
}
