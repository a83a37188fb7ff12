package clusterregistration

import (
	"context"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/snapshot"
	"github.com/xylem-io/xylem/internal/text"
)

// snapshots sets the status fields about a member's snapshots, while the host serves them. Unknown
// fields keep their values.
func (r *Reconciler) snapshots(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]metav1.Condition, error) {
	if r.Snapshots.Cache() == nil {
		account.UncountSnapshots(cr.Name)
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionSnapshotsAccounted)
		return nil, nil
	}
	orphans := r.Book.Snapshots(cr.Name)
	counts := v1alpha1.SnapshotCounts{Orphaned: cr.Status.Snapshots.Orphaned}
	if cr.Status.ClusterID != "" {
		contents, err := index.SnapshotsIn(ctx, r.Client, cr.Status.ClusterID)
		if err != nil {
			return nil, err
		}
		for i := range contents {
			snapshot.Counted(&contents[i], &counts)
		}
	}
	if orphans.Known {
		counts.Orphaned = bounded(len(orphans.Found))
		cr.Status.OrphanedSnapshots = listedSnapshots(orphans.Found, cr.Status.OrphanedSnapshots, metav1.NewTime(r.Clock.Now()))
	}
	cr.Status.Snapshots = counts
	account.CountSnapshots(cr.Name, counts)
	if !orphans.Known && orphans.Err == "" {
		// The member does not serve snapshots, or Xylem has not listed them yet.
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionSnapshotsAccounted)
		return nil, nil
	}
	return []metav1.Condition{snapshotsAccounted(orphans, &cr.Status)}, nil
}

// listedSnapshots returns the orphaned snapshots for the status, in the order of listed. Pure.
func listedSnapshots(found []account.Orphan, before []v1alpha1.OrphanedSnapshot, now metav1.Time) []v1alpha1.OrphanedSnapshot {
	volumes := make([]v1alpha1.OrphanedVolume, 0, len(before))
	for _, was := range before {
		volumes = append(volumes, v1alpha1.OrphanedVolume{Volume: was.Content, Since: was.Since})
	}
	var list []v1alpha1.OrphanedSnapshot
	for _, o := range listed(found, volumes, now) {
		list = append(list, v1alpha1.OrphanedSnapshot{Content: o.Volume, Snapshot: o.Claim, Reason: o.Reason, Since: o.Since})
	}
	return list
}

// snapshotsAccounted returns the SnapshotsAccounted condition. Pure.
func snapshotsAccounted(orphans account.Orphans, status *v1alpha1.ClusterRegistrationStatus) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionSnapshotsAccounted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonAllAccounted, Message: "the host has a VolumeSnapshotContent for every snapshot in the member"}
	some := first(status.OrphanedSnapshots, "…", func(o v1alpha1.OrphanedSnapshot) string {
		return fmt.Sprintf("%q of VolumeSnapshot %q (%s, since %s)", o.Content, o.Snapshot, o.Reason, o.Since.UTC().Format(time.RFC3339))
	})
	switch {
	case orphans.Err != "":
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotAccounted
		condition.Message = fmt.Sprintf("Xylem could not compare the member's snapshots with the host's since %s: %s", orphans.Since.UTC().Format(time.RFC3339), orphans.Err)
	case status.Snapshots.Orphaned > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonOrphanedSnapshots
		condition.Message = fmt.Sprintf("%s in the member without a VolumeSnapshotContent in the host, which nothing destroys: %s", text.Count(int(status.Snapshots.Orphaned), "snapshot"), some)
		return condition
	}
	if status.Snapshots.Orphaned > 0 {
		condition.Message += fmt.Sprintf(". At the last comparison, %d had no VolumeSnapshotContent in the host: %s", status.Snapshots.Orphaned, some)
	}
	return condition
}

// announceSnapshots reports on the registration which orphaned snapshots are new to its status.
func (r *Reconciler) announceSnapshots(before, after *v1alpha1.ClusterRegistration) {
	for _, o := range after.Status.OrphanedSnapshots {
		if !slices.ContainsFunc(before.Status.OrphanedSnapshots, func(was v1alpha1.OrphanedSnapshot) bool { return was.Content == o.Content && was.Reason == o.Reason }) {
			content := &corev1.ObjectReference{APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshotContent", Name: o.Content}
			r.Recorder.Eventf(after, content, corev1.EventTypeWarning, v1alpha1.ReasonOrphanedSnapshot, "Account",
				"no VolumeSnapshotContent in the host represents snapshot %q in the member, which was taken for VolumeSnapshot %q. Nothing destroys it. If nobody needs the data, set its deletionPolicy to Delete there, and delete it", o.Content, o.Snapshot)
		}
	}
}
