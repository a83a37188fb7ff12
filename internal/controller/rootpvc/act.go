package rootpvc

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

func (r *reconciler) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case abstain:
		return nil
	case nothing, doubt, inUse:
		return r.report(ctx, o, d)
	case place:
		return r.place(ctx, o)
	case unselect:
		r.eventProblem(o.root, d.problem)
		return r.annotate(ctx, o.root, func(annotations map[string]string) { delete(annotations, route.AnnSelectedNode) })
	case create:
		return r.create(ctx, o, d.leaf)
	case grow:
		after := o.leaf.DeepCopy()
		after.Spec.Resources.Requests[corev1.ResourceStorage] = d.to
		if err := r.Leaf.Patch(ctx, actor, o.leaf, after); err != nil {
			return r.refusedByMember(ctx, o.root, "grow", err)
		}
		r.eventGrown(o.root, d.to)
		return nil
	case nudge:
		after := o.leaf.DeepCopy()
		after.Annotations[v1alpha1.AnnotationVolumeUID] = string(o.volume.UID)
		return r.Leaf.Patch(ctx, actor, o.leaf, after)
	case withdraw, unplace, unlabel:
		return r.takeBack(ctx, o, d)
	case destroyUnmirrored:
		return r.unlessSuspended(ctx, o, r.destroyUnmirrored)
	case deleteRetained:
		return r.unlessSuspended(ctx, o, r.deleteRetained)
	case deleteLeft:
		return r.unlessSuspended(ctx, o, r.deleteLeft)
	case deleteLost:
		return r.unlessSuspended(ctx, o, r.deleteLost)
	case adopt:
		return r.adopt(ctx, o)
	case label:
		return r.Root.Patch(ctx, actor, o.promise, hostpv.WithMember(o.promise, r.Member, d.consumer))
	}
	return fmt.Errorf("unknown decision %T", d)
}

