package clusterregistration

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

// readiness overrides the Ready condition. The zero value does not.
type readiness struct{ reason, message string }

// report writes the status if it has changed, and emits events for the changes.
func (r *Reconciler) report(ctx context.Context, cr *v1alpha1.ClusterRegistration, ready readiness) error {
	state, _ := r.Fleet.State(cr.Name)
	node, err := index.Find[corev1.Node](ctx, r.Client, index.Named(cr.NodeName()))
	if err != nil {
		return err
	}
	orphans := r.Book.Orphans(cr.Name)
	counts, err := r.count(cr)
	if err != nil {
		return err
	}
	// Keep the last count if the current one is not known.
	counts.Orphaned = cr.Status.Volumes.Orphaned
	if orphans.Known {
		counts.Orphaned = bounded(len(orphans.Found))
	}
	reflected, err := r.reflected(ctx, cr)
	if err != nil {
		return err
	}
	before := cr.DeepCopy()
	cr.Status.NodeName = cr.NodeName()
	cr.Status.ObservedGeneration = cr.Generation
	cr.Status.Volumes = counts
	if orphans.Known {
		cr.Status.Orphans = listed(orphans.Found, cr.Status.Orphans, metav1.NewTime(r.Clock.Now()))
	}
	if state.Connected {
		cr.Status.KubernetesVersion = state.Identity.Version
	}
	cr.Status.TokenExpires = nil
	if !state.TokenExpires.IsZero() {
		cr.Status.TokenExpires = ptr.To(metav1.NewTime(state.TokenExpires))
	}
	all := append(conditions(state, nodes.ReadyCondition(node, cr), ready), accounted(orphans, &cr.Status), progressing(r.Book.Stuck(cr.Name)))
	all = append(all, reflected...)
	snapshots, err := r.snapshots(ctx, cr)
	if err != nil {
		return err
	}
	all = append(all, snapshots...)
	admitted, err := r.namespacesAdmitted(ctx, cr)
	if err != nil {
		return err
	}
	all = append(all, admitted...)
	if !cr.Spec.Storage.Reflect.Enabled {
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionClassesReflected)
	}
	all = append(all, tokenFresh(state, &cr.Status)...)
	if state.Policy != nil {
		all = append(all, policyEnforced(*state.Policy))
	}
	setConditions(cr, all)
	if equality.Semantic.DeepEqual(before.Status, cr.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return fmt.Errorf("write the status of registration %s: %w", cr.Name, err)
	}
	r.announceAll(before, cr, orphans.Found)
	return nil
}

// announceAll emits events for what has changed in the status.
func (r *Reconciler) announceAll(before, cr *v1alpha1.ClusterRegistration, orphans []account.Orphan) {
	r.announce(before, cr)
	r.announceOrphans(before, cr, orphans)
	r.announceSnapshots(before, cr)
	r.announceStuck(before, cr)
	r.announceWaiting(before, cr)
	r.announceReflection(before, cr)
	r.announceNamespaces(before, cr)
}

// messageLimit is the maximum size of a condition's message in bytes. The API server rejects
// a status with a message over 32 KiB, and some messages contain text from a member.
const messageLimit = 4 << 10

// setConditions sets conditions with messages that the API server accepts and terminals can
// show safely.
func setConditions(cr *v1alpha1.ClusterRegistration, all []metav1.Condition) {
	for _, condition := range all {
		condition.ObservedGeneration = cr.Generation
		condition.Message = sanitize.Plain(condition.Message, messageLimit)
		// The errors of an unreachable member differ at each attempt, so keep the first one.
		if was := meta.FindStatusCondition(cr.Status.Conditions, condition.Type); was != nil && was.Status == condition.Status &&
			was.Reason == condition.Reason && condition.Reason == v1alpha1.ReasonUnreachable {
			condition.Message = was.Message
		}
		meta.SetStatusCondition(&cr.Status.Conditions, condition)
	}
}

