package attacks_test

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// attackTime is the timeout of an attack.
	attackTime = 3 * time.Minute

	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"

	// class is a StorageClass that waits for a consumer in the host and in the members.
	class = controlplane.ClassHostpath
	// snapshots is a VolumeSnapshotClass with policy Delete in the host and in the members.
	snapshots = controlplane.ClassSnapshots

	// secretCanary is a value in the victim's Secret.
	secretCanary = "canary-of-the-victim-7f3a9c"
)

// x contains the host, its members and the manager, which all attacks share.
var x *harness.Xylem

func TestAttacks(t *testing.T) {
	suite.Run(t, "Attacks", suite.Slow)
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	return harness.Options{
		Members:   controlplane.Members(one, two),
		Snapshots: true,
		// Log at the highest verbosity, because the specs search the log for canaries.
		ManagerArgs: []string{"--zap-log-level=10"},
	}
}, func(ctx SpecContext) {
	sc := controlplane.Class(class, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	sc.Provisioner = v1alpha1.ProvisionerName
	Expect(x.Host.API.Create(ctx, &sc)).To(Succeed())
	Expect(x.Host.API.Create(ctx, harness.SnapshotClass(snapshots, snapshotv1.VolumeSnapshotContentDelete, nil))).To(Succeed())
	Expect(x.Host.API.Create(ctx, tenantsTakeSnapshots())).To(Succeed())
	victim = newVictim(ctx)
})

// hostID returns the host's cluster ID.
func hostID(ctx context.Context) string {
	GinkgoHelper()
	id, err := x.Host.ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	return id
}
