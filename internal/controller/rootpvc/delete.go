package rootpvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// deleteUnlessSuspended calls deletion() unless destruction is suspended. A suspension may last for days,
// and the proofs of a deletion list all volumes. A root that waits for the deletion reports the
// suspension. Without a root, no object can report it, so the error is returned. The link starts
// again once an admin confirms what the registration's condition requests (settling.WrapReconciler).
func (r *reconciler) deleteUnlessSuspended(deletion func(context.Context, observe.Claim) error) func(context.Context, observe.Claim) error {
	return func(ctx context.Context, o observe.Claim) error {
		err := r.CheckNotSuspended()
		if err == nil {
			err = deletion(ctx, o)
		}
		if !errors.Is(err, guarded.ErrSuspended) || o.Root == nil {
			return err
		}
		return r.reports.ReportProblem(ctx, o, mirror.NewRefusal(v1alpha1.ReasonSuspended, "an earlier claim %q is still in member %q, and Xylem deletes nothing there until an admin confirms a restore. See condition Connected of ClusterRegistration %q",
			o.Origin.Root, r.Registration, r.Registration))
	}
}

// withdrawLeafClaim deletes a leaf claim that has no volume.
func (r *reconciler) withdrawLeafClaim(ctx context.Context, o observe.Claim) error {
	var e proof.WithdrawingClaim
	var proven bool
	var err error
	if o.Observed.Root == nil {
		e.Root, proven, err = r.NewProver().ProveRootGone(ctx, o.Origin.Root, o.Origin.UID)
	} else {
		e.Unchanged, proven, err = r.NewProver().ProveRootUnchanged(ctx, o.Root)
	}
	if err != nil || !proven {
		return err
	}
	if e.NoVolume, proven, err = r.NewProver().ProveNothingProvisioned(ctx, o.Leaf, o.Origin); err != nil || !proven {
		return r.reportKeptClaim(ctx, o, e.NoVolume.MirroredBy, err)
	}
	if err := r.recordWithdrawnClaim(ctx, o); err != nil {
		return err
	}
	if e.Member, err = r.NewProver().ProveMemberCurrent(ctx); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(r.MemberWriter.DeleteClaim(ctx, o.Leaf, e)); err != nil {
		return err
	}
	if o.Root != nil {
		r.reports.EventClaimWithdrawn(o.Root)
	}
	return nil
}

// recordWithdrawnClaim records, in both clusters, a leaf claim for which a provisioner may be
// creating a volume that outlives it. Only the UID of this claim will identify that volume's
// owner. One record is not enough: a restored host may have lost its own, and a member's admin may
// delete the other.
func (r *reconciler) recordWithdrawnClaim(ctx context.Context, o observe.Claim) error {
	if !o.Observed.MayOutliveLeafClaim() {
		return nil
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: fencing.HostRecordName(r.ClusterID)}
	record, err := index.FindObject[coordinationv1.Lease](ctx, r.HostLive, key)
	if err != nil {
		return err
	}
	if record == nil {
		return fmt.Errorf("record the withdrawn claim %s: Lease %s does not exist", o.Origin.Root, key)
	}
	after, err := account.RecordWithWithdrawnClaim(record, o.Leaf.UID, o.Origin.Root.String(), r.Clock.Now())
	if err != nil {
		return err
	}
	if after != record {
		if err := r.HostWriter.PatchOwned(ctx, actor, record, after); err != nil {
			return err
		}
	}
	return r.AnnotateFence(ctx, func(fence *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return account.RecordWithWithdrawnClaim(fence, o.Leaf.UID, "", r.Clock.Now())
	})
}

// destroyUnmirroredClaim implements case (b) of I2: it deletes the leaf claim of a volume that was
// never mirrored. Live reads show that the leaf PV has no stamp, that the root's UID is gone, and
// that no host PV has the leaf PV's handle. The leaf claim is younger than the last restore of
// either cluster, and this process holds the fence. The leaf PV's own policy decides about the data.
func (r *reconciler) destroyUnmirroredClaim(ctx context.Context, o observe.Claim) error {
	switch restores := r.LastRestoreTimes(); {
	case restores.MayPrecedeHostRestore(o.Leaf):
		return errMembersUnknown
	case restores.MayBeFromBackup(o.Leaf), restores.MayLackRoot(o.Leaf):
		return nil // the restore was detected in the meantime, so another rule applies
	}
	return r.destroyLeafClaim(ctx, o, func(pv *corev1.PersistentVolume) bool {
		return hostpv.ClaimRefHasUIDOf(pv, o.Leaf) && !r.hasHostStamp(pv)
	})
}

func (r *reconciler) hasHostStamp(pv *corev1.PersistentVolume) bool {
	_, ours := mirror.LeafOriginFromHost(r.HostID, pv)
	return ours
}

// deleteRetainedClaim deletes a leaf claim after a live read has shown that the leaf PV outlives it,
// so no data is lost. It does not list all host PVs, because a restore of the member may leave
// thousands of these claims.
func (r *reconciler) deleteRetainedClaim(ctx context.Context, o observe.Claim) error {
	e, proven, err := r.proveUnmirrored(ctx, o, false, func(pv *corev1.PersistentVolume) bool { return proof.OutlivesClaim(pv, o.Leaf) })
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DeleteClaim(ctx, o.Leaf, proof.KeepingVolume{Root: e.Root, Leaf: e.Leaf, NoMirror: e.NoMirror, Member: e.Member}))
}