// takeBack takes back a step of a claim's way into the member.
func (r *reconciler) takeBack(ctx context.Context, o observed, d decision) error {
	if stands, err := r.stands(ctx, o, d); err != nil || !stands {
		return err
	}
	switch d := d.(type) {
	case withdraw:
		return r.unlessSuspended(ctx, o, func(ctx context.Context, o observed) error { return r.withdraw(ctx, o, d.rootGone) })
	case unplace:
		return r.unplace(ctx, o.root)
	case unlabel:
		return r.unlabel(ctx, o)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// report says what the user has to know, where it needs a proof once that is there.
func (r *reconciler) report(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case nothing:
		return r.say(ctx, o, d.problem)
	case doubt:
		if _, same, err := r.Proof().RootUnchanged(ctx, o.root); err != nil || !same {
			return err
		}
		return r.say(ctx, o, d.problem)
	case inUse:
		return r.sayInUse(ctx, o, d.problem)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// say tells the user of a problem: on the claim's condition if it is this
// member's to keep, else by an event.
func (r *reconciler) say(ctx context.Context, o observed, problem *mirror.Refusal) error {
	if o.speaks() {
		return r.tell(ctx, o.root, problem)
	}
	if problem != nil {
		r.warn(o, problem)
	}
	return nil
}

// sayInUse tells the user that another claim of the member has the claim's volume. If there is
// no such claim, the member is about to release the volume from it.
func (r *reconciler) sayInUse(ctx context.Context, o observed, problem *mirror.Refusal) error {
	ref := o.volume.Leaf.Spec.ClaimRef
	other, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || other == nil || other.UID != ref.UID {
		return err
	}
	return r.say(ctx, o, problem)
}

// warn emits the event of a problem on the root, or, if that is gone, on a host PV that
// keeps its leaf claim. Where neither is left, the registration's account has the volume.
func (r *reconciler) warn(o observed, problem *mirror.Refusal) {
	switch {
	case o.root != nil:
		r.eventProblem(o.root, problem)
	case o.volume != nil && len(o.volume.Earlier) > 0:
		r.eventProblem(&o.volume.Earlier[0], problem)
	}
}

// unlessSuspended deletes, unless destruction is suspended, perhaps for days: the proofs of
// a deletion cost lists of all volumes. A root that waits for the deletion reports that.
// Without a root, no object does: the error stays, and is retried when an admin confirms what
// the registration's condition asks for (guarded.Settling), because the link starts again then.
func (r *reconciler) unlessSuspended(ctx context.Context, o observed, deletion func(context.Context, observed) error) error {
	err := r.MayDestroy()
	if err == nil {
		err = deletion(ctx, o)
	}
	if !errors.Is(err, guarded.ErrSuspended) || o.root == nil {
		return err
	}
	return r.say(ctx, o, &mirror.Refusal{Reason: v1alpha1.ReasonSuspended, Message: fmt.Sprintf(
		"claim %s in member %s is in the way, and nothing is deleted there until an admin confirms what ClusterRegistration %s asks for",
		o.origin.Root, r.Registration, r.Registration)})
}

func (r *reconciler) withdraw(ctx context.Context, o observed, rootGone bool) error {
	var e proof.Withdrawing
	var proven bool
	var err error
	if rootGone {
		e.Root, proven, err = r.Proof().RootGone(ctx, o.origin.Root, o.origin.UID)
	} else {
		e.Seen, proven, err = r.Proof().RootUnchanged(ctx, o.root)
	}
	if err != nil || !proven {
		return err
	}
	if e.Made, proven, err = r.Proof().NothingMade(ctx, o.leaf, o.origin); err != nil || !proven {
		return r.keep(ctx, o, e.Made.By, err)
	}
	if err := r.rememberWithdrawn(ctx, o); err != nil {
		return err
	}
	if e.Member, err = r.Proof().MemberCurrent(ctx); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.leaf, e)); err != nil {
		return err
	}
	if o.root != nil {
		r.eventWithdrawn(o.root)
	}
	return nil
}

// rememberWithdrawn notes, in both clusters, a leaf claim for which a provisioner may be
// making a volume that outlives it: nothing on that volume will say whose it is, but the
// UID of this claim. A host that is restored forgets its note, and a member's admin may
// delete the other.
func (r *reconciler) rememberWithdrawn(ctx context.Context, o observed) error {
	if !o.leavesVolume() {
		return nil
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: hostrecord.Name(r.ClusterID)}
	record, err := index.Find[coordinationv1.Lease](ctx, r.HostLive, key)
	if err != nil {
		return err
	}
	if record == nil {
		return fmt.Errorf("remember the withdrawn claim %s: there is no Lease %s", o.origin.Root, key)
	}
	after, err := account.WithWithdrawn(record, o.leaf.UID, o.origin.Root.String(), r.Clock.Now())
	if err != nil {
		return err
	}
	if after != record {
		if err := r.Root.Patch(ctx, actor, record, after); err != nil {
			return err
		}
	}
	return r.Note(ctx, func(fence *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return account.WithWithdrawn(fence, o.leaf.UID, "", r.Clock.Now())
	})
}

// place takes the claim for this member. What is to be made there is measured from
// here on; a leaf or a volume that is there already is not.
func (r *reconciler) place(ctx context.Context, o observed) error {
	if o.unasked() && r.pace.wait(o.root.UID, o.root.ResourceVersion) {
		return nil // its write to the claim and ours would collide
	}
	if o.fresh() {
		turn := r.Gate.Enter(r.ClusterID, o.root)
		if turn.Tell {
			r.eventHeldBack(o.root, turn)
		}
		if !turn.Come {
			return r.say(ctx, o, nil) // it is woken
		}
	}
	begun := r.Clock.Now()
	if err := r.annotate(ctx, o.root, func(annotations map[string]string) { annotations[v1alpha1.AnnotationPlacedIn] = r.ClusterID }); err != nil {
		return err
	}
	if o.leaf == nil && (o.root.Spec.VolumeName == "" || o.promise != nil) {
		r.Passages.Begin(o.root.UID, begun)
	}
	return nil
}

func (r *reconciler) annotate(ctx context.Context, before *corev1.PersistentVolumeClaim, change func(map[string]string)) error {
	after := before.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	change(after.Annotations)
	return r.Root.AnnotateClaim(ctx, actor, before, after)
}

// create makes the leaf claim. One that is there already and was not seen in
// the cache is either ours, just made, or somebody else's.
func (r *reconciler) create(ctx context.Context, o observed, leaf *corev1.PersistentVolumeClaim) error {
	if placed, err := r.Proof().PlacedHere(ctx, o.root); err != nil || !placed {
		return err
	}
	if awaited, err := r.awaited(ctx, o); err != nil || !awaited {
		return err
	}
	if mirrored, err := r.mirroredFor(ctx, o.root); err != nil || mirrored {
		return err // by an earlier leaf claim's volume (I3)
	}
	err := r.Leaf.Create(ctx, actor, leaf)
	if err == nil {
		return r.tell(ctx, o.root, nil)
	}
	if !apierrors.IsAlreadyExists(err) {
		return r.refusedByMember(ctx, o.root, "create", err)
	}
	var there corev1.PersistentVolumeClaim
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(leaf), &there); err != nil {
		return fmt.Errorf("read the claim in the way: %w", err)
	}
	if _, ours := mirror.OriginIn(r.HostID, &there); ours {
		return guarded.Unseen(err)
	}
	problem := &mirror.Refusal{Reason: v1alpha1.ReasonNameTaken, Message: fmt.Sprintf(
		"member %s has a claim %s/%s of its own: it is left alone. Use another name, or have it removed there", r.Registration, leaf.Namespace, leaf.Name)}
	if err := r.tell(ctx, o.root, problem); err != nil {
		return err
	}
	return problem // the claim in the way is not watched: try again, at a bounded rate
}

