package leafpv

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// proceedWithPlan takes the plan's step, or requeues the volume if the step must wait. A member's admin can
// change the capacity of a leaf PV again and again, and many controllers in the host react to each
// change of the host PV. An update that also keeps the data safe does not wait.
func (r *reconciler) proceedWithPlan(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) (reconcile.Result, error) {
	if plan.StepOwnedBy(lifecycle.LeafPV) == lifecycle.UpdateHost && volume.OnlyFollowsMember(s) {
		if wait := r.HostWriter.AllowOrDelayChange(s.Host); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	if wait, err := r.delayUntilNodeReaches(ctx, s, plan); err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	if plan.StepOwnedBy(lifecycle.LeafPV) == lifecycle.None {
		return reconcile.Result{RequeueAfter: r.reportPlanProblem(ctx, s, plan)}, nil
	}
	return reconcile.Result{}, r.executeStep(ctx, s, plan)
}

// executeStep takes the plan's step.
func (r *reconciler) executeStep(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) error {
	switch step := plan.StepOwnedBy(lifecycle.LeafPV); step {
	case lifecycle.Stamp:
		return r.patchLeafVolume(ctx, s, volume.StampedLeafVolume(s))
	case lifecycle.Secure:
		return r.patchLeafVolume(ctx, s, volume.SecuredLeafVolume(s))
	case lifecycle.SetRetain:
		return r.patchLeafVolume(ctx, s, volume.RetainedLeafVolume(s))
	case lifecycle.Repoint:
		return r.patchLeafVolume(ctx, s, volume.RepointedLeafVolume(s))
	case lifecycle.UpdateHost:
		return r.updateHostVolume(ctx, s)
	case lifecycle.CreateHost:
		return r.createHostVolume(ctx, s)
	case lifecycle.Import:
		return r.recordImport(ctx, s)
	case lifecycle.Take:
		return r.takeLeafVolume(ctx, s)
	case lifecycle.Adopt:
		return r.adoptReleasedVolume(ctx, s)
	case lifecycle.Fulfil:
		return r.fulfilPromise(ctx, s)
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

func (r *reconciler) updateHostVolume(ctx context.Context, s *volume.Observed) error {
	if err := r.HostWriter.PatchOwned(ctx, actor, s.Host, volume.CurrentHostVolume(s)); err != nil {
		return err
	}
	if volume.MustRetainForLostClaim(s) {
		r.eventLastClaimLost(s)
	}
	return nil
}

func (r *reconciler) patchLeafVolume(ctx context.Context, s *volume.Observed, after *corev1.PersistentVolume) error {
	claim := s.LeafClaim
	if s.Holder != nil {
		claim = s.Holder
	}
	return r.MemberWriter.PatchLeafVolume(ctx, actor, s.Leaf, after, claim)
}

// reportPlanProblem reports why a volume is not used, on the claim that could use it or on the admin's host
// PV. It returns when to do so again, or 0.
func (r *reconciler) reportPlanProblem(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) time.Duration {
	log := ctrl.LoggerFrom(ctx).WithValues("leaf", s.Name, "root", s.Origin.Root)
	switch {
	case plan.Owner != lifecycle.LeafPV:
	case plan.Phase == lifecycle.Importing && plan.Report != nil:
		return r.warnOnHostVolume(s.Host, plan.Report)
	case plan.Phase == lifecycle.Orphaned:
		log.Info("a leaf volume has no root: Xylem keeps its data")
	case plan.Report != nil:
		log.Info("a leaf volume is not used: Xylem keeps its data", "why", plan.Report.Message)
		r.emitVolumeNotUsed(s.Root, plan.Report)
	}
	return 0
}

// adoptReleasedVolume creates the host PV of a released volume for the claim that requests it.
func (r *reconciler) adoptReleasedVolume(ctx context.Context, s *volume.Observed) error {
	if proven, err := proof.ProveLeafReleasedFor(ctx, r.NewProver(), s.Successor, s.Leaf); err != nil || !proven {
		return err
	}
	host := hostpv.TranslateVolume(s.Leaf, s.Successor, corev1.PersistentVolumeReclaimRetain, r.Member)
	host.Name = s.Successor.Spec.VolumeName
	if err := r.HostWriter.CreateOwned(ctx, actor, host); err != nil {
		return err
	}
	r.emitVolumeAdopted(s.Successor, host)
	return nil
}

// fulfilPromise records the leaf PV on its promise if a live read shows that the leaf PV exists with
// policy Retain. The cache may lag and still show an earlier disk of the promise.
func (r *reconciler) fulfilPromise(ctx context.Context, s *volume.Observed) error {
	_, held, err := r.NewProver().ProveLeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
		return leaf != nil && leaf.UID == s.UID && leaf.DeletionTimestamp == nil && proof.IsLeafRetained(leaf)
	})
	if err != nil || !held {
		return err
	}
	after := hostpv.FulfillPromise(s.Promise, s.Leaf, s.OriginalReclaimPolicy(), r.Member)
	if err := r.HostWriter.PatchOwned(ctx, actor, s.Promise, after); err != nil {
		return err
	}
	r.emitPromiseFulfilled(s, after, r.consumersInMember(ctx, s.Root))
	return nil
}

// createHostVolume creates the host PV, which binds the root, unless another host PV may bind it (I3): the
// volume's leaf claim may be the successor of another one, whose volume was just mirrored. If the
// root already names the host PV, the PV gets policy Retain, because the policy that an admin may
// have set on the earlier PV is unknown.
func (r *reconciler) createHostVolume(ctx context.Context, s *volume.Observed) error {
	policy := hostpv.HostReclaimPolicy(s.Class, s.OriginalReclaimPolicy())
	if s.Root.Spec.VolumeName != "" {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	host := hostpv.TranslateVolume(s.Leaf, s.Root, policy, r.Member)
	host.Name = s.HostVolumeName(s.Root)
	if pvc.RequiresNewVolume(s.Root) {
		hostpv.RecordProvisioned(host, s.Leaf, s.LeafClaim)
	}
	if err := r.shareHostVolume(ctx, s, host); err != nil {
		return err
	}
	if s.Root.Spec.VolumeName == "" {
		other, end, err := r.Mirrors.BeginCreation(ctx, s.Root, host.Name)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("leaf volume %s is not mirrored: claim %s is about to be bound to volume %s", s.Name, s.Origin.Root, other)
		}
		defer end()
	}
	switch err := r.HostWriter.CreateOwned(ctx, actor, host); {
	case apierrors.IsAlreadyExists(err):
		return r.handleConflictingVolume(ctx, s, host, err)
	case err != nil:
		return err
	case s.Root.Spec.VolumeName != "":
		r.emitVolumeRecreated(s.Root, host)
	default:
		r.emitVolumeMirrored(s.Root, host)
	}
	return nil
}

// shareHostVolume makes a new host PV reachable from all members that share the leaf PV's backend. It reads the
// leaf PV live, because the cache drops the attributes that copies need.
func (r *reconciler) shareHostVolume(ctx context.Context, s *volume.Observed, host *corev1.PersistentVolume) error {
	driver, _ := mirror.VolumeSourceOf(s.Leaf)
	backend := r.Rules.BackendForClass(driver, s.Leaf.Spec.StorageClassName)
	if backend == "" || !hostpv.AreAccessModesSharable(s.Root.Spec.AccessModes) {
		return nil
	}
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, r.Live, index.ClusterScopedKey(s.Name))
	if err != nil {
		return err
	}
	if leaf == nil || leaf.UID != s.UID {
		return fmt.Errorf("volume %s has changed in the member", s.Name)
	}
	if hostpv.AreAccessModesSharable(leaf.Spec.AccessModes) && !hostpv.ShareVolume(host, leaf, backend) {
		r.emitVolumeNotShared(s.Root, host, backend)
	}
	return nil
}

// handleConflictingVolume handles an existing PV that has the host PV's name but was not in the cache. If Xylem
// has just created it, there is nothing to do. Otherwise, Xylem selects another name once the cache
// has the existing PV.
func (r *reconciler) handleConflictingVolume(ctx context.Context, s *volume.Observed, host *corev1.PersistentVolume, exists error) error {
	var there corev1.PersistentVolume
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(host), &there); err != nil {
		return fmt.Errorf("read the conflicting volume: %w", err)
	}
	if s.RepresentedBy(&there) {
		return guarded.NewUnseenError(exists)
	}
	return fmt.Errorf("create volume %s: %w", host.Name, exists)
}
