package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// provisionedPrefix begins the name that a provisioner gives the PV of a claim by default;
// the claim's UID follows (external-provisioner: --volume-name-prefix).
const provisionedPrefix = "pvc-"

// ProvisionedName is the name of the PV that a provisioner makes for a claim by default. It
// is the same each time, and so is the disk: a provisioner that is asked again returns it.
func ProvisionedName(claim types.UID) string { return provisionedPrefix + string(claim) }

// NotMirrored proves by live reads that the host has no PV with the handle of a leaf PV,
// whatever UID that leaf PV has by now. A member that was restored lacks the stamp, and may
// have the leaf PV under another UID, so that only the host knows that the volume is in use
// or is to be kept. It looks for the mirror under both of its names, for a promise that
// records the leaf, and, by a paged list, for a PV of any other name. If there is one, it is
// returned, and nothing is proven. An error proves nothing either.
//
// cached is looked at first: it can refute, and never proves. The list is of all PVs of the
// host, so this is for what happens rarely.
func NotMirrored(ctx context.Context, cached, live client.Reader, clusterID, leaf string) (bool, *corev1.PersistentVolume, error) {
	known, err := VolumesOfLeaf(ctx, cached, clusterID, leaf)
	if err != nil {
		return false, nil, err
	}
	if len(known) > 0 {
		return false, &known[0], nil
	}
	by, err := MirrorByName(ctx, live, clusterID, leaf)
	if err != nil || by != nil {
		return false, by, err
	}
	var list corev1.PersistentVolumeList
	err = Pages(ctx, live, &list, func() {
		for i := range list.Items {
			if by == nil && mirror.RecordsLeaf(&list.Items[i], clusterID, leaf) {
				by = list.Items[i].DeepCopy()
			}
		}
	})
	if err != nil {
		return false, nil, fmt.Errorf("prove that no volume of the host represents %s: %w", leaf, err)
	}
	return by == nil, by, nil
}

// MirrorByName is the host PV that represents a leaf PV under one of the two names of a
// mirror, by live reads; nil if there is none. It costs two reads. NotMirrored is the proof.
func MirrorByName(ctx context.Context, live client.Reader, clusterID, leaf string) (*corev1.PersistentVolume, error) {
	for _, collides := range []bool{false, true} {
		pv, err := Find[corev1.PersistentVolume](ctx, live, Named(mirror.HostVolumeName(leaf, clusterID, collides)))
		if err != nil {
			return nil, err
		}
		if pv != nil && mirror.RecordsLeaf(pv, clusterID, leaf) {
			return pv, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with Find
}

// LiveVolumesForClaim are the member's PVs, by a live list, that were made for a claim or
// wait to be bound to it.
func LiveVolumesForClaim(ctx context.Context, live client.Reader, claim *corev1.PersistentVolumeClaim) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	var found []corev1.PersistentVolume
	err := Pages(ctx, live, &list, func() {
		for i := range list.Items {
			if mirror.PointsAt(&list.Items[i], claim) {
				found = append(found, list.Items[i])
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the volumes that were made for claim %s: %w", client.ObjectKeyFromObject(claim), err)
	}
	return found, nil
}
