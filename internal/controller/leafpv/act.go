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

	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/mirror/volumesource"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/adoption"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/desired"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// proceed takes the plan's step, or requeues the volume if the step must wait. A member's admin can
// change the capacity of a leaf PV again and again, and many controllers in the host react to each
// change of the host PV. An update that also keeps the data safe does not wait.
func (r *reconciler) proceed(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) (reconcile.Result, error) {
	if plan.By(lifecycle.LeafPV) == lifecycle.UpdateHost && desired.OnlyFollows(s) {
		if wait := r.Root.Delay(s.Host); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	if plan.By(lifecycle.LeafPV) == lifecycle.None {
		return reconcile.Result{RequeueAfter: r.report(ctx, s, plan)}, nil
	}
	return reconcile.Result{}, r.act(ctx, s, plan)
}

// act takes the plan's step.
func (r *reconciler) act(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) error {
	switch step := plan.By(lifecycle.LeafPV); step {
	case lifecycle.Stamp:
		return r.patchLeaf(ctx, s, desired.StampedLeaf(s))
	case lifecycle.Secure:
		return r.patchLeaf(ctx, s, desired.KeptLeaf(s))
	case lifecycle.SetRetain:
		return r.patchLeaf(ctx, s, desired.RetainedLeaf(s))
	case lifecycle.Repoint:
		return r.patchLeaf(ctx, s, desired.RepointedLeaf(s))
	case lifecycle.UpdateHost:
		return r.update(ctx, s)
	case lifecycle.CreateHost:
		return r.create(ctx, s)
	case lifecycle.Import:
		return r.imported(ctx, s)
	case lifecycle.Take:
		return r.take(ctx, s)
	case lifecycle.Adopt:
		return r.adopt(ctx, s)
	case lifecycle.Fulfil:
		return r.fulfil(ctx, s)
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

func (r *reconciler) update(ctx context.Context, s *volume.Observed) error {
	if err := r.Root.Patch(ctx, actor, s.Host, desired.CurrentHost(s)); err != nil {
		return err
	}
	if desired.Rescues(s) {
		r.eventLastClaimLost(s)
	}
	return nil
}

func (r *reconciler) patchLeaf(ctx context.Context, s *volume.Observed, after *corev1.PersistentVolume) error {
	claim := s.Claim
	if s.Holder != nil {
		claim = s.Holder
	}
	return r.Leaf.PatchVolume(ctx, actor, s.Leaf, after, claim)
}

// report reports why a volume is not used, on the claim that could use it or on the admin's host
// PV. It returns when to do so again, or 0.
func (r *reconciler) report(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) time.Duration {
	log := ctrl.LoggerFrom(ctx).WithValues("leaf", s.Name, "root", s.Origin.Root)
	switch {
	case plan.Owner != lifecycle.LeafPV:
	case plan.Phase == lifecycle.Importing && plan.Report != nil:
		return r.warn(s.Host, plan.Report)
	case plan.Phase == lifecycle.Orphaned:
		log.Info("a leaf volume has no root: Xylem keeps its data")
	case plan.Report != nil:
		log.Info("a leaf volume is not used: Xylem keeps its data", "why", plan.Report.Message)
		r.eventUnused(s.Root, plan.Report)
	}
	return 0
}

// adopt creates the host PV of a released volume for the claim that requests it.
func (r *reconciler) adopt(ctx context.Context, s *volume.Observed) error {
	if proven, err := adoption.ReleasedFor(ctx, r.Proof(), s.Successor, s.Leaf); err != nil || !proven {
		return err
	}
	host := hostpv.Mirror(s.Leaf, s.Successor, corev1.PersistentVolumeReclaimRetain, r.Member)
	host.Name = s.Successor.Spec.VolumeName
	if err := r.Root.Create(ctx, actor, host); err != nil {
		return err
	}
	r.eventAdopted(s.Successor, host)
	return nil
}

// fulfil records the leaf PV on its promise if a live read shows that the leaf PV exists with
// policy Retain. The cache may lag and still show an earlier disk of the promise.
func (r *reconciler) fulfil(ctx context.Context, s *volume.Observed) error {
	_, held, err := r.Proof().LeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
		return leaf != nil && leaf.UID == s.UID && leaf.DeletionTimestamp == nil && proof.Retained(leaf)
	})
	if err != nil || !held {
		return err
	}
	after := hostpv.Fulfil(s.Promise, s.Leaf, s.Policy(), r.Member)
	if err := r.Root.Patch(ctx, actor, s.Promise, after); err != nil {
		return err
	}
	r.eventFulfilled(s, after, r.consumers(ctx, s.Root))
	return nil
}

// create creates the host PV, which binds the root, unless another host PV may bind it (I3): the
// volume's leaf claim may be the successor of another one, whose volume was just mirrored. If the
// root already names the host PV, the PV gets policy Retain, because the policy that an admin may
// have set on the earlier PV is unknown.
func (r *reconciler) create(ctx context.Context, s *volume.Observed) error {
	policy := hostpv.Policy(s.Class, s.Policy())
	if s.Root.Spec.VolumeName != "" {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	host := hostpv.Mirror(s.Leaf, s.Root, policy, r.Member)
	host.Name = s.HostName(s.Root)
	if pvc.WantsNew(s.Root) {
		hostpv.RecordProvisioned(host, s.Leaf, s.Claim)
	}
	if err := r.share(ctx, s, host); err != nil {
		return err
	}
	if s.Root.Spec.VolumeName == "" {
		other, end, err := r.Mirrors.Begin(ctx, s.Root, host.Name)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("leaf volume %s is not mirrored: claim %s is about to be bound to volume %s", s.Name, s.Origin.Root, other)
		}
		defer end()
	}
	switch err := r.Root.Create(ctx, actor, host); {
	case apierrors.IsAlreadyExists(err):
		return r.inTheWay(ctx, s, host, err)
	case err != nil:
		return err
	case s.Root.Spec.VolumeName != "":
		r.eventRecreated(s.Root, host)
	default:
		r.eventMirrored(s.Root, host)
	}
	return nil
}

// share makes a new host PV reachable from all members that share the leaf PV's backend. It reads the
// leaf PV live, because the cache drops the attributes that copies need.
func (r *reconciler) share(ctx context.Context, s *volume.Observed, host *corev1.PersistentVolume) error {
	driver, _ := volumesource.Of(s.Leaf)
	backend := r.Rules.BackendFor(driver, s.Leaf.Spec.StorageClassName)
	if backend == "" || !hostpv.Sharable(s.Root.Spec.AccessModes) {
		return nil
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Live, index.Named(s.Name))
	if err != nil {
		return err
	}
	if leaf == nil || leaf.UID != s.UID {
		return fmt.Errorf("volume %s has changed in the member", s.Name)
	}
	if hostpv.Sharable(leaf.Spec.AccessModes) && !hostpv.Share(host, leaf, backend) {
		r.eventNotShared(s.Root, host, backend)
	}
	return nil
}

// inTheWay handles an existing PV that has the host PV's name but was not in the cache. If Xylem
// has just created it, there is nothing to do. Otherwise, Xylem selects another name once the cache
// has the existing PV.
func (r *reconciler) inTheWay(ctx context.Context, s *volume.Observed, host *corev1.PersistentVolume, exists error) error {
	var there corev1.PersistentVolume
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(host), &there); err != nil {
		return fmt.Errorf("read the conflicting volume: %w", err)
	}
	if s.Represents(&there) {
		return settling.Unseen(exists)
	}
	return fmt.Errorf("create volume %s: %w", host.Name, exists)
}
