package model

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// fromBackup is an annotation on the leaf claims that a backup tool created.
const fromBackup = "model/from-backup"

// writtenBy returns the managed fields of a leaf claim that a client created.
func writtenBy(manager string, at metav1.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.AnnotationRootUID + `":{}}}}`)}}
}

// backupTool makes the moves of a backup tool in the member, which creates the first claim's leaf claim again,
// unbound and with Xylem's stamp, and fills its disk. Some tools, such as Velero, also write the managed
// fields of the backup.
func (ms *moves) backupTool() {
	m := ms.model
	root := m.objects.claim(ms.from.roots[0])
	if !m.bounds.Backups || ms.from.claims[0] != 0 || root != nil && root.UID == rootUIDs[0] && root.Annotations[v1alpha1.AnnotationPlacedIn] != m.self.ClusterID {
		return
	}
	for _, managedFields := range []bool{false, true} {
		name, manager, at := "a backup tool creates the leaf claim again", "backup-tool", after
		if managedFields {
			name, manager, at = name+", with its managed fields", mirror.FieldManagerPrefix+"root-pvc", before
		}
		ms.add(name, func(to *world) {
			uid := m.unused(*to, claimUIDs[:]...)
			leaf, err := pvc.TranslateClaim(m.newRoot(0, rootUIDs[0]), newRoot(claimNames[0], "").Spec.StorageClassName, m.self)
			if uid == "" || err != nil {
				return
			}
			leaf.UID, leaf.CreationTimestamp, leaf.Finalizers, leaf.ManagedFields = uid, after, []string{pvcProtection}, writtenBy(manager, at)
			leaf.Status.Phase = corev1.ClaimPending
			metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, fromBackup, "true")
			to.claims[0] = m.objects.keep(leaf)
		})
	}
}

// destroyedBackup returns why the volume of a leaf claim that a backup tool created must not be destroyed.
func (m *Model) destroyedBackup(w world, claim *corev1.PersistentVolumeClaim) []string {
	found := []string{"I2: destroyed although a backup tool may have filled it"}
	for _, i := range w.hostState.pvs {
		host := m.objects.pv(i)
		if host != nil && host.Spec.ClaimRef != nil && host.Spec.ClaimRef.UID == mirror.StampedRootUID(claim) && host.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			found = append(found, "I2: destroyed although a host PV of its root keeps another volume")
		}
	}
	return found
}
