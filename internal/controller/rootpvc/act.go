package rootpvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// executeStep takes the plan's step if this controller owns it, or reports its problem.
func (r *reconciler) executeStep(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error { //nolint:gocyclo // a table
	if plan.Owner != lifecycle.RootPVC {
		return nil
	}
	s := o.Observed
	switch plan.Step {
	case lifecycle.None:
		return r.passMetadataAndReport(ctx, o, plan)
	case lifecycle.Place:
		return r.stepUnlessElsewhere(ctx, o, plan.Step, r.placeClaim)
	case lifecycle.Unselect:
		return r.unselectNode(ctx, o, plan.Report)
	case lifecycle.SelectNode:
		return r.selectNodeForLeaf(ctx, o, plan)
	case lifecycle.CreateClaim:
		return r.stepUnlessElsewhere(ctx, o, plan.Step, r.createLeafClaim)
	case lifecycle.Grow:
		return r.passMetadataFirst(ctx, o, r.expandVolume)
	case lifecycle.Modify:
		return r.passMetadataFirst(ctx, o, r.modify)
	case lifecycle.Touch:
		return r.touchLeafClaim(ctx, o)
	case lifecycle.Label:
		return r.HostWriter.PatchOwned(ctx, actor, s.Promise, hostpv.PromiseWithMember(s.Promise, r.Member, s.FirstPromisePod()))
	case lifecycle.Unlabel:
		return r.undoUnlessUsed(ctx, o, plan, r.unlabelPromise)
	case lifecycle.Unplace:
		return r.undoUnlessUsed(ctx, o, plan, r.unplaceClaim)
	case lifecycle.Withdraw:
		return r.undoUnlessUsed(ctx, o, plan, r.deleteUnlessSuspended(r.withdrawLeafClaim))
	case lifecycle.DestroyUnmirrored:
		return r.deleteUnlessSuspended(r.destroyUnmirroredClaim)(ctx, o)
	case lifecycle.DeleteRetained:
		return r.deleteUnlessSuspended(r.deleteRetainedClaim)(ctx, o)
	case lifecycle.DeleteLeft:
		return r.deleteUnlessSuspended(r.deleteHandedOverClaim)(ctx, o)
	case lifecycle.DeleteLost:
		return r.deleteUnlessSuspended(r.deleteLostClaim)(ctx, o)
	case lifecycle.AdoptClaim:
		return r.adoptLeafClaim(ctx, o)
	default:
		return fmt.Errorf("step %s does not belong to %s", plan.Step, Name)
	}
}

// undoUnlessUsed calls back(), which undoes a step in the member. If the claim is bound to a promise, a
// live list must first show that no Pod here needs the disk: after a restart, a cache filled by a
// lagging API server may lack such a Pod.
func (r *reconciler) undoUnlessUsed(ctx context.Context, o observe.Claim, plan lifecycle.Plan, back func(context.Context, observe.Claim) error) error {
	if s := o.Observed; s.ClaimWithoutVolume() && s.Promise != nil {
		key := client.ObjectKeyFromObject(o.Root)
		using, err := r.NewProver().LivePodsOfClaim(ctx, key)
		if err != nil {
			return fmt.Errorf("prove that no Pod here waits for claim %s: %w", key, err)
		}
		if s.Placement.PromisePods, err = r.newClaimObserver().PodsBoundHere(ctx, r.HostLive, using); err != nil {
			return err
		}
		if lifecycle.NextPlan(s).Step != plan.Step {
			return nil // the cache lags, and the Pod's event enqueues the claim
		}
	}
	return back(ctx, o)
}

// errCounterpartElsewhere means that live reads of the other members have changed the plan.
var errCounterpartElsewhere = errors.New("another member has, or may have, a leaf claim for the root")

// errMembersUnknown means that this process, which has just become the leader, does not know yet what other
// members have: they may detect that the host was restored, or have volumes that a claim requests.
var errMembersUnknown = errors.New("not all members have been read since this process became the leader")

// rivalVolumesKnown reports whether this process knows which other members have a volume that a claim requests
// by name. A member that is not connected, or whose inventory fails or takes too long, does not count, so
// that it does not delay the recovery of the others (I7).
func (r *reconciler) rivalVolumesKnown(ctx context.Context) (bool, error) {
	if !r.LastRestoreTimes().HostUnknownUntil.IsZero() {
		return false, nil
	}
	if r.Clock.Since(r.linkStarted) >= fencing.MaxFenceReadWait {
		return true, nil
	}
	var all v1alpha1.ClusterRegistrationList
	if err := r.Host.List(ctx, &all, index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the registered members: %w", err)
	}
	return !slices.ContainsFunc(all.Items, func(cr v1alpha1.ClusterRegistration) bool {
		inventory := r.Orphans.OrphanedVolumes(cr.Name)
		return cr.Name != r.Registration && index.ConnectionOf(&cr).Connected && !inventory.Known && inventory.FailureCause == ""
	}), nil
}

// executePlan carries out a plan. If live reads of the other members change it, take carries out the new one.
// A claim that requests a volume by name first waits until it is known which other members have such a volume.
func (r *reconciler) executePlan(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error {
	s := o.Observed
	asks := s != nil && s.Placement != nil && s.Placement.RequestedVolume != nil
	if asks && (plan.Step == lifecycle.None || plan.Step == lifecycle.Place || plan.Step == lifecycle.CreateClaim) {
		if known, err := r.rivalVolumesKnown(ctx); err != nil || !known {
			return cmp.Or(err, errMembersUnknown)
		}
		// The observation may be older than the last of these inventories.
		s.Placement.RivalMembers = r.Orphans.MembersWithSameOrphan(r.Registration, s.Placement.RequestedVolume.Name, client.ObjectKeyFromObject(o.Root))
		plan = r.replanClaim(o)
	}
	err := r.executeStep(ctx, o, plan)
	if errors.Is(err, errCounterpartElsewhere) {
		return r.executeStep(ctx, o, r.replanClaim(o))
	}
	return err
}

// replanClaim plans a step for a claim about which more is known than when it was observed.
func (r *reconciler) replanClaim(o observe.Claim) lifecycle.Plan {
	plan := planForClaim(o)
	if plan.Step != lifecycle.Place {
		r.Backlog.Remove(r.ClusterID, client.ObjectKeyFromObject(o.Root))
	}
	return plan
}

// stepUnlessElsewhere places a claim, or creates its leaf claim. If a restored host may lack the record of
// the claim's placement, or may have an outdated one, it first checks all other members. If one has,
// or may have, its leaf claim, it returns errCounterpartElsewhere; the new plan reports this, or removes the
// outdated record (I3). If another member places the claim after this check, the placement here is
// rejected, because the claim's resourceVersion has changed. Until it is known whether the host was
// restored, it returns errMembersUnknown.
func (r *reconciler) stepUnlessElsewhere(ctx context.Context, o observe.Claim, step states.Step, do func(context.Context, observe.Claim) error) error {
	s, restores := o.Observed, r.LastRestoreTimes()
	if s.PlacementForgettable() && restores.MayPrecedeHostRestore(o.Root) {
		return errMembersUnknown
	}
	s.Placement.HostRestoredAnywhere = restores.LastHostRestore()
	if !s.PlacementMayBeForgotten() {
		return do(ctx, o)
	}
	others, err := r.OtherMembers(ctx, r.Member)
	if err != nil {
		return err
	}
	if s.Placement.Counterparts, err = proof.FindCounterparts(ctx, r.HostID, o.Root, others); err != nil {
		return err
	}
	if planForClaim(o).Step != step {
		return errCounterpartElsewhere
	}
	return do(ctx, o)
}

// placeClaim places the claim in this member. It also starts to measure the provisioning latency,
// unless the claim already has a leaf or a volume.
func (r *reconciler) placeClaim(ctx context.Context, o observe.Claim) error {
	s := o.Observed
	unmade := o.Root.Spec.VolumeName == "" && o.Leaf == nil
	if unmade && s.VolumeNotRequested() && r.reports.WaitOnce(o.Root.UID, o.Root.ResourceVersion) {
		return nil // the PV controller's write to the claim and Xylem's would conflict
	}
	// A claim that recovery reassigned has waited already, so the backlog does not delay it.
	if unmade && !reassignedByRecovery(o.Root) {
		admission := r.Backlog.Admit(r.ClusterID, o.Root)
		if admission.Report {
			r.reports.EventPlacementHeldBack(o.Root, admission)
		}
		if !admission.Admitted {
			return r.reports.ReportProblem(ctx, o, nil) // the backlog enqueues the claim
		}
	}
	begun := r.Clock.Now()
	if err := r.annotateClaim(ctx, o.Root, func(annotations map[string]string) { annotations[v1alpha1.AnnotationPlacedIn] = r.ClusterID }); err != nil {
		return err
	}
	if unmade || o.Leaf == nil && s.ClaimWithoutVolume() && s.Promise != nil {
		r.Latency.BeginMeasurement(o.Root.UID, begun)
	}
	return nil
}

func (r *reconciler) unselectNode(ctx context.Context, o observe.Claim, problem *mirror.Refusal) error {
	r.reports.EventClaimProblem(o.Root, problem)
	return r.annotateClaim(ctx, o.Root, func(annotations map[string]string) { delete(annotations, route.AnnSelectedNode) })
}

func (r *reconciler) annotateClaim(ctx context.Context, before *corev1.PersistentVolumeClaim, change func(map[string]string)) error {
	after := before.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	change(after.Annotations)
	return r.HostWriter.AnnotateClaim(ctx, actor, before, after)
}

// createLeafClaim creates the leaf claim.
func (r *reconciler) createLeafClaim(ctx context.Context, o observe.Claim) error {
	leaf, refusal := volume.LeafClaim(o.Observed)
	if refusal != nil {
		return refusal
	}
	if placed, err := proof.ProvePlacedHere(ctx, r.NewProver(), o.Root); err != nil || !placed {
		return err
	}
	if needed, err := r.proveDiskNeeded(ctx, o); err != nil || !needed {
		return err
	}
	if mirrored, err := r.hasHostVolumeFor(ctx, o.Root); err != nil || mirrored {
		return err // the volume of an earlier leaf claim may be bound to the root (I3)
	}
	leaf, err := r.withAttributesClass(ctx, o, leaf)
	if err != nil {
		return err
	}
	if leaf, err = r.withDataSource(ctx, o, leaf); err != nil || leaf == nil {
		return err
	}
	err = r.MemberWriter.CreateStamped(ctx, actor, leaf)
	if err == nil {
		return r.reports.SetPlacedCondition(ctx, o.Root, nil)
	}
	return r.reportNotCreated(ctx, o, leaf, err)
}

// reportNotCreated reports why a leaf claim cannot be created. A leaf claim that already exists but is
// not in the cache is either Xylem's own, just created, or foreign.
func (r *reconciler) reportNotCreated(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim, err error) error {
	if !apierrors.IsAlreadyExists(err) {
		return r.reports.ReportMemberRejection(ctx, o.Root, "create", err)
	}
	var there corev1.PersistentVolumeClaim
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(leaf), &there); err != nil {
		return fmt.Errorf("read the conflicting claim: %w", err)
	}
	if _, ours := mirror.LeafOriginFromHost(r.HostID, &there); ours {
		return guarded.NewUnseenError(err)
	}
	problem := nameTakenRefusal(&there, o.Root, r.Member)
	if err := r.reports.SetPlacedCondition(ctx, o.Root, problem); err != nil {
		return err
	}
	return problem // no watch reports changes to the conflicting claim, so retry at a limited rate
}

// proveDiskNeeded proves, before a promise's leaf claim is created, that the promise still needs a disk
// here or, if only the leaf claim was lost, still has its disk. It reads the promise live.
func (r *reconciler) proveDiskNeeded(ctx context.Context, o observe.Claim) (bool, error) {
	switch s := o.Observed; {
	case s.ClaimWithoutVolume() && s.Promise != nil:
		return proof.ProvePromisedHere(ctx, r.NewProver(), s.Promise, "")
	case s.Host != nil && hostpv.ReleasesWhenUnused(s.Host):
		return proof.ProvePromisedHere(ctx, r.NewProver(), s.Host, s.Name)
	}
	return true, nil
}

// hasHostVolumeFor reports whether a host PV was created for a root that was observed as unbound and
// will soon be bound. The binding enqueues the root, as does the deletion of that PV.
func (r *reconciler) hasHostVolumeFor(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	if root.Spec.VolumeName != "" {
		return false, nil
	}
	name, err := r.Mirrors.HostVolumeFor(ctx, root)
	return name != "", err
}

// passMetadataAndReport passes changed labels and annotations to a bound leaf claim, and reports the plan's problem. If the
// member rejects them, it reports that, unless the plan has a problem.
func (r *reconciler) passMetadataAndReport(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error {
	_, err := r.passMetadata(ctx, o)
	if err == nil || plan.Report != nil {
		return errors.Join(err, r.reportPlanProblem(ctx, o, plan))
	}
	return r.reports.ReportMemberRejection(ctx, o.Root, "update", err)
}

// passMetadataFirst passes changed labels and annotations before another change, because the member may reject that
// change for a long time. If it rejects the labels, the other change does not wait for them.
func (r *reconciler) passMetadataFirst(ctx context.Context, o observe.Claim, change func(context.Context, observe.Claim) error) error {
	passed, err := r.passMetadata(ctx, o)
	if passed {
		return nil // the leaf claim's event enqueues the claim
	}
	return errors.Join(err, change(ctx, o))
}

// passMetadata passes changed labels and annotations to a bound leaf claim. It reports whether there were any.
func (r *reconciler) passMetadata(ctx context.Context, o observe.Claim) (passed bool, err error) {
	if o.Root == nil || o.Leaf == nil || o.Leaf.Status.Phase != corev1.ClaimBound {
		return false, nil
	}
	drift := pvc.ClaimMetaDriftOf(o.Root, o.Leaf, r.Member)
	if drift.IsEmpty() {
		return false, nil
	}
	after := o.Leaf.DeepCopy()
	drift.ApplyToMeta(&after.ObjectMeta)
	err = r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, after)
	return err == nil, err
}

// expandVolume passes the requested size to the member. The user cannot undo the request, so if the member rejects
// it, grow still passes a changed VolumeAttributesClass. If both fail, it reports only the latter, because
// the two reports would replace each other again and again.
func (r *reconciler) expandVolume(ctx context.Context, o observe.Claim) error {
	to, _ := pvc.LeafStorageRequest(o.Root, o.Leaf)
	err := r.setRequestedSize(ctx, o, to)
	if err == nil {
		r.reports.EventExpansionRequested(o.Root, to)
		return nil
	}
	if pvc.AttributesClassChangeOf(o.Root, o.Leaf) == pvc.AttributesChange {
		if failed := r.modify(ctx, o); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if refusal := (*mirror.Refusal)(nil); errors.As(err, &refusal) {
		return r.reports.SetPlacedCondition(ctx, o.Root, refusal)
	}
	return r.reports.ReportMemberRejection(ctx, o.Root, "grow", err)
}

// setRequestedSize sets the size that a leaf claim requests.
func (r *reconciler) setRequestedSize(ctx context.Context, o observe.Claim, to resource.Quantity) error {
	after := o.Leaf.DeepCopy()
	after.Spec.Resources.Requests[corev1.ResourceStorage] = to
	if refused := fields.QuantitiesOutOfRange(&after.Spec, pvc.ClaimFieldTable.PathPrefix); len(refused) > 0 {
		return mirror.NewRefusal(v1alpha1.ReasonQuantityOutOfRange, "the volume cannot be expanded in a member: %s. Correct spec.resources of the claim", strings.Join(refused, "; "))
	}
	return r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, after)
}

// touchLeafClaim makes the member's PV controller process a leaf claim whose volume now refers to it.
// Otherwise, that controller would process the claim only at its next resync.
func (r *reconciler) touchLeafClaim(ctx context.Context, o observe.Claim) error {
	after := o.Leaf.DeepCopy()
	after.Annotations[v1alpha1.AnnotationVolumeUID] = string(o.Observed.UID)
	return r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, after)
}

