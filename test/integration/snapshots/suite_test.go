package snapshots_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// storyTime is the timeout of a story.
	storyTime = 4 * time.Minute
	// silentAfter is how long a snapshot-controller or csi-snapshotter may take to respond before it is
	// reported. It is long enough for a slow machine.
	silentAfter = 15 * time.Second
)

// Names of the members and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

// VolumeSnapshotClasses in the host. No member has a counterpart of unmapped.
const (
	deletes  = controlplane.ClassSnapshots
	retains  = controlplane.ClassRetainedSnapshots
	keeps    = "keep-in-host"
	unmapped = "nobody-maps-it"
)

// x contains the host, its members and the manager, which all stories share.
var x *harness.Xylem

func TestSnapshots(t *testing.T) {
	suite.Run(t, "Snapshots", suite.Slow)
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	return harness.Options{
		Members:     controlplane.Members(one, two),
		Snapshots:   true,
		ManagerArgs: []string{"--fence-epoch-interval=1s", "--node-grace=" + suite.NodeGrace.String(), "--stuck-after=20s", "--silent-after=" + silentAfter.String()},
	}
}, func(ctx SpecContext) {
	_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, class := range []*snapshotv1.VolumeSnapshotClass{
		harness.SnapshotClass(deletes, snapshotv1.VolumeSnapshotContentDelete, nil),
		harness.SnapshotClass(retains, snapshotv1.VolumeSnapshotContentDelete, nil),
		harness.SnapshotClass(keeps, snapshotv1.VolumeSnapshotContentRetain, map[string]string{"xylem.io/member-snapshot-class": deletes}),
		harness.SnapshotClass(unmapped, snapshotv1.VolumeSnapshotContentDelete, nil),
	} {
		Expect(x.Host.Create(ctx, class)).To(Succeed())
	}
})
