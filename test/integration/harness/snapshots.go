package harness

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

// SnapshotClass returns a VolumeSnapshotClass with Xylem's driver. Without parameters, it maps to
// the members' class with the same name, such as ClassSnapshots or ClassRetainedSnapshots.
func SnapshotClass(name string, policy snapshotv1.DeletionPolicy, parameters map[string]string) *snapshotv1.VolumeSnapshotClass {
	class := controlplane.SnapshotClass(name, policy)
	class.Driver = v1alpha1.ProvisionerName
	class.Parameters = parameters
	return &class
}

// VolumeSnapshot returns a VolumeSnapshot of a claim.
func VolumeSnapshot(namespace, name, claim, class string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: &class,
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim},
		},
	}
}

// FromSnapshot sets a claim's source to a VolumeSnapshot in the same namespace.
func FromSnapshot(claim *corev1.PersistentVolumeClaim, snapshot string) *corev1.PersistentVolumeClaim {
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{
		APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: snapshot,
	}
	return claim
}

// FromClaim sets a claim's source to another claim in the same namespace.
func FromClaim(claim *corev1.PersistentVolumeClaim, source string) *corev1.PersistentVolumeClaim {
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	return claim
}

// AwaitSnapshot waits until a VolumeSnapshot is ready to use.
func (c *Cluster) AwaitSnapshot(ctx context.Context, namespace, name string) (*snapshotv1.VolumeSnapshot, error) {
	snapshot := &snapshotv1.VolumeSnapshot{}
	err := Await(ctx, fmt.Sprintf("snapshot %s/%s in %s", namespace, name, c.Name()), func(ctx context.Context) error {
		if err := c.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, snapshot); err != nil {
			return err
		}
		status := snapshot.Status
		switch {
		case status != nil && ptr.Deref(status.ReadyToUse, false):
			return nil
		case status != nil && status.Error != nil:
			return fmt.Errorf("not ready: %s", ptr.Deref(status.Error.Message, "no message"))
		default:
			return errors.New("not ready")
		}
	})
	return snapshot, err
}
