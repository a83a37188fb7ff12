package rootsnapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/snapshot"
)

const (
	// Name is the name of the controller.
	Name  = "root_snapshot"
	actor = guarded.Actor("root-snapshot")
	// workers is the number of snapshots of one member that are reconciled concurrently.
	workers = 4
	// neededCheckInterval is the interval at which a snapshot is checked whose data others still need.
	neededCheckInterval = 5 * time.Second
)

// reconciler reconciles host contents whose snapshot is in one member.
type reconciler struct {
	*member.Link
	missingSnapshots *fencing.MissingStorage
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotclasses,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list;watch;patch

// Setup adds the controller to a member's link. The records show which snapshots the member has lost.
func Setup(link *member.Link, records *fencing.HostRecords) error {
	return link.AddController(Name, workers, &reconciler{link, fencing.NewMissingStorage(records)}, snapshot.Observer{Link: link}.EventSources()...)
}

// Reconcile takes the next step for one snapshot, if root_snapshot owns it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := snapshot.Observer{Link: r.Link}.ObserveContent(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.Host != nil && s.Content != nil && r.LastRestoreTimes().MayLackLeaf(s.Host) {
		r.missingSnapshots.RecordObserved(s.Host)
	}
	err = r.executeStep(ctx, s, snapshot.NextPlan(s).StepOwnedBy(snapshot.RootSnapshot))
	if err == nil && len(s.ClaimsToRestore) > 0 || errors.Is(err, proof.ErrDataNeeded) {
		return reconcile.Result{RequeueAfter: neededCheckInterval}, nil // no event of the claims enqueues the content
	}
	return reconcile.Result{}, err
}

