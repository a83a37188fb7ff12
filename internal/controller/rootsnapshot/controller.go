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
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/snapshots"
	"github.com/xylem-io/xylem/internal/snapshot"
	"github.com/xylem-io/xylem/internal/snapshot/lifecycle"
	"github.com/xylem-io/xylem/internal/snapshot/observe"
)

const (
	// Name is the name of the controller.
	Name  = "root_snapshot"
	actor = guarded.Actor("root-snapshot")
	// workers is the number of snapshots of one member that are reconciled concurrently.
	workers = 4
	// lookAgain is the interval at which a snapshot is checked whose data others still need.
	lookAgain = 5 * time.Second
)

// reconciler reconciles host contents whose snapshot is in one member.
type reconciler struct {
	*member.Link
	missing *hostrecord.Missing
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotclasses,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list;watch;patch

// Setup adds the controller to a member's link. The records show which snapshots the member has lost.
func Setup(link *member.Link, records *hostrecord.Records) error {
	return link.Controller(Name, workers, &reconciler{link, hostrecord.NewMissing(records)}, observe.Observer{Link: link}.Sources()...)
}

// Reconcile takes the next step for one snapshot, if root_snapshot owns it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.Observer{Link: r.Link}.OfContent(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.Host != nil && s.Content != nil && r.LastRestores().MayLackLeaf(s.Host) {
		r.missing.Observe(s.Host)
	}
	err = r.act(ctx, s, lifecycle.Next(s).By(lifecycle.RootSnapshot))
	if err == nil && len(s.Needs) > 0 || errors.Is(err, proof.ErrNeeded) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil // no event of the claims enqueues the content
	}
	return reconcile.Result{}, err
}