// refusedByMember tells the user what the member's API server holds against a
// claim (a quota, an admission policy), and has it tried again at a bounded rate.
func (r *reconciler) refusedByMember(ctx context.Context, root *corev1.PersistentVolumeClaim, doing string, err error) error {
	problem := guarded.RefusedByMember(r.Registration, doing, "the claim", err)
	if problem == nil {
		return err
	}
	if told := r.tell(ctx, root, problem); told != nil {
		return told
	}
	return err
}

// destroyUnmirrored is I2 (b): the leaf PV has no stamp, the root's UID is gone, no PV of
// the host has the leaf PV's handle, all by live reads; the leaf claim is younger than the
// member's last restore, and the fence is ours. What the leaf PV's own policy says happens
// to it.
func (r *reconciler) destroyUnmirrored(ctx context.Context, o observed) error {
	if r.LastRestores().Predates(o.leaf) {
		return nil // leaf_pv sets its volume to Retain
	}
	e, proven, err := r.unmirrored(ctx, o, true, func(pv *corev1.PersistentVolume) bool { return hostpv.HeldBy(pv, o.leaf) && !r.stamped(pv) })
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.leaf, e))
}

func (r *reconciler) stamped(pv *corev1.PersistentVolume) bool {
	_, ours := mirror.OriginIn(r.HostID, pv)
	return ours
}

// deleteRetained destroys nothing: the leaf PV outlives the leaf claim, by a live read. After a
// restore of the member there may be thousands, for which all host PVs are not listed.
func (r *reconciler) deleteRetained(ctx context.Context, o observed) error {
	e, proven, err := r.unmirrored(ctx, o, false, func(pv *corev1.PersistentVolume) bool { return proof.Outlives(pv, o.leaf) })
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.leaf, proof.Keeping{Root: e.Root, Leaf: e.Leaf, None: e.None, Member: e.Member}))
}

// deleteLeft deletes a leaf claim that names another claim's volume.
func (r *reconciler) deleteLeft(ctx context.Context, o observed) error {
	if o.volume.Host == nil {
		return r.deleteRetained(ctx, o)
	}
	e, proven, err := r.Proof().Kept(ctx, o.volume.Host, o.leaf)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.leaf, e))
}

// deleteLost removes what is left of a claim whose root and volume are both gone.
func (r *reconciler) deleteLost(ctx context.Context, o observed) error {
	e, proven, err := r.unmirrored(ctx, o, true, proof.Absent)
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(r.Leaf.DeleteClaim(ctx, o.leaf, e))
}

