package rootpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

func (r *reconciler) executeDecision(ctx context.Context, o lifecycle.Observed, d lifecycle.Decision) error {
	switch d := d.(type) {
	case lifecycle.Nothing:
		return r.reportUnpushed(ctx, o.Root, d.Problem)
	case lifecycle.RepeatProblem:
		return r.reportPodProblem(ctx, o.Root, r.reporterForClaim(d.Claim), d.Problem)
	case lifecycle.AwaitReferences:
		return r.reportUnpushed(ctx, o.Root, d.Problem)
	case lifecycle.MarkCopying:
		return r.setNotPushedCondition(ctx, o.Root, r.reporterForClaim(""), v1alpha1.ReasonReferenceAwaited, copyingMessage(d.Objects, r.Registration))
	case lifecycle.CopyVolume:
		return r.ensureVolumeCopy(ctx, o, d)
	case lifecycle.CreateLeaf:
		return r.createLeafPod(ctx, o)
	case lifecycle.MarkPushed:
		return r.markRootPushed(ctx, o)
	case lifecycle.MarkWithdrawn:
		return r.markRootWithdrawn(ctx, o)
	case lifecycle.ChooseAgain:
		return r.letSchedulerChooseAgain(ctx, o, d.Claim)
	case lifecycle.MarkAwaiting:
		return r.setNotPushedCondition(ctx, o.Root, r.reporterForClaim(""), v1alpha1.ReasonVolumeAwaited, fmt.Sprintf("waiting for the volume of claim %q in member %q", d.Claim, r.Registration))
	case lifecycle.UpdateLeaf:
		return r.updateLeafPod(ctx, o, d)
	case lifecycle.AddDebugContainers:
		return r.addDebugContainers(ctx, o)
	case lifecycle.ResizeLeaf:
		return r.resizeLeafPod(ctx, o, d)
	case lifecycle.RemoveLeaf:
		return r.removeLeafPod(ctx, o, d)
	case lifecycle.FinishRoot:
		return r.finishRootPod(ctx, o.Root)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// createLeafPod creates the leaf Pod if live reads confirm the decision. An existing Pod that is not
// in the cache is either a new leaf or a foreign Pod.
func (r *reconciler) createLeafPod(ctx context.Context, o lifecycle.Observed) error {
	if unmarked, err := r.proveDisksUnmarked(ctx, o); err != nil || !unmarked {
		return err
	}
	root, leaf, err := r.recheckCreateLive(ctx, o)
	if err != nil || leaf == nil {
		return err
	}
	err = r.MemberWriter.CreateStamped(ctx, actor, leaf)
	if err == nil {
		r.emitFieldsLeftOut(root)
		return nil // the leaf's event enqueues the Pod, which is then marked as pushed
	}
	if !apierrors.IsAlreadyExists(err) {
		return r.reportMemberRejection(ctx, root, err)
	}
	var there corev1.Pod
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(leaf), &there); err != nil {
		return fmt.Errorf("read the existing Pod: %w", err)
	}
	if _, ours := mirror.LeafOriginFromHost(r.HostID, &there); ours {
		return nil
	}
	problem := mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a Pod \"%s/%s\" that Xylem did not create and does not change. Use another name, or ask the member's admin to delete that Pod", r.Registration, leaf.Namespace, leaf.Name)
	if err := r.reportUnpushed(ctx, root, problem); err != nil {
		return err
	}
	return problem // the foreign Pod is not watched, so retry with backoff
}

// ensureVolumeCopy takes the next step towards a copy of a claim's shared volume, and reports on the Pod
// why there is none yet.
func (r *reconciler) ensureVolumeCopy(ctx context.Context, o lifecycle.Observed, d lifecycle.CopyVolume) error {
	problem, err := r.Sharer.EnsureCopy(ctx, actor, d.Claim, d.Volume)
	if o.Leaf != nil {
		return err // the leaf's status reports that its claim is missing
	}
	if err != nil || problem != nil {
		return errors.Join(err, r.reportUnpushed(ctx, o.Root, problem))
	}
	return r.executeDecision(ctx, o, o.AwaitVolumeOf(d.Claim))
}