// executeStep takes a step of this controller.
func (r *reconciler) executeStep(ctx context.Context, s *snapshot.Observed, step snapshot.Step) error {
	switch step {
	case snapshot.None:
		return nil
	case snapshot.Place:
		return r.HostWriter.PatchHostContent(ctx, actor, s.Host, mirrorsnapshot.ContentWithPlacement(s.Host, r.Member, s.Disk))
	case snapshot.Rejoin:
		return r.HostWriter.PatchHostContent(ctx, actor, s.Host, mirrorsnapshot.RemoveClusterGone(s.Host))
	case snapshot.CreateLeaf:
		return r.createLeafSnapshot(ctx, s)
	case snapshot.RecordLeaf:
		return r.HostWriter.PatchHostContent(ctx, actor, s.Host, mirrorsnapshot.RecordLeafSnapshot(s.Host, s.Leaf))
	case snapshot.SetDelete:
		return r.setLeafContentDelete(ctx, s)
	case snapshot.DeleteLeaf:
		return r.deleteLeafSnapshot(ctx, s)
	case snapshot.DeleteContent:
		return r.deleteLeafContent(ctx, s)
	case snapshot.DeleteKept:
		return r.deleteKeptSnapshot(ctx, s)
	case snapshot.DeleteOrphaned:
		return r.deleteOrphanSnapshot(ctx, s)
	case snapshot.DropHost:
		return r.dropHostContent(ctx, s)
	case snapshot.DropKept:
		return r.dropKeptContent(ctx, s)
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

func (r *reconciler) snapshotProver() proof.SnapshotProver {
	return proof.SnapshotProver{Prover: r.NewProver()}
}

// createLeafSnapshot creates the leaf VolumeSnapshot if a live read shows that the snapshot is placed here
// and had no leaf before. A lagging cache may lack that record.
func (r *reconciler) createLeafSnapshot(ctx context.Context, s *snapshot.Observed) error {
	placed, err := r.snapshotProver().ProveSnapshotPlacedHere(ctx, s.Host)
	if err != nil || !placed {
		return err
	}
	err = r.MemberWriter.CreateStamped(ctx, actor, mirrorsnapshot.TranslateSnapshot(s.Root, s.Class, r.Member))
	switch {
	case apierrors.IsAlreadyExists(err):
		return guarded.NewUnseenError(err)
	case err != nil:
		return errors.Join(err, r.reportMemberRejection(ctx, s, report.MemberWriteRefusal(r.Registration, "create", "the VolumeSnapshot", err)))
	}
	return nil
}

// reportMemberRejection reports in the host content's status, and with an event, why the member rejects the
// leaf. leaf_snapshot writes no status until the leaf exists.
func (r *reconciler) reportMemberRejection(ctx context.Context, s *snapshot.Observed, why *mirror.Refusal) error {
	if why == nil {
		return nil
	}
	status := s.DesiredHostStatus(why, r.Clock.Now())
	if equality.Semantic.DeepEqual(s.Host.Status, status) {
		return nil
	}
	if err := r.HostWriter.PatchHostContentStatus(ctx, actor, s.Host, status); err != nil {
		return err
	}
	r.Recorder.Eventf(s.Root, nil, corev1.EventTypeWarning, why.Reason, "Snapshot", "%s", why.Message)
	return nil
}

// proveRootEnded collects the first part of the evidence for I2: the host content is being deleted with
// policy Delete, and its VolumeSnapshot is gone or being deleted.
func (r *reconciler) proveRootEnded(ctx context.Context, s *snapshot.Observed) (e proof.DestroyingSnapshot, proven bool, err error) {
	if e.Host, proven, err = r.snapshotProver().ProveContentEnded(ctx, s.Host); err != nil || !proven {
		return e, false, err
	}
	e.Root, proven, err = r.snapshotProver().ProveSnapshotEnded(ctx, mirrorsnapshot.RootSnapshotKey(s.Host), s.UID)
	return e, proven, err
}

// proveSnapshotUnneeded proves that nobody needs the snapshot's data.
func (r *reconciler) proveSnapshotUnneeded(ctx context.Context, s *snapshot.Observed) (proof.DataUnneeded, error) {
	return r.NewProver().ProveSnapshotUnneeded(ctx, mirrorsnapshot.RootSnapshotKey(s.Host), s.UID)
}

func (r *reconciler) setLeafContentDelete(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.proveRootEnded(ctx, s)
	if err != nil || !proven {
		return err
	}
	nobody, err := r.proveSnapshotUnneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.MemberWriter.SetContentPolicyDelete(ctx, actor, s.Content, nobody, e)
}

// deleteLeafSnapshot deletes the leaf VolumeSnapshot if a live read shows that its content is unchanged.
func (r *reconciler) deleteLeafSnapshot(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.proveRootEnded(ctx, s)
	if err != nil || !proven {
		return err
	}
	e.Leaf, proven, err = r.snapshotProver().ProveLeafContent(ctx, s.Leaf.UID, func(now *snapshotv1.VolumeSnapshotContent) bool {
		if now == nil || s.Content == nil {
			return now == nil && s.Content == nil
		}
		return now.UID == s.Content.UID && now.Spec.DeletionPolicy == s.Content.Spec.DeletionPolicy
	})
	if err != nil || !proven {
		return err
	}
	nobody, err := r.proveSnapshotUnneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.MemberWriter.DestroySnapshot(ctx, s.Leaf, nobody, e)
}

// deleteLeafContent deletes the leaf content if a live read shows that its VolumeSnapshot is gone.
func (r *reconciler) deleteLeafContent(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.proveRootEnded(ctx, s)
	if err != nil || !proven {
		return err
	}
	if e.LeafGone, proven, err = r.snapshotProver().ProveLeafSnapshotGone(ctx, s.Content); err != nil {
		return err
	}
	if !proven {
		return fmt.Errorf("the member has the VolumeSnapshot of content %s, which is not in the cache yet", s.Content.Name)
	}
	nobody, err := r.proveSnapshotUnneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.MemberWriter.DestroyLeafContent(ctx, s.Content, nobody, e)
}

// deleteKeptSnapshot deletes the leaf VolumeSnapshot of a root that is gone or being deleted. The leaf
// content remains, and so does the data.
func (r *reconciler) deleteKeptSnapshot(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.snapshotProver().ProveLeafSnapshotDataKept(ctx, s.Host, s.Leaf)
	if err != nil || !proven {
		return err
	}
	return r.MemberWriter.DeleteSnapshot(ctx, s.Leaf, e)
}

// deleteOrphanSnapshot deletes a leaf VolumeSnapshot that no host content represents.
func (r *reconciler) deleteOrphanSnapshot(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.snapshotProver().ProveLeafSnapshotDataKept(ctx, nil, s.Leaf)
	if err != nil || !proven {
		return err
	}
	return r.MemberWriter.DeleteSnapshot(ctx, s.Leaf, e)
}

// dropHostContent releases the host content of a snapshot that is gone from the member. If the member
// was restored, absence is not evidence, and the host content is the last record of the snapshot.
func (r *reconciler) dropHostContent(ctx context.Context, s *snapshot.Observed) error {
	if err := r.CheckNotSuspended(); err != nil {
		return err
	}
	e, gone, err := r.snapshotProver().ProveSnapshotLeafGone(ctx, s.Host)
	if err != nil {
		return err
	}
	if !gone {
		return fmt.Errorf("the member has a leaf of snapshot %s that is not in the cache yet", s.Host.Name)
	}
	if err := r.recordMissingSnapshot(ctx, s); err != nil {
		return err
	}
	return r.HostWriter.DropHostContent(ctx, actor, s.Host, e)
}

// recordMissingSnapshot records and reports a snapshot that the restored member may have lost.
func (r *reconciler) recordMissingSnapshot(ctx context.Context, s *snapshot.Observed) error {
	if s.LeafRecord().Snapshot == "" || !r.LastRestoreTimes().MayLackLeaf(s.Host) {
		return nil
	}
	record, handle := s.LeafRecord(), "its handle is not recorded"
	if record.Handle != "" {
		handle = fmt.Sprintf("%q in the member, handle %q", mirrorsnapshot.LeafContentName(s.Host), record.Handle)
	}
	what := fmt.Sprintf("snapshot %q (%s)", s.Host.Name, handle)
	missing, err := r.missingSnapshots.RecordUnlessObserved(ctx, r.HostWriter, r.ClusterID, s.Host, what+": missing since the member was restored")
	if err != nil || !missing {
		return err
	}
	r.Recorder.Eventf(s.Host, s.Root, corev1.EventTypeWarning, v1alpha1.ReasonSnapshotLost, "Release",
		"%s has been missing since member %q was restored, and Xylem has no record that it destroyed the snapshot. Check whether it still exists in the storage, and delete it if nobody needs it", what, r.Registration)
	return nil
}

// dropKeptContent releases the host content of a snapshot that must be kept. If the restored member has lost
// the leaf content, nothing else names the snapshot, so dropKeptContent records it first. The date of a
// restore is known only once the fence has detected it, so dropKeptContent fails until then.
func (r *reconciler) dropKeptContent(ctx context.Context, s *snapshot.Observed) error {
	e, proven, missing, err := r.snapshotProver().ProveSnapshotKept(ctx, s.Host)
	if err != nil || !proven {
		return err
	}
	if missing {
		if err := r.recordMissingSnapshot(ctx, s); err != nil {
			return err
		}
	}
	return r.HostWriter.DropHostContent(ctx, actor, s.Host, e)
}
