package leafpod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
)

// unmetPromise is a claim bound to a promise that this member has and cannot fulfill. The Pod is
// bound before the disk exists, so the scheduler does not run again for it. Only a new Pod
// can be scheduled to another member.
type unmetPromise struct {
	claim   *corev1.PersistentVolumeClaim
	problem *mirror.Refusal
	// timeout is the placement timeout of the promise's class. until is the member's deadline.
	timeout  time.Duration
	deadline time.Time
	// otherClusterIDs contains the cluster IDs of the other members that could run the Pod.
	otherClusterIDs []string
}

// truncationMargin is the maximum by which a time shrinks when it is truncated to whole seconds.
const truncationMargin = time.Second

func (o observed) isUnmetOverdue() bool {
	return o.unmet != nil && !o.now.Before(o.unmet.deadline) && !podstatus.IsPodFinished(o.root) && o.root.DeletionTimestamp == nil
}

// nextUnmetCheck returns when the Pod must be checked again, or 0 if an event enqueues it.
func (o observed) nextUnmetCheck() time.Duration {
	if o.unmet == nil {
		return 0
	}
	return max(0, o.unmet.deadline.Sub(o.now))
}

// decideUnmetFailure fails the Pod. Then root_pod deletes its leaf, and root_pvc deletes the leaf claim.
func (o observed) decideUnmetFailure() decision {
	claim := o.unmet.claim.Name
	return failPod{unmet: claim, status: podstatus.FailedPodStatus(o.root, v1alpha1.ReasonPlacementFailed, fmt.Sprintf(
		"the member does not provision the disk of claim %q: %s. Xylem fails this Pod, so that its owner replaces it and the scheduler can choose another member", claim, o.unmet.problem.Message))}
}

// findUnmetPromise returns the promise that keeps a Pod waiting and that the member cannot fulfill. It
// returns nil if the Pod has no owner that re-creates it. While no other member can run the
// Pod, the deadline is extended. Each Pod gets the whole timeout from its creation.
func (r *reconciler) findUnmetPromise(ctx context.Context, root *corev1.Pod) (*unmetPromise, error) {
	if !r.HasNode(root.Spec.NodeName) || podstatus.IsPodFinished(root) || root.DeletionTimestamp != nil || metav1.GetControllerOf(root) == nil {
		return nil, nil
	}
	for p, err := range r.boundClaimsOf(ctx, root) {
		if err != nil {
			return nil, err
		}
		if !hostpv.IsUnfulfilledPromise(p.volume) || !hostpv.IsUnfulfilledPromiseIn(p.volume, r.ClusterID) {
			continue
		}
		if u := unmetPromiseOf(p.claim, p.volume, root, r.Member); u != nil {
			if u.otherClusterIDs, err = r.otherUsableMembers(ctx, root); err != nil {
				return nil, err
			}
			if len(u.otherClusterIDs) == 0 {
				u.deadline = laterTime(u.deadline, r.Clock.Now().Add(u.timeout)) // Node events do not enqueue the Pod again
			}
			return u, nil
		}
	}
	return nil, nil
}

// unmetPromiseOf evaluates what root_pvc reported on a claim.
func unmetPromiseOf(claim *corev1.PersistentVolumeClaim, promise *corev1.PersistentVolume, root *corev1.Pod, m mirror.Member) *unmetPromise {
	class, err := hostpv.ReadClassParameters(hostpv.ClassOfPromise(promise))
	if err != nil {
		return nil // reflected_class reports why
	}
	problem, since := report.ClaimFailureIn(claim, m.ClusterID)
	if problem == nil {
		return nil
	}
	u := &unmetPromise{claim: claim, problem: problem, timeout: class.PlacementTimeout}
	u.deadline = laterTime(since, root.CreationTimestamp.Time).Add(class.PlacementTimeout + truncationMargin)
	if !u.isAlreadyAttempted(root, m) {
		u.deadline = laterTime(u.deadline, time.Unix(report.AttemptedMembersOf(claim).Until, 0))
	}
	return u
}