// recheckCreateLive decides again with a live read of the root. In a stale cache, a Pod that ran,
// finished or was replaced may look as if it still had to be pushed, and would then run twice. A
// nil leaf means that there is nothing to create and the cache will catch up.
func (r *reconciler) recheckCreateLive(ctx context.Context, o lifecycle.Observed) (root, leaf *corev1.Pod, err error) {
	live, err := r.readRootPodLive(ctx, o.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("prove that Pod %s has not run yet: %w", client.ObjectKeyFromObject(o.Root), err)
	}
	if live == nil {
		return nil, nil, nil
	}
	if len(refs.ReferencesOfPod(live)) > 0 || r.Rules.RestrictsNamespaces() {
		if namespace, err := index.FindObject[corev1.Namespace](ctx, r.HostLive, index.ClusterScopedKey(live.Namespace)); err != nil || namespace == nil || namespace.UID != o.Copies.NamespaceUID {
			return nil, nil, err // the copies and labels belong to an earlier namespace; the new namespace's event enqueues the Pod
		}
	}
	o.Root = live
	if d, still := lifecycle.NextDecision(o).(lifecycle.CreateLeaf); still {
		return live, d.Leaf, nil
	}
	return nil, nil, nil
}

// letSchedulerChooseAgain removes selected-node from a claim of a Pod whose nomination the scheduler has lost. The
// scheduler, which waits for the claim's volume, checks this annotation each second, and chooses again
// (volumeBinder.checkBindings). Xylem first gives it the time for another attempt of its own.
func (r *reconciler) letSchedulerChooseAgain(ctx context.Context, o lifecycle.Observed, claim *corev1.PersistentVolumeClaim) error {
	if r.news.StateDuration(string(o.Root.UID)+"//nomination", o.Root.ResourceVersion+"/"+claim.ResourceVersion) < nominationGrace {
		return nil
	}
	live, err := r.readRootPodLive(ctx, o.Root)
	if err != nil || live == nil || live.Spec.NodeName != "" || !podstatus.NominationLost(live) {
		return err
	}
	after := claim.DeepCopy()
	delete(after.Annotations, route.AnnSelectedNode)
	if err := r.HostWriter.AnnotateClaim(ctx, actor, claim, after); err != nil {
		return err
	}
	r.Recorder.Eventf(live, nil, corev1.EventTypeNormal, v1alpha1.ReasonWithdrawn, "ChooseAgain",
		"Xylem removed the annotation selected-node from claim %q, so that the scheduler chooses again: its last attempt failed, and it no longer shows which node it chose", claim.Name)
	return nil
}

// reportMemberRejection reports to the user why the member's API server rejects a Pod, for example
// because of a quota or Pod Security. It returns the error for a retry with backoff.
func (r *reconciler) reportMemberRejection(ctx context.Context, root *corev1.Pod, err error) error {
	problem := report.MemberWriteRefusal(r.Registration, "create", "the Pod", err)
	if problem == nil {
		return err
	}
	if reportErr := r.reportUnpushed(ctx, root, problem); reportErr != nil {
		return reportErr
	}
	return err
}

// updateLeafPod patches the leaf. If the member rejects the patch, the leaf still runs, so the root stays
// pushed, and an event reports the rejection. The error causes a retry with backoff, because no
// watch shows when an admin changes the member's policy.
func (r *reconciler) updateLeafPod(ctx context.Context, o lifecycle.Observed, d lifecycle.UpdateLeaf) error {
	err := r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, podspec.ApplyPodDrift(o.Leaf, d.Drift))
	key := string(o.Root.UID)
	if err == nil {
		r.news.ForgetState(key)
		return nil
	}
	if problem := report.PodUpdateRefusal(r.Registration, err); problem != nil {
		if due, _ := r.news.EventDue(key, problem.Message); due {
			r.emitPodProblem(o.Root, problem)
		}
	}
	return err
}

func (r *reconciler) removeLeafPod(ctx context.Context, o lifecycle.Observed, d lifecycle.RemoveLeaf) error {
	if d.RootGone {
		// After a restore of the host, a missing root proves nothing, because the host may have lost the
		// roots of running Pods. After a restore of the member alone, a missing root is proof: the
		// restored member may run Pods whose roots are gone.
		if err := r.CheckNotSuspended(); err != nil && r.LastRestoreTimes().HostUnconfirmed {
			return err
		}
		root, err := index.FindObject[corev1.Pod](ctx, r.HostLive, o.Origin.Root)
		if err != nil {
			return fmt.Errorf("prove that Pod %s is gone: %w", o.Origin.Root, err)
		}
		if root != nil && root.UID == o.Origin.UID {
			return nil // the cache was stale
		}
	}
	if alive := o.Root != nil && o.Root.DeletionTimestamp == nil && !d.RootGone; alive {
		if still, err := r.recheckRemoveLive(ctx, o); err != nil || !still {
			return err
		}
	}
	grace := d.Grace
	if grace == nil {
		grace = o.Leaf.Spec.TerminationGracePeriodSeconds
	}
	if err := r.MemberWriter.DeleteStamped(ctx, o.Leaf, guarded.GracePeriodOption(grace)); client.IgnoreNotFound(err) != nil {
		return err
	}
	if o.Root != nil && o.Root.DeletionTimestamp == nil && !d.RootGone {
		r.emitLeafPodWithdrawn(o.Root, d.Why)
	}
	return nil
}

