package clusterregistration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// ListedSnapshots returns the orphaned snapshots for the status, in the same order as ListedOrphans.
func ListedSnapshots(found []account.Orphan, before []v1alpha1.OrphanedSnapshot, now metav1.Time) []v1alpha1.OrphanedSnapshot {
	volumes := make([]v1alpha1.OrphanedVolume, 0, len(before))
	for _, was := range before {
		volumes = append(volumes, v1alpha1.OrphanedVolume{Volume: was.Content, Since: was.Since})
	}
	var list []v1alpha1.OrphanedSnapshot
	for _, o := range ListedOrphans(found, volumes, now) {
		list = append(list, v1alpha1.OrphanedSnapshot{Content: o.Volume, Snapshot: o.Claim, Reason: o.Reason, Since: o.Since})
	}
	return list
}

// SnapshotsAccounted returns the SnapshotsAccounted condition.
func SnapshotsAccounted(orphans account.OrphanInventory, status *v1alpha1.ClusterRegistrationStatus) metav1.Condition {
	return comparison{
		orphans: orphans, count: int(status.Snapshots.Orphaned), kind: "snapshot", lacking: "without a VolumeSnapshotContent in the host",
		reason: v1alpha1.ReasonOrphanedSnapshots,
		remedy: "Xylem never deletes orphaned snapshots. " +
			"If nobody needs the data, set the deletionPolicy of the snapshots to Delete in the member, and delete them there",
		names: firstOrphans(status.OrphanedSnapshots, func(o v1alpha1.OrphanedSnapshot) string {
			return fmt.Sprintf("%q of VolumeSnapshot %q (%s, since %s)", o.Content, o.Snapshot, o.Reason, o.Since.UTC().Format(time.RFC3339))
		}),
	}.condition(v1alpha1.ConditionSnapshotsAccounted, "the host has a VolumeSnapshotContent for every snapshot in the member")
}