// unplaceClaim removes placed-in once the member is proven to have no objects left for the claim. If an
// admin released the claim's promise from the member, only that promise's objects may be left.
func (r *reconciler) unplaceClaim(ctx context.Context, o observe.Claim) error {
	if s := o.Observed; s.ClaimWithoutVolume() && s.Promise != nil && hostpv.IsPromiseReleasedFrom(s.Promise, r.ClusterID) {
		if _, same, err := r.NewProver().ProveHostUnchanged(ctx, s.Promise); err != nil || !same {
			return err
		}
	} else if gone, err := r.proveLeafClaimGone(ctx, o); err != nil || !gone {
		return err
	}
	if mirrored, err := r.hasHostVolumeFor(ctx, o.Root); err != nil || mirrored {
		return err
	}
	if err := r.annotateClaim(ctx, o.Root, func(annotations map[string]string) { delete(annotations, v1alpha1.AnnotationPlacedIn) }); err != nil {
		return err
	}
	r.Latency.DropMeasurement(o.Root.UID)
	return nil
}

// proveLeafClaimGone proves that the member has no leaf claim of the root. A leaf claim that is not in
// the cache yet may be deleted before the cache observes it. No event would report this deletion,
// so proveLeafClaimGone returns an error, and the controller retries.
func (r *reconciler) proveLeafClaimGone(ctx context.Context, o observe.Claim) (bool, error) {
	gone, err := r.NewProver().ProveLeafClaimGone(ctx, o.Root)
	if err == nil && !gone && o.Leaf == nil {
		err = fmt.Errorf("the member has a leaf claim of %s that is not in the cache yet", client.ObjectKeyFromObject(o.Root))
	}
	return gone, err
}

// unlabelPromise removes the member's labels from a promise once the member is proven to have no objects
// left for the claim. First, it removes this member's report: no controller could do so later,
// because none owns the report of a claim that is in no member.
func (r *reconciler) unlabelPromise(ctx context.Context, o observe.Claim) error {
	if gone, err := r.proveLeafClaimGone(ctx, o); err != nil || !gone {
		return err
	}
	if o.PlacedConditionOwnedBy(r.Member) {
		if err := r.reports.SetPlacedCondition(ctx, o.Root, nil); err != nil {
			return err
		}
	}
	return r.HostWriter.PatchOwned(ctx, actor, o.Observed.Promise, hostpv.PromiseWithoutMember(o.Observed.Promise))
}