// recheckRemoveLive decides again with live reads of the root, its leaf and its claims, and reports
// whether the leaf must still be removed. A cache that was filled from a stale API server may lack
// a claim, or may show a finished leaf as running.
func (r *reconciler) recheckRemoveLive(ctx context.Context, o lifecycle.Observed) (bool, error) {
	var err error
	if podstatus.IsPodFinished(o.Root) {
		if o.Leaf, err = r.readLeafPodLive(ctx, o.Leaf); err != nil || o.Leaf == nil {
			return false, err
		}
	}
	if exists, err := r.observeRootLive(ctx, &o); err != nil || !exists {
		return false, err
	}
	if o.OtherNodes, err = findOtherNodes(ctx, r.HostLive, o); err != nil {
		return false, err
	}
	_, still := lifecycle.NextDecision(o).(lifecycle.RemoveLeaf)
	return still, nil
}

// observeRootLive replaces the root, its claims and their volumes by what the host has now. It returns false
// if the host no longer has the root, or is deleting it: the cache will catch up.
func (r *reconciler) observeRootLive(ctx context.Context, o *lifecycle.Observed) (bool, error) {
	root, err := r.readRootPodLive(ctx, o.Root)
	if err != nil || root == nil || root.DeletionTimestamp != nil {
		return false, err
	}
	o.Root, o.Claims = root, slices.Clone(o.Claims)
	for i := range o.Claims {
		c := &o.Claims[i]
		key := types.NamespacedName{Namespace: o.Root.Namespace, Name: c.Name}
		if c.Root, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, r.HostLive, key); err != nil {
			return false, err
		}
		if c.Volume, err = readBoundVolume(ctx, r.HostLive, c.Root); err != nil {
			return false, err
		}
	}
	return true, nil
}

// readRootPodLive reads a root live. It returns nil if the host no longer has it.
func (r *reconciler) readRootPodLive(ctx context.Context, cached *corev1.Pod) (*corev1.Pod, error) {
	live, err := index.FindObject[corev1.Pod](ctx, r.HostLive, client.ObjectKeyFromObject(cached))
	if err != nil || live == nil || live.UID != cached.UID {
		return nil, err
	}
	return live, nil
}

// readLeafPodLive reads a leaf live. It returns nil if the member no longer has it.
func (r *reconciler) readLeafPodLive(ctx context.Context, cached *corev1.Pod) (*corev1.Pod, error) {
	live, _, err := index.FindStamped[corev1.Pod](ctx, r.Live, r.HostID, client.ObjectKeyFromObject(cached))
	if err != nil || live == nil || live.UID != cached.UID {
		return nil, err
	}
	return live, nil
}

// finishRootPod completes the deletion of the root, as its kubelet would, after a live read proves
// that it has no leaf in the member.
func (r *reconciler) finishRootPod(ctx context.Context, root *corev1.Pod) error {
	if err := r.HostWriter.CheckNotOverwritten(root); err != nil {
		return err
	}
	if gone, err := r.NewProver().ProveLeafPodGone(ctx, root); err != nil || !gone {
		return err // the cache will catch up
	}
	return client.IgnoreNotFound(r.HostWriter.FinishPodDeletion(ctx, root))
}

// reportUnpushed reports a problem of the Pod in this member. It does nothing if problem is nil.
func (r *reconciler) reportUnpushed(ctx context.Context, root *corev1.Pod, problem *mirror.Refusal) error {
	if problem == nil {
		return nil
	}
	return r.reportPodProblem(ctx, root, r.reporterForClaim(""), problem)
}

// reportPodProblem sets the root's Pushed condition to the problem, and emits an event if the problem is new.
func (r *reconciler) reportPodProblem(ctx context.Context, root *corev1.Pod, by mirror.Reporter, problem *mirror.Refusal) error {
	if shown := report.PodConditionProblem(root, v1alpha1.PodPushed); shown != nil && *shown == *problem && mirror.ReporterOfRoot(root) == by {
		return nil
	}
	r.emitPodProblem(root, problem)
	return r.setNotPushedCondition(ctx, root, by, problem.Reason, problem.Message)
}

// setNotPushedCondition sets the root's Pushed condition to False for a root without a leaf, as a live read
// confirms. In a stale cache, the root may lack the UID of a leaf that ran. Without the UID, the root
// would get another leaf.
func (r *reconciler) setNotPushedCondition(ctx context.Context, root *corev1.Pod, by mirror.Reporter, reason, message string) error {
	live, err := r.readRootPodLive(ctx, root)
	if err != nil || live == nil || podstatus.HadLeafPod(live) {
		return err // the cache will catch up
	}
	return r.HostWriter.ApplyStatus(ctx, actor, root, report.PushedApplyBody(root, by, corev1.ConditionFalse, reason, message, "", r.Clock.Now()))
}