// act takes a step of this controller.
func (r *reconciler) act(ctx context.Context, s *snapshot.Observed, step lifecycle.Step) error {
	switch step {
	case lifecycle.None:
		return nil
	case lifecycle.Place:
		return r.Root.PatchContent(ctx, actor, s.Host, mirrorsnapshot.Place(s.Host, r.Member, s.Disk))
	case lifecycle.Rejoin:
		return r.Root.PatchContent(ctx, actor, s.Host, mirrorsnapshot.Rejoin(s.Host))
	case lifecycle.CreateLeaf:
		return r.create(ctx, s)
	case lifecycle.RecordLeaf:
		return r.Root.PatchContent(ctx, actor, s.Host, mirrorsnapshot.RecordSnapshot(s.Host, s.Leaf))
	case lifecycle.SetDelete:
		return r.setDelete(ctx, s)
	case lifecycle.DeleteLeaf:
		return r.deleteLeaf(ctx, s)
	case lifecycle.DeleteContent:
		return r.deleteContent(ctx, s)
	case lifecycle.DeleteKept:
		return r.deleteKept(ctx, s)
	case lifecycle.DeleteOrphaned:
		return r.deleteOrphaned(ctx, s)
	case lifecycle.DropHost:
		return r.dropHost(ctx, s)
	case lifecycle.DropKept:
		return r.dropKept(ctx, s)
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

func (r *reconciler) prover() snapshots.Prover { return snapshots.Prover{Prover: r.Proof()} }

// create creates the leaf VolumeSnapshot if a live read shows that the snapshot is placed here
// and had no leaf before. A lagging cache may lack that record.
func (r *reconciler) create(ctx context.Context, s *snapshot.Observed) error {
	placed, err := r.prover().SnapshotPlacedHere(ctx, s.Host)
	if err != nil || !placed {
		return err
	}
	err = r.Leaf.Create(ctx, actor, mirrorsnapshot.Translate(s.Root, s.Class, r.Member))
	switch {
	case apierrors.IsAlreadyExists(err):
		return settling.Unseen(err)
	case err != nil:
		return errors.Join(err, r.refused(ctx, s, report.RefusedByMember(r.Registration, "create", "the VolumeSnapshot", err)))
	}
	return nil
}

// refused reports in the host content's status, and with an event, why the member rejects the
// leaf. leaf_snapshot writes no status until the leaf exists.
func (r *reconciler) refused(ctx context.Context, s *snapshot.Observed, why *mirror.Refusal) error {
	if why == nil {
		return nil
	}
	status := s.Status(why, r.Clock.Now())
	if equality.Semantic.DeepEqual(s.Host.Status, status) {
		return nil
	}
	if err := r.Root.PatchContentStatus(ctx, actor, s.Host, status); err != nil {
		return err
	}
	r.Recorder.Eventf(s.Root, nil, corev1.EventTypeWarning, why.Reason, "Snapshot", "%s", why.Message)
	return nil
}

// destroying collects the first part of the evidence for I2: the host content is being deleted with
// policy Delete, and its VolumeSnapshot is gone or being deleted.
func (r *reconciler) destroying(ctx context.Context, s *snapshot.Observed) (e snapshots.DestroyingSnapshot, proven bool, err error) {
	if e.Host, proven, err = r.prover().ContentEnded(ctx, s.Host); err != nil || !proven {
		return e, false, err
	}
	e.Root, proven, err = r.prover().SnapshotEnded(ctx, mirrorsnapshot.RootOf(s.Host), s.UID)
	return e, proven, err
}

// unneeded proves that nobody needs the snapshot's data.
func (r *reconciler) unneeded(ctx context.Context, s *snapshot.Observed) (proof.Unneeded, error) {
	return r.Proof().SnapshotUnneeded(ctx, mirrorsnapshot.RootOf(s.Host), s.UID)
}

func (r *reconciler) setDelete(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.destroying(ctx, s)
	if err != nil || !proven {
		return err
	}
	nobody, err := r.unneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.Leaf.SetContentDelete(ctx, actor, s.Content, nobody, e)
}

// deleteLeaf deletes the leaf VolumeSnapshot if a live read shows that its content is unchanged.
func (r *reconciler) deleteLeaf(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.destroying(ctx, s)
	if err != nil || !proven {
		return err
	}
	e.Leaf, proven, err = r.prover().LeafContent(ctx, s.Leaf.UID, func(now *snapshotv1.VolumeSnapshotContent) bool {
		if now == nil || s.Content == nil {
			return now == nil && s.Content == nil
		}
		return now.UID == s.Content.UID && now.Spec.DeletionPolicy == s.Content.Spec.DeletionPolicy
	})
	if err != nil || !proven {
		return err
	}
	nobody, err := r.unneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.Leaf.DestroySnapshot(ctx, s.Leaf, nobody, e)
}

// deleteContent deletes the leaf content if a live read shows that its VolumeSnapshot is gone.
func (r *reconciler) deleteContent(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.destroying(ctx, s)
	if err != nil || !proven {
		return err
	}
	if e.Gone, proven, err = r.prover().LeafSnapshotGone(ctx, s.Content); err != nil {
		return err
	}
	if !proven {
		return fmt.Errorf("the member has the VolumeSnapshot of content %s, which is not in the cache yet", s.Content.Name)
	}
	nobody, err := r.unneeded(ctx, s)
	if err != nil {
		return err
	}
	return r.Leaf.DestroyContent(ctx, s.Content, nobody, e)
}

// deleteKept deletes the leaf VolumeSnapshot of a root that is gone or being deleted. The leaf
// content remains, and so does the data.
func (r *reconciler) deleteKept(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.prover().KeptSnapshot(ctx, s.Host, s.Leaf)
	if err != nil || !proven {
		return err
	}
	return r.Leaf.DeleteSnapshot(ctx, s.Leaf, e)
}

// deleteOrphaned deletes a leaf VolumeSnapshot that no host content represents.
func (r *reconciler) deleteOrphaned(ctx context.Context, s *snapshot.Observed) error {
	e, proven, err := r.prover().KeptSnapshot(ctx, nil, s.Leaf)
	if err != nil || !proven {
		return err
	}
	return r.Leaf.DeleteSnapshot(ctx, s.Leaf, e)
}

// dropHost releases the host content of a snapshot that is gone from the member. If the member
// was restored, absence is not evidence, and the host content is the last record of the snapshot.
func (r *reconciler) dropHost(ctx context.Context, s *snapshot.Observed) error {
	if err := r.MayDestroy(); err != nil {
		return err
	}
	e, gone, err := r.prover().SnapshotLeafGone(ctx, s.Host)
	if err != nil {
		return err
	}
	if !gone {
		return fmt.Errorf("the member has a leaf of snapshot %s that is not in the cache yet", s.Host.Name)
	}
	if err := r.recordMissing(ctx, s); err != nil {
		return err
	}
	return r.Root.DropContent(ctx, actor, s.Host, e)
}

// recordMissing records and reports a snapshot that the restored member may have lost.
func (r *reconciler) recordMissing(ctx context.Context, s *snapshot.Observed) error {
	if s.Record().Snapshot == "" || !r.LastRestores().MayLackLeaf(s.Host) {
		return nil
	}
	record, handle := s.Record(), "its handle is not recorded"
	if record.Handle != "" {
		handle = fmt.Sprintf("%q in the member, handle %q", mirrorsnapshot.LeafContent(s.Host), record.Handle)
	}
	what := fmt.Sprintf("snapshot %q (%s)", s.Host.Name, handle)
	missing, err := r.missing.Record(ctx, r.Root, r.ClusterID, s.Host, what+": missing since the member was restored")
	if err != nil || !missing {
		return err
	}
	r.Recorder.Eventf(s.Host, s.Root, corev1.EventTypeWarning, v1alpha1.ReasonSnapshotLost, "Release",
		"%s has been missing since member %q was restored, and Xylem has no record that it destroyed the snapshot. Check whether it still exists in the storage, and delete it if nobody needs it", what, r.Registration)
	return nil
}

// dropKept releases the host content of a snapshot that must be kept. If the restored member has lost
// the leaf content, nothing else names the snapshot, so dropKept records it first. The date of a
// restore is known only once the fence has detected it, so dropKept fails until then.
func (r *reconciler) dropKept(ctx context.Context, s *snapshot.Observed) error {
	e, proven, missing, err := r.prover().SnapshotKept(ctx, s.Host)
	if err != nil || !proven {
		return err
	}
	if missing {
		if err := r.recordMissing(ctx, s); err != nil {
			return err
		}
	}
	return r.Root.DropContent(ctx, actor, s.Host, e)
}
