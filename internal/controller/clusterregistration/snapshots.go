package clusterregistration

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// updateSnapshotStatus sets the status fields about the member's snapshots, and returns the SnapshotsAccounted
// condition, while the host serves snapshots. Fields whose value is unknown stay unchanged.
func (r *Reconciler) updateSnapshotStatus(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]metav1.Condition, error) {
	if r.Snapshots.ServedCache() == nil {
		account.DeleteSnapshotMetrics(cr.Name)
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionSnapshotsAccounted)
		return nil, nil
	}
	orphans := r.Orphans.OrphanedSnapshots(cr.Name)
	counts := v1alpha1.SnapshotCounts{Orphaned: cr.Status.Snapshots.Orphaned}
	if cr.Status.ClusterID != "" {
		contents, err := index.HostContentsIn(ctx, r.Client, cr.Status.ClusterID)
		if err != nil {
			return nil, err
		}
		for i := range contents {
			snapshot.CountSnapshot(&contents[i], &counts)
		}
	}
	if orphans.Known {
		counts.Orphaned = boundedInt32(len(orphans.Found))
		cr.Status.OrphanedSnapshots = ListedSnapshots(orphans.Found, cr.Status.OrphanedSnapshots, metav1.NewTime(r.Clock.Now()))
	}
	cr.Status.Snapshots = counts
	account.SetSnapshotMetrics(cr.Name, counts)
	if !orphans.Known && orphans.FailureCause == "" {
		// The member does not serve snapshots, or Xylem has not listed them yet.
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionSnapshotsAccounted)
		return nil, nil
	}
	return []metav1.Condition{SnapshotsAccounted(orphans, &cr.Status)}, nil
}

// announceSnapshots emits an event on the registration for each orphaned snapshot that is new in
// its status.
func (r *Reconciler) announceSnapshots(before, after *v1alpha1.ClusterRegistration) {
	for _, o := range after.Status.OrphanedSnapshots {
		if !slices.ContainsFunc(before.Status.OrphanedSnapshots, func(was v1alpha1.OrphanedSnapshot) bool { return was.Content == o.Content && was.Reason == o.Reason }) {
			content := &corev1.ObjectReference{APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshotContent", Name: o.Content}
			r.Recorder.Eventf(after, content, corev1.EventTypeWarning, v1alpha1.ReasonOrphanedSnapshot, "Account",
				"no VolumeSnapshotContent in the host represents snapshot %q in the member, which was taken for VolumeSnapshot %q. Xylem does not delete the snapshot. If nobody needs the data, set the deletionPolicy of the snapshot to Delete in the member, and delete the snapshot", o.Content, o.Snapshot)
		}
	}
}