// markRootPushed records the root's leaf. If the root already has the condition, a live read must confirm
// the leaf: in a stale cache, a leaf may remain that was withdrawn.
func (r *reconciler) markRootPushed(ctx context.Context, o lifecycle.Observed) error {
	if podstatus.PushedStatus(o.Root) != "" {
		if leaf, err := r.readLeafPodLive(ctx, o.Leaf); err != nil || leaf == nil {
			return err
		}
	}
	reason, message := v1alpha1.ReasonPushed, pushedMessage(o.Leaf, r.Member)
	if o.UnbindableLeafRuns() {
		reason, message = corev1.PodReasonUnschedulable, message+unbindableMessage(o.NodeName())
	}
	return r.HostWriter.ApplyStatus(ctx, actor, o.Root, report.PushedApplyBody(o.Root, r.reporterForClaim(""), corev1.ConditionTrue, reason, message, o.Leaf.UID, r.Clock.Now()))
}

// markRootWithdrawn reports that the root's leaf is gone and never started, and removes the leaf's UID, so
// that the root may get another leaf.
func (r *reconciler) markRootWithdrawn(ctx context.Context, o lifecycle.Observed) error {
	if still, err := r.recheckWithdrawnLive(ctx, o); err != nil || !still {
		return err
	}
	return r.HostWriter.ApplyStatus(ctx, actor, o.Root, report.PushedApplyBody(o.Root, r.reporterForClaim(""), corev1.ConditionFalse, v1alpha1.ReasonWithdrawn,
		fmt.Sprintf("withdrawn from member %q before the Pod was bound", r.Registration), "", r.Clock.Now()))
}

// recheckWithdrawnLive decides again with live reads, and reports whether the leaf is gone and never started.
// It reads the claims after the leaf: a claim that is unbound then was unbound as long as the leaf
// existed. A restored member may show a claim as unbound that was bound.
func (r *reconciler) recheckWithdrawnLive(ctx context.Context, o lifecycle.Observed) (bool, error) {
	if gone, err := r.NewProver().ProveLeafPodGone(ctx, o.Root); err != nil || !gone {
		return false, err
	}
	if exists, err := r.observeRootLive(ctx, &o); err != nil || !exists {
		return false, err
	}
	if err := r.observeClaimsBoundHere(ctx, &o); err != nil {
		return false, err
	}
	if _, err := r.NewProver().ProveMemberCurrent(ctx); err != nil {
		return false, err
	}
	_, still := lifecycle.NextDecision(o).(lifecycle.MarkWithdrawn)
	return still, nil
}

// reporterForClaim returns this member as the reporter of a problem with the claim, or with the Pod itself
// if claim is empty.
func (r *reconciler) reporterForClaim(claim string) mirror.Reporter {
	return mirror.Reporter{ClusterID: r.ClusterID, Claim: claim}
}

// proveDisksUnmarked proves with live reads that none of the Pod's disks is marked as unused or as being
// released. The controller that releases a disk looks for Pods after it has marked the disk, so
// either these reads show the mark, or that controller's list contains this Pod. If the manager
// were killed, a mark as unused could outlive this Pod, and the next grace period would be measured
// from the old time.
func (r *reconciler) proveDisksUnmarked(ctx context.Context, o lifecycle.Observed) (bool, error) {
	for _, c := range o.Claims {
		if c.Volume == nil || !hostpv.ReleasesWhenUnused(c.Volume) {
			continue
		}
		if unmarked, err := r.NewProver().ProvePromiseUnmarked(ctx, c.Volume); err != nil || !unmarked {
			return false, err // the PV's event enqueues the Pod
		}
	}
	return true, nil
}

// copyingMessage returns the message of the Pushed condition while objects are not copied yet.
func copyingMessage(objects []string, registration string) string {
	return fmt.Sprintf("waiting for copies in member %q (%s). If the member rejects a copy, the Pod's events show why", registration, strings.Join(objects, ", "))
}

// unbindableMessage is added to that message while the scheduler cannot bind the Pod.
func unbindableMessage(node string) string {
	return fmt.Sprintf(", where its containers run or may start, although the host's scheduler cannot bind it to node %q (see condition PodScheduled). A drain of the node does not end it. Let the node accept the Pod, for example with `kubectl uncordon`, or delete the Pod", node)
}

// pushedMessage returns the message of the Pushed condition, which names the leaf.
func pushedMessage(leaf *corev1.Pod, m mirror.Member) string {
	return fmt.Sprintf("pushed to member %q as Pod \"%s/%s\" with UID %s", m.Registration, leaf.Namespace, leaf.Name, leaf.UID)
}