// unmirrored proves that the root of a bound leaf claim is gone, that its volume is as wanted,
// and that no host PV represents it; thorough as for proof.NotMirrored. A member that was
// restored under this process may have forgotten that the volume was mirrored. If a host PV
// represents the volume, Xylem keeps the leaf claim, and says so where root_pv does not end it:
// on a host PV of this very volume, the claim's end is root_pv's.
func (r *reconciler) unmirrored(ctx context.Context, o observed, thorough bool, wanted func(*corev1.PersistentVolume) bool) (e proof.Unmirrored, proven bool, err error) {
	if e.Root, proven, err = r.Proof().RootGone(ctx, o.origin.Root, o.origin.UID); err != nil || !proven {
		return e, false, err
	}
	if e.Leaf, proven, err = r.Proof().LeafVolume(ctx, o.leaf.Spec.VolumeName, wanted); err != nil || !proven {
		return e, false, err
	}
	if e.None, proven, err = r.Proof().NotMirrored(ctx, o.leaf, thorough); err != nil || !proven {
		if by := e.None.By; by != nil {
			if _, _, uid, ours := hostpv.LeafOf(by); ours && o.leafVolume != nil && uid == o.leafVolume.UID {
				return e, false, nil
			}
		}
		return e, false, r.keep(ctx, o, e.None.By, err)
	}
	e.Member, err = r.Proof().MemberCurrent(ctx)
	return e, err == nil, err
}

// keep reports that a leaf claim is kept, because a host PV represents its volume: on the
// root that waits for its end, or on that PV. It returns an error of the proof.
func (r *reconciler) keep(ctx context.Context, o observed, by *corev1.PersistentVolume, err error) error {
	if err != nil || by == nil {
		return err
	}
	problem := &mirror.Refusal{Reason: v1alpha1.ReasonVolumeKept, Message: fmt.Sprintf(
		"Xylem keeps claim %q in member %q: PersistentVolume %q of the host represents its volume, whose data might go with the claim. "+
			"Check that PersistentVolume: its label %s has to be %q. To give the volume up and keep its data, annotate it %s=true",
		o.origin.Root, r.Registration, by.Name, v1alpha1.LabelClusterID, r.ClusterID, v1alpha1.AnnotationAbandon)}
	if o.root == nil {
		r.eventProblem(by, problem)
		return nil
	}
	return r.say(ctx, o, problem)
}

// mirroredFor reports whether a host PV was created for a root that was seen unbound: it
// is about to be bound. That enqueues it, as does the end of that PV.
func (r *reconciler) mirroredFor(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	if root.Spec.VolumeName != "" {
		return false, nil
	}
	name, err := r.Mirrors.Of(ctx, root)
	return name != "", err
}

// unplace lets another member have the claim, once a live read proves that this
// one holds no leaf claim for it, and no volume was mirrored for it.
func (r *reconciler) unplace(ctx context.Context, root *corev1.PersistentVolumeClaim) error {
	if gone, err := r.Proof().LeafClaimGone(ctx, root); err != nil || !gone {
		return err
	}
	if mirrored, err := r.mirroredFor(ctx, root); err != nil || mirrored {
		return err
	}
	if err := r.annotate(ctx, root, func(annotations map[string]string) { delete(annotations, v1alpha1.AnnotationPlacedIn) }); err != nil {
		return err
	}
	r.Passages.Withdraw(root.UID)
	return nil
}

// tell keeps the root's Placed condition: there while there is a problem, with
// an event when it is a new one, and gone with it.
func (r *reconciler) tell(ctx context.Context, root *corev1.PersistentVolumeClaim, problem *mirror.Refusal) error {
	if root == nil {
		return nil
	}
	if problem != nil && report.FailsClaim(problem.Reason) {
		problem = report.TriedOf(root).AfterOthers(problem, r.Member)
	}
	shown := report.PlacedCondition(root, mirror.Reporter{ClusterID: r.ClusterID}, problem, r.Clock.Now())
	if shown == nil {
		return nil
	}
	if problem != nil && report.FailsClaim(problem.Reason) && !r.pace.spend(root.UID, r.Clock.Now()) {
		return nil // told a little later
	}
	if problem != nil {
		r.eventProblem(root, problem)
	}
	return r.Root.ApplyStatus(ctx, actor, root, shown)
}