func laterTime(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// isAlreadyAttempted reports whether the claim records that this member failed a Pod after this one was
// created. If so, this Pod does not wait for the backoff: it is older than the failed one, or the
// manager stopped after it wrote the record, but before it wrote this Pod's status.
func (u *unmetPromise) isAlreadyAttempted(root *corev1.Pod, m mirror.Member) bool {
	record := report.AttemptedMembersOf(u.claim)
	return record.HasAttempted(m.ClusterID) && root.CreationTimestamp.Unix() < record.Moved
}

// attemptRecord returns the record for the claim when a Pod fails in this member, or false if the claim
// already has it. A round ends when no other member is left, and also when the scheduler has
// selected this member again. The backoff after a round doubles each time, which limits how many
// Pods an owner creates needlessly.
func (u *unmetPromise) attemptRecord(root *corev1.Pod, m mirror.Member, now time.Time) (report.AttemptedMembers, bool) {
	if u.isAlreadyAttempted(root, m) {
		return report.AttemptedMembers{}, false
	}
	record := report.AttemptedMembersOf(u.claim).BeginRound(now)
	again := record.HasAttempted(m.ClusterID)
	record = record.WithFailedMember(m, u.problem)
	record.Moved = now.Unix()
	if again || !slices.ContainsFunc(u.otherClusterIDs, func(id string) bool { return !record.HasAttempted(id) }) {
		record = record.EndRound(now, u.timeout)
	}
	return record, true
}

// recordFailedMember records on the claim that this member failed the Pod.
func (r *reconciler) recordFailedMember(ctx context.Context, o observed) error {
	record, news := o.unmet.attemptRecord(o.root, r.Member, o.now)
	if !news {
		return nil
	}
	text, err := record.AnnotationValue()
	if err != nil {
		return err
	}
	after := o.unmet.claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationTried, text)
	return r.HostWriter.AnnotateClaim(ctx, actor, o.unmet.claim, after)
}

// otherUsableMembers returns the cluster IDs of the other members that could run the Pod with all of
// its claims. Without one, re-creating the Pod does not help.
func (r *reconciler) otherUsableMembers(ctx context.Context, root *corev1.Pod) ([]string, error) {
	members, err := index.MembersWithNodes(ctx, r.Host)
	if err != nil {
		return nil, err
	}
	query, err := r.placementQueryFor(ctx, root)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, v := range placement.Survey(query, members) {
		if v.ClusterID != r.ClusterID && v.Admitted() && v.Schedulable {
			others = append(others, v.ClusterID)
		}
	}
	return others, nil
}

// placementQueryFor asks which members can run the Pod: they reach its volumes, and have the classes of its promises.
func (r *reconciler) placementQueryFor(ctx context.Context, root *corev1.Pod) (placement.Query, error) {
	namespace, err := index.FindNamespace(ctx, r.Host, root.Namespace)
	query := placement.Query{Namespace: namespace, Pods: []corev1.Pod{*root}}
	if err != nil {
		return query, err
	}
	for p, err := range r.boundClaimsOf(ctx, root) {
		if err != nil {
			return query, err
		}
		need := placement.ClaimNeed{Volume: p.volume}
		if hostpv.IsUnfulfilledPromise(p.volume) {
			present, err := index.FindObject[storagev1.StorageClass](ctx, r.Host, index.ClusterScopedKey(p.volume.Spec.StorageClassName))
			if err != nil {
				return query, err
			}
			need.Class = placement.PromisedClass(p.volume, present)
		}
		query.Claims = append(query.Claims, need)
	}
	return query, nil
}

// unmetClaimToRequests enqueues the Pods in this member that wait for a promise it cannot fulfill.
func (r *reconciler) unmetClaimToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !hostpv.IsPromiseName(claim.Spec.VolumeName) || report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced) == nil {
		return nil
	}
	return r.podRequestsOfClaim(ctx, client.ObjectKeyFromObject(claim))
}
