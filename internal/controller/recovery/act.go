package recovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// exhaustedDuration is how long Xylem publishes less capacity after a driver has run out of it, unless
// the member reports its capacity again. It is long enough for other claims to go elsewhere, and
// short enough that freed space does not stay unused.
const exhaustedDuration = 5 * time.Minute

// capacityCheckDelay is the delay until Xylem checks whether the lower capacity is published. The watch
// usually reports it earlier.
const capacityCheckDelay = time.Second

func (r *reconciler) executeDecision(ctx context.Context, o observed, d decision) (reconcile.Result, error) {
	switch d.(type) {
	case moveClaims, freeClaims:
		if still, err := r.recheckStrandedLive(ctx, o); err != nil || !still {
			return requeueAfter(o.Claim.Timeout), err
		}
	}
	switch d := d.(type) {
	case nothing:
		return requeueAfter(d.Again), nil
	case removeRecords:
		return reconcile.Result{}, r.annotateClaim(ctx, o.Claim.Root, func(annotations map[string]string) {
			delete(annotations, v1alpha1.AnnotationSteeredTo)
			delete(annotations, v1alpha1.AnnotationTried)
		})
	case lowerCapacity:
		r.recordLackOfCapacity(o)
		return requeueAfter(capacityCheckDelay), nil
	case moveClaims:
		return reconcile.Result{}, r.moveClaims(ctx, o, d)
	case freeClaims:
		return reconcile.Result{}, r.freeClaims(ctx, o, d)
	case recordNoCandidate:
		return requeueAfter(o.Claim.Timeout), r.recordNoOtherMember(ctx, o, d)
	}
	return reconcile.Result{}, fmt.Errorf("unknown decision %T", d)
}

// recheckStrandedLive checks with live reads of the Pods that a claim that looks stranded still is. The
// scheduler nominates a Pod before it selects the claim's node, but the caches may show these writes
// in another order. It returns true for a claim that is reassigned for another reason.
func (r *reconciler) recheckStrandedLive(ctx context.Context, o observed) (bool, error) {
	if _, stranded := o.StrandedSince(); !stranded {
		return true, nil
	}
	pods := o.Pods
	o.Pods = nil
	for i := range pods {
		live, err := index.FindObject[corev1.Pod](ctx, r.HostLive, client.ObjectKeyFromObject(&pods[i]))
		if err != nil {
			return false, fmt.Errorf("read Pod %s: %w", client.ObjectKeyFromObject(&pods[i]), err)
		}
		if live != nil && live.UID == pods[i].UID && podWaitsForScheduler(live) {
			o.Pods = append(o.Pods, *live)
		}
	}
	_, stranded := o.StrandedSince()
	return stranded, nil
}

// recordLackOfCapacity records that this member lacks capacity for the claim, so that less is published for the
// claim's class.
func (r *reconciler) recordLackOfCapacity(o observed) {
	memberClass, _ := r.PlacementMember().StorageClassFor(o.Claim.Class)
	r.Exhausted.RecordRejectedSize(memberClass, o.Claim.Root.Spec.Resources.Requests[corev1.ResourceStorage], o.Now.Add(exhaustedDuration))
}

// observeCapacity records that the driver has capacity after all if a claim that waited here now
// has its volume. A claim that has had its volume for longer proves nothing about the current
// capacity.
func (r *reconciler) observeCapacity(o observed) {
	if o.Claim == nil || o.Claim.Class == nil || o.Claim.Root.Annotations[v1alpha1.AnnotationPlacedIn] != r.ClusterID {
		return
	}
	root := o.Claim.Root
	if root.Spec.VolumeName == "" {
		r.waitedHere.Add(root.UID, struct{}{})
		return
	}
	if _, waited := r.waitedHere.Get(root.UID); waited {
		r.waitedHere.Remove(root.UID)
		memberClass, _ := r.PlacementMember().StorageClassFor(o.Claim.Class)
		r.Exhausted.RecordCreatedSize(memberClass, root.Spec.Resources.Requests[corev1.ResourceStorage])
	}
}

// moveClaims reassigns claims to another member if none of them has a volume here.
func (r *reconciler) moveClaims(ctx context.Context, o observed, d moveClaims) error {
	moved, err := r.leaveMember(ctx, d.Claims, d.Attempted, func(annotations map[string]string) {
		annotations[route.AnnSelectedNode] = d.To.Name
		annotations[v1alpha1.AnnotationSteeredTo] = d.To.Name
	})
	if moved && d.Why != nil {
		r.emitPlacementMoved(o, d)
	}
	return err
}

// freeClaims lets the scheduler select among all members again.
func (r *reconciler) freeClaims(ctx context.Context, o observed, d freeClaims) error {
	freed, err := r.leaveMember(ctx, d.Claims, d.Attempted, func(annotations map[string]string) {
		delete(annotations, route.AnnSelectedNode)
		delete(annotations, v1alpha1.AnnotationSteeredTo)
	})
	if freed {
		r.eventRoundEnded(o, d)
	}
	return err
}

// leaveMember changes the claims' annotations, and records the attempted members, if live reads prove
// that none of the claims has a volume in this member.
func (r *reconciler) leaveMember(ctx context.Context, claims []observedClaim, tried report.AttemptedMembers, change func(map[string]string)) (bool, error) {
	for _, c := range claims {
		if proven, err := r.NewProver().ProveUnprovisioned(ctx, c.Root); err != nil || !proven {
			return false, err
		}
	}
	err := r.recordAttempts(ctx, claims, tried, change)
	return err == nil, err
}

func (r *reconciler) recordNoOtherMember(ctx context.Context, o observed, d recordNoCandidate) error {
	if err := r.recordAttempts(ctx, d.Claims, d.Attempted, func(map[string]string) {}); err != nil {
		return err
	}
	r.emitNoOtherMember(o, d)
	return nil
}

// recordAttempts records the attempted members on the claims, and applies change to their other annotations.
func (r *reconciler) recordAttempts(ctx context.Context, claims []observedClaim, tried report.AttemptedMembers, change func(map[string]string)) error {
	text, err := tried.AnnotationValue()
	if err != nil {
		return err
	}
	for _, c := range claims {
		if err := r.annotateClaim(ctx, c.Root, func(annotations map[string]string) {
			annotations[v1alpha1.AnnotationTried] = text
			change(annotations)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) annotateClaim(ctx context.Context, before *corev1.PersistentVolumeClaim, change func(map[string]string)) error {
	after := before.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	change(after.Annotations)
	return r.HostWriter.AnnotateClaim(ctx, actor, before, after)
}