// tokenFresh returns the TokenFresh condition, and none if the manager does not renew the token.
func tokenFresh(state fleet.State, status *v1alpha1.ClusterRegistrationStatus) []metav1.Condition {
	switch {
	case state.Renewal == nil:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionTokenFresh)
		return nil
	case state.Renewal.Trouble != "":
		return []metav1.Condition{{Type: v1alpha1.ConditionTokenFresh, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonTokenNotRenewed, Message: state.Renewal.Trouble}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionTokenFresh, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonTokenRenewed, Message: "the manager renews its token in the member well before it expires"}}
}

// conditions returns the main conditions of a registration.
func conditions(state fleet.State, nodeReady metav1.Condition, ready readiness) []metav1.Condition {
	connected := metav1.Condition{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected,
		Message: fmt.Sprintf("cluster %s, Kubernetes %s", state.Identity.ClusterID, state.Identity.Version)}
	switch {
	case state.Connected && state.Problem != nil: // deletions are suspended
		connected.Reason, connected.Message = state.Problem.Reason, state.Problem.Message
	case !state.Connected && state.Problem != nil:
		connected.Status, connected.Reason, connected.Message = metav1.ConditionFalse, state.Problem.Reason, state.Problem.Message
	case !state.Connected:
		connected.Status, connected.Reason, connected.Message = metav1.ConditionFalse, v1alpha1.ReasonConnecting, "Xylem is connecting to the member"
	}

	synced := metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSynced,
		Message: "the member's objects are cached, and its controllers run"}
	switch {
	case !state.Connected:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, v1alpha1.ReasonNotConnected, "the member is not connected: see the Connected condition"
	case !state.Synced:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, v1alpha1.ReasonSyncing, "Xylem is reading the member's objects"
	}

	sum := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "the member accepts Pods and claims of the host"}
	for _, part := range []metav1.Condition{connected, synced, nodeReady} {
		if part.Status != metav1.ConditionTrue {
			sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, part.Reason, part.Message
			break
		}
	}
	if ready.reason != "" {
		sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, ready.reason, ready.message
	}
	return []metav1.Condition{connected, nodeReady, synced, sum}
}

// count counts the volumes of a member in the host, except for orphans, which package account
// counts.
func (r *Reconciler) count(cr *v1alpha1.ClusterRegistration) (v1alpha1.VolumeCounts, error) {
	var counts v1alpha1.VolumeCounts
	cluster := cr.Status.ClusterID
	if cluster == "" {
		return counts, nil
	}
	owner := route.Owner{NodeName: cr.NodeName(), ClusterID: cluster}
	err := errors.Join(
		r.Objects.Each(owner, &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Annotations[v1alpha1.AnnotationPlacedIn] == cluster && claim.Spec.VolumeName == "" {
				counts.Pending++
			}
		}),
		r.Objects.Each(owner, &corev1.PersistentVolume{}, metav1.NamespaceAll, func(obj client.Object) {
			if pv, ok := obj.(*corev1.PersistentVolume); ok {
				tally(&counts, pv, cluster)
			}
		}))
	if err != nil {
		return counts, fmt.Errorf("count the volumes of registration %s: %w", cr.Name, err)
	}
	return counts, nil
}

// tally counts a PV of the host if a member has its volume or must provision it.
func tally(counts *v1alpha1.VolumeCounts, pv *corev1.PersistentVolume, cluster string) {
	in, _, _, made := hostpv.LeafOf(pv)
	promised, released := hostpv.IsPromiseIn(pv, cluster), hostpv.Ended(pv)
	switch {
	case promised && released:
		counts.Deleting++
	case promised:
		counts.Pending++
	case !made || in != cluster:
	case pv.DeletionTimestamp != nil, released && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		counts.Deleting++
	case pv.Status.Phase == corev1.VolumeBound:
		counts.Bound++
	}
}

func bounded(n int) int32 { return int32(min(n, 1<<30)) } //nolint:gosec // capped in the same line