// deleteHandedOverClaim deletes a leaf claim whose volume now belongs to another claim.
func (r *reconciler) deleteHandedOverClaim(ctx context.Context, o observe.Claim) error {
	if o.Observed.Host == nil {
		return r.deleteRetainedClaim(ctx, o)
	}
	e, proven, err := r.NewProver().ProveVolumeKept(ctx, o.Observed.Host, o.Leaf)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DeleteClaim(ctx, o.Leaf, e))
}

// deleteLostClaim deletes the leaf claim if both its root and its volume are gone.
func (r *reconciler) deleteLostClaim(ctx context.Context, o observe.Claim) error {
	return r.destroyLeafClaim(ctx, o, proof.IsLeafAbsent)
}

// destroyLeafClaim deletes a leaf claim with its volume, which wanted() accepts, once live reads prove that it was
// never mirrored, and that nobody needs its data.
func (r *reconciler) destroyLeafClaim(ctx context.Context, o observe.Claim, wanted func(*corev1.PersistentVolume) bool) error {
	e, proven, err := r.proveUnmirrored(ctx, o, true, wanted)
	if err != nil || !proven {
		return err
	}
	nobody, err := r.NewProver().ProveVolumeUnneeded(ctx, o.Origin.Root, o.Origin.UID, e.Root)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.MemberWriter.DestroyClaim(ctx, o.Leaf, nobody, e))
}

// proveUnmirrored proves that the root of a bound leaf claim is gone, that wanted() accepts its volume,
// and that no host PV represents it; thorough is as for proof.NotMirrored. A member that was
// restored while this process ran may have lost the evidence that the volume was mirrored. If a
// host PV represents the volume, Xylem keeps the leaf claim and reports this, unless root_pv
// deletes the claim when that PV ends.
func (r *reconciler) proveUnmirrored(ctx context.Context, o observe.Claim, thorough bool, wanted func(*corev1.PersistentVolume) bool) (e proof.UnmirroredVolume, proven bool, err error) {
	if e.Root, proven, err = r.NewProver().ProveRootGone(ctx, o.Origin.Root, o.Origin.UID); err != nil || !proven {
		return e, false, err
	}
	if e.Leaf, proven, err = r.NewProver().ProveLeafVolume(ctx, o.Leaf.Spec.VolumeName, wanted); err != nil || !proven {
		return e, false, err
	}
	if e.NoMirror, proven, err = r.NewProver().ProveNotMirrored(ctx, o.Leaf, thorough); err != nil || !proven {
		if by := e.NoMirror.MirroredBy; by != nil {
			if cluster, _, uid, ours := hostpv.LeafOfHostVolume(by); ours && cluster == r.ClusterID && o.Observed.Leaf != nil && uid == o.Observed.Leaf.UID {
				return e, false, nil
			}
		}
		return e, false, r.reportKeptClaim(ctx, o, e.NoMirror.MirroredBy, err)
	}
	e.Member, err = r.NewProver().ProveMemberCurrent(ctx)
	return e, err == nil, err
}

// errLeafClaimKept means that a leaf claim is kept because a host PV represents its volume.
var errLeafClaimKept = errors.New("a host volume represents the volume")

// reportKeptClaim reports that a leaf claim is kept because a host PV represents its volume. It reports on
// the root that waits for the deletion, or else on that PV, and returns errLeafClaimKept. If the proof failed,
// it returns err.
func (r *reconciler) reportKeptClaim(ctx context.Context, o observe.Claim, by *corev1.PersistentVolume, err error) error {
	if err != nil || by == nil {
		return err
	}
	problem := mirror.NewRefusal(v1alpha1.ReasonVolumeKept, "Xylem keeps claim %q in member %q: PersistentVolume %q in the host represents its volume, or another one of the same claim, and the deletion could destroy data that is still needed. %s",
		o.Origin.Root, r.Registration, by.Name, howToAbandon(by))
	if o.Root == nil {
		r.reports.EventClaimProblem(by, problem)
		return errLeafClaimKept
	}
	return cmp.Or(r.reports.ReportProblem(ctx, o, problem), errLeafClaimKept)
}

// howToAbandon returns how an admin can abandon the volume that a host PV represents. host_volume
// abandons it only if the PV's record is intact, and the policy xylem-reserved-keys does not let
// admins correct the record.
func howToAbandon(by *corev1.PersistentVolume) string {
	if _, _, _, intact := hostpv.LeafOfHostVolume(by); intact || hostpv.IsUnfulfilledPromise(by) {
		return fmt.Sprintf("To abandon the volume and keep its data, annotate that PersistentVolume with %s=true", v1alpha1.AnnotationAbandon)
	}
	return fmt.Sprintf("Somebody changed the labels, annotations or node affinity of that PersistentVolume, so Xylem does not act on it. "+
		"To abandon the volume and keep its data, check that its reclaim policy in the member is Retain, then delete PersistentVolume %q and remove its finalizer %s",
		by.Name, v1alpha1.FinalizerLeafVolume)
}
