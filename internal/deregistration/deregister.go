package deregistration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/wording"
)

const actor = guarded.Actor("cluster-registration")

// leafPodsRecheckDelay is the interval at which the Deregisterer reads a member again while it waits for leaf Pods
// to end.
const leafPodsRecheckDelay = 2 * time.Second

// placementsRecheckDelay is the interval at which the Deregisterer lists a member's claims again while the host lacks
// the placement of one of them.
const placementsRecheckDelay = 30 * time.Second

// remainingObjects contains the remaining objects of a member that is being deregistered.
type remainingObjects struct {
	connected, forced, confirmed bool
	// destructionSuspended means that the member is connected, but an admin must confirm a restore before Xylem
	// deletes anything in it.
	destructionSuspended bool
	// connectionPending reports whether it is not known yet if the member can be reached, for example after
	// the start of the manager.
	connectionPending bool
	// ownsCluster means that the member has a cluster ID that no other registration shares, so that the claims,
	// volumes and snapshots in it belong to this registration.
	ownsCluster bool
	// linkEnded reports whether this process ended the link, because the member was no longer needed.
	linkEnded bool
	policy    v1alpha1.DeregistrationPolicy
	// pods are the host Pods that are bound to the virtual node, except DaemonSet Pods. Pods that
	// only finalizers keep, or that never had a leaf, do not count once a live list can show, or has
	// shown, that no leaves remain (see leaves), or if the member is lost.
	pods []corev1.Pod
	// leafPods are the leaf Pods that remain in the member when no host Pod is bound to the virtual
	// node, according to a live list. For example, a user deleted the Node, and the host's garbage
	// collection then deleted the Pods. Or a Pod has volumes in the member but is not bound to a
	// node yet.
	leafPods []string
	// leavesOfPods are the other objects, with their kinds, that Xylem deletes after the leaf Pods. They are read under the
	// same condition.
	leavesOfPods []string
	// unplacedClaims are the claims in the host that lack their placement in the member, although the member has
	// their leaf claims, according to a live list. It is read only if nothing else needs the link.
	unplacedClaims []string
	// unboundClaims and bound are the claims that are placed in the member. Claims bound to a promise
	// without a disk count as unbound.
	unboundClaims, boundClaims []corev1.PersistentVolumeClaim
	// promises are the member's promises without a disk, including recalled ones.
	promises []corev1.PersistentVolume
	// volumes are the host PVs whose leaf PV is in the member.
	volumes []corev1.PersistentVolume
	// copiedVolumes are the host PVs of other members' shared volumes that this member may have copies of.
	copiedVolumes []corev1.PersistentVolume
	// snapshots are the contents in the host whose snapshot is, or may be, in the member.
	snapshots []snapshotv1.VolumeSnapshotContent
	// nodes are the names of the virtual nodes that still exist.
	nodes []string
}

// deregistrationStep is the next step of a deregistration.
type deregistrationStep int

const (
	stepWaitForConnection deregistrationStep = iota // until it is known whether the member can be reached
	stepWaitForMember                               // the next steps need the member, which is unreachable
	stepWaitForConfirmation
	stepEvictPods
	stepWithdrawClaims
	stepWaitForClaims // only with policy Drain
	stepWaitForLeafPods
	stepWaitForPlacements
	// The steps above need the link. The steps below start only after the link has ended.
	stepReleaseVolumes
	stepWaitForNode
	stepFinish
)

// nextStep decides on the next step. It is a pure function. The virtual_node controller cordons the
// virtual node, and deletes it once its Pods are gone.
func (l *remainingObjects) nextStep() deregistrationStep {
	switch {
	case l.connectionPending:
		return stepWaitForConnection
	case l.needsUnreachableMember():
		return stepWaitForMember
	case l.countRunningPods() > 0 && !l.confirmed && (l.connected || !l.forced):
		return stepWaitForConfirmation
	case len(l.pods) > 0:
		return stepEvictPods
	case len(l.unboundClaims)+len(l.promises) > 0:
		return stepWithdrawClaims
	case l.policy == v1alpha1.DeregistrationDrain && !l.forced && l.countDrainObjects() > 0:
		return stepWaitForClaims
	case len(l.leafPods)+len(l.leavesOfPods) > 0 && !l.forced:
		return stepWaitForLeafPods
	case len(l.unplacedClaims) > 0 && !l.forced:
		return stepWaitForPlacements
	case slices.ContainsFunc(l.volumes, hasLeafFinalizer), slices.ContainsFunc(l.snapshots, isSnapshotUnreleased), len(l.copiedVolumes) > 0:
		return stepReleaseVolumes
	case len(l.nodes) > 0:
		return stepWaitForNode
	}
	return stepFinish
}

// needsUnreachableMember reports whether the member is unreachable but still has objects that must be removed
// first, and the deregistration is not forced. Pods whose roots were deleted together with the Node
// may still use copies of shared volumes.
func (l *remainingObjects) needsUnreachableMember() bool {
	there := len(l.pods)+len(l.unboundClaims)+len(l.promises) > 0 || len(l.copiedVolumes) > 0 && !l.linkEnded
	return !l.connected && !l.forced && (there || l.policy == v1alpha1.DeregistrationDrain && l.countDrainObjects() > 0)
}

// countDrainObjects returns the number of claims, volumes and snapshots that Drain waits for.
func (l *remainingObjects) countDrainObjects() int {
	return len(l.boundClaims) + len(l.volumes) + len(l.snapshots)
}

// isSnapshotUnreleased reports whether a snapshot has not been released yet.
func isSnapshotUnreleased(content snapshotv1.VolumeSnapshotContent) bool {
	return !snapshot.IsClusterGone(&content)
}

// describeDrainObjects returns the names of the objects that Drain waits for. A retained volume may be left without
// a claim. left is a pure function.
func (l *remainingObjects) describeDrainObjects() string {
	return describeCounts(objectCount{len(l.boundClaims), "claim", firstObjects(l.boundClaims)}, objectCount{len(l.volumes), "volume", firstObjects(l.volumes)},
		objectCount{len(l.snapshots), "snapshot", firstNames(snapshotNamesOf(l.snapshots))})
}

// objectCount counts the objects of one kind, and names some of them.
type objectCount struct {
	count       int
	name, names string
}

// describeCounts lists the kinds that have objects.
func describeCounts(kinds ...objectCount) string {
	var parts []string
	for _, k := range kinds {
		if k.count > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", wording.CountNoun(k.count, k.name), k.names))
		}
	}
	return strings.Join(parts, " and ")
}

// describeRemaining counts the objects that an unreachable member still has, by kind. It is a pure function.
func (l *remainingObjects) describeRemaining() string {
	var parts []string
	for _, kind := range []struct {
		count    int
		name, of string
	}{
		{len(l.pods), "Pod", ""}, {len(l.unboundClaims) + len(l.boundClaims), "claim", ""}, {len(l.promises), "promise", " without a disk"},
		{len(l.volumes), "volume", ""}, {len(l.snapshots), "snapshot", ""}, {len(l.copiedVolumes), "copy", " of shared volumes"},
	} {
		if kind.count > 0 {
			parts = append(parts, wording.CountNoun(kind.count, kind.name)+kind.of)
		}
	}
	return strings.Join(parts, ", ")
}

// describeLeaves describes the Pods or, after them, the other objects that the member still has.
func (l *remainingObjects) describeLeaves() string {
	if len(l.leafPods) == 0 {
		return fmt.Sprintf(
			"the member still has %s that Xylem created for Pods (%s). Xylem deletes them. If they remain, check whether they have finalizers, and the events of their originals in the host, or leave them in the member by setting this annotation on the registration: %s=true",
			wording.CountNoun(len(l.leavesOfPods), "object"), firstNames(l.leavesOfPods), v1alpha1.AnnotationForceDeregister)
	}
	return fmt.Sprintf(
		"the member still has %s (%s). Xylem deletes those whose Pods in the host are gone or bound elsewhere. If others remain, delete them in the host, check condition Connected, or abandon the member by setting this annotation on the registration: %s=true",
		wording.CountNoun(len(l.leafPods), "Pod"), firstNames(l.leafPods), v1alpha1.AnnotationForceDeregister)
}

// snapshotNamesOf returns the names of the VolumeSnapshots that the contents belong to.
func snapshotNamesOf(contents []snapshotv1.VolumeSnapshotContent) []string {
	names := make([]string, 0, len(contents))
	for i := range contents {
		names = append(names, snapshot.RootSnapshotKey(&contents[i]).String())
	}
	return names
}

func (l *remainingObjects) countRunningPods() int {
	n := 0
	for i := range l.pods {
		if !podstatus.IsPodFinished(&l.pods[i]) && l.pods[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func hasLeafFinalizer(pv corev1.PersistentVolume) bool {
	return controllerutil.ContainsFinalizer(&pv, v1alpha1.FinalizerLeafVolume)
}

// Fleet contains the methods of fleet.Fleet that a deregistration needs.
type Fleet interface {
	EnsureLink(fleet.Registration)
	RemoveLink(name string) bool
	MemberState(name string) (fleet.State, bool)
	ListLeafPods(ctx context.Context, name string) ([]string, error)
	ListLeavesOfPods(ctx context.Context, name string) ([]string, error)
	ListLeafClaims(ctx context.Context, name string) ([]mirror.Origin, error)
}

// ReportPlaced sets the Placed condition of a claim in the name of a cluster's root_pvc, or removes it if
// problem is nil.
type ReportPlaced func(ctx context.Context, host *guarded.HostWriter, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, now time.Time) error

// Deregisterer deregisters members step by step.
type Deregisterer struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Fleet links the members.
	Fleet Fleet
	// Recorder emits events on registrations, Pods and claims.
	Recorder events.EventRecorder
	// Records records the objects that an admin abandoned.
	Records *fencing.HostRecords
	// ReportPlaced sets or removes the Placed conditions of claims.
	ReportPlaced ReportPlaced
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache

	// EndedLinks contains the UIDs of the registrations whose link this process has ended, because the
	// member is no longer needed. A new process connects and checks again.
	EndedLinks *sync.Map

	// FleetRegistration returns the registration that the fleet must link.
	FleetRegistration func(context.Context, *v1alpha1.ClusterRegistration) (fleet.Registration, error)
	// ReportNotReady writes the registration's status, with the reason why it is not ready.
	ReportNotReady func(ctx context.Context, cr *v1alpha1.ClusterRegistration, reason, message string) error
	// PatchRegistration patches the registration, unless it has changed.
	PatchRegistration func(ctx context.Context, before, after *v1alpha1.ClusterRegistration) error
}

// Deregister takes the next step of a deregistration. The end of a leaf Pod or claim causes no event
// in the host, so Deregister polls for it. A list of all claims is more expensive, and the placement of a
// claim is an event.
func (r *Deregisterer) Deregister(ctx context.Context, cr *v1alpha1.ClusterRegistration) (reconcile.Result, error) {
	next, err := r.takeNextStep(ctx, cr)
	switch {
	case err != nil:
	case next == stepWaitForLeafPods:
		return reconcile.Result{RequeueAfter: leafPodsRecheckDelay}, nil
	case next == stepWaitForPlacements:
		return reconcile.Result{RequeueAfter: placementsRecheckDelay}, nil
	}
	return reconcile.Result{}, err
}

func (r *Deregisterer) takeNextStep(ctx context.Context, cr *v1alpha1.ClusterRegistration) (deregistrationStep, error) {
	if !controllerutil.ContainsFinalizer(cr, v1alpha1.FinalizerRegistration) {
		r.EndedLinks.Delete(cr.UID)
		r.Fleet.RemoveLink(cr.Name)
		return stepFinish, nil
	}
	wanted, err := r.FleetRegistration(ctx, cr)
	if err != nil {
		return stepFinish, err
	}
	l, err := r.observeRemaining(ctx, cr)
	if err != nil {
		return stepFinish, err
	}
	if l.connected && l.ownsCluster && l.nextStep() >= stepReleaseVolumes {
		if l.unplacedClaims, err = r.listUnplacedClaims(ctx, cr); err != nil {
			return stepFinish, errors.Join(err, r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf("waiting until Xylem can list the claims in the member: %v", err)))
		}
		if err := r.recordUnplacedClaims(ctx, cr, l); err != nil {
			return stepFinish, err
		}
	}
	next := l.nextStep()
	if next < stepReleaseVolumes {
		r.EndedLinks.Delete(cr.UID)
		r.Fleet.EnsureLink(wanted)
		return next, r.executeStep(ctx, cr, l, next)
	}
	r.EndedLinks.Store(cr.UID, nil)
	if !r.Fleet.RemoveLink(cr.Name) {
		return next, nil // the fleet enqueues the request when the link has ended
	}
	return next, r.executeStep(ctx, cr, l, next)
}

// executeStep performs a step.
func (r *Deregisterer) executeStep(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects, next deregistrationStep) error {
	switch next {
	case stepWaitForConnection:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, "waiting until Xylem has connected to the member, or has failed to do so several times (see condition Connected)")
	case stepWaitForMember:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonMemberUnreachable, fmt.Sprintf(
			"the member is unreachable (see condition Connected), but still has %s. Make the member reachable, or abandon it by setting this annotation on the registration: %s=true",
			l.describeRemaining(), v1alpha1.AnnotationForceDeregister))
	case stepWaitForConfirmation:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonConfirmationNeeded, fmt.Sprintf(
			"the deregistration would evict %s in the member (%s). To confirm it, set this annotation on the registration: %s=%s", wording.CountNoun(l.countRunningPods(), "Pod"), firstObjects(l.pods), v1alpha1.AnnotationConfirmDeregister, cr.Name))
	case stepEvictPods:
		return r.evictPods(ctx, cr, l)
	case stepWithdrawClaims:
		return r.withdrawClaims(ctx, cr, l)
	case stepWaitForClaims:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDraining, fmt.Sprintf(
			"policy Drain waits for %s in the member. Delete them, or set spec.deregistration to Retain", l.describeDrainObjects()))
	case stepWaitForLeafPods:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, l.describeLeaves())
	case stepWaitForPlacements:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf(
			"the host does not record that the member has the disk of %s (%s): the host was restored, or somebody removed annotation %s. Xylem restores the record, if necessary after the confirmation that condition Connected or the claims' conditions ask for. To leave the disks in the member instead, after which these claims get new, empty disks in other members, set this annotation on the registration: %s=true",
			wording.CountNoun(len(l.unplacedClaims), "claim"), firstNames(l.unplacedClaims), v1alpha1.AnnotationPlacedIn, v1alpha1.AnnotationForceDeregister))
	case stepReleaseVolumes:
		if err := r.releaseSnapshots(ctx, cr, l.snapshots, l.forced); err != nil {
			return err
		}
		if err := r.releaseCopies(ctx, cr, l.copiedVolumes, l.forced); err != nil {
			return err
		}
		return r.releaseVolumes(ctx, cr, l.volumes, l.forced)
	case stepWaitForNode:
		return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, l.describeNodes())
	case stepFinish:
	}
	if err := r.reportClusterGone(ctx, cr, l.boundClaims); err != nil {
		return err
	}
	if l.ownsCluster {
		if err := r.removeOutdatedReports(ctx, cr); err != nil {
			return err
		}
	}
	before := cr.DeepCopy()
	controllerutil.RemoveFinalizer(cr, v1alpha1.FinalizerRegistration)
	if err := r.PatchRegistration(ctx, before, cr); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from registration %s: %w", cr.Name, err)
	}
	return nil
}

func (r *Deregisterer) observeRemaining(ctx context.Context, cr *v1alpha1.ClusterRegistration) (*remainingObjects, error) {
	state, _ := r.Fleet.MemberState(cr.Name)
	l := &remainingObjects{
		// An earlier link may still create leaf Pods.
		connected: state.Connected && state.Synced && state.Leaving,
		forced:    cr.Annotations[v1alpha1.AnnotationForceDeregister] == "true",
		confirmed: cr.Annotations[v1alpha1.AnnotationConfirmDeregister] == cr.Name,
		policy:    cr.Spec.Deregistration,
	}
	if cr.Status.ClusterID == "" {
		return l, nil // never connected, so it has no objects
	}
	l.destructionSuspended = l.connected && !state.DestructionAllowed
	_, l.linkEnded = r.EndedLinks.Load(cr.UID)
	l.connectionPending = !l.linkEnded && !l.connected && !state.HasFailedRepeatedly()
	if err := r.observeNodesAndPods(ctx, cr, l); err != nil {
		return nil, err
	}
	if shared, err := r.isClusterShared(ctx, cr); err != nil || shared {
		l.connectionPending = l.connectionPending && len(l.pods) > 0
		return l, err // claims and volumes belong to the other registration
	}
	l.ownsCluster = true
	return l, r.observeStorage(ctx, cr, l)
}

// observeStorage reads the claims, volumes and snapshots in the member.
func (r *Deregisterer) observeStorage(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects) error {
	claims, err := index.ClaimsPlacedIn(ctx, r.Client, cr.Status.ClusterID)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		promised, err := r.isBoundToPromise(ctx, &claim, l.isForcedAndUnreachable())
		if err != nil {
			return err
		}
		if claim.Spec.VolumeName == "" || promised {
			l.unboundClaims = append(l.unboundClaims, claim)
		} else {
			l.boundClaims = append(l.boundClaims, claim)
		}
	}
	if l.promises, err = index.UnfulfilledPromisesIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	if l.volumes, err = index.HostVolumesIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	if l.copiedVolumes, err = index.HostVolumesCopiedIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	l.recallVolumes()
	served, err := r.Snapshots.CheckServed()
	if err != nil || !served {
		return err // while this is unknown, the member's snapshots would be lost without a record
	}
	l.snapshots, err = index.HostContentsIn(ctx, r.Client, cr.Status.ClusterID)
	return err
}

// observeNodesAndPods reads the member's Nodes and their Pods.
func (r *Deregisterer) observeNodesAndPods(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects) error {
	list, err := index.AllNodesOfMember(ctx, r.Client, cr)
	if err != nil {
		return err
	}
	l.nodes = nil
	for i := range list {
		l.nodes = append(l.nodes, list[i].Name)
	}
	pods, err := index.PodsOfMember(ctx, r.Client, cr.NodeName())
	if err != nil {
		return err
	}
	foreign := map[string]bool{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if _, known := foreign[name]; known || slices.Contains(l.nodes, name) {
			continue
		}
		node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(name))
		if err != nil {
			return err
		}
		foreign[name] = node != nil // Pods outlive a deleted Node
	}
	l.pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		return foreign[pod.Spec.NodeName] || podspec.IsDaemonSetPod(&pod) || (podstatus.OnlyFinalizersRemain(&pod) || !podstatus.HadLeafPod(&pod)) && (l.connected || l.linkEnded || l.isForcedAndUnreachable())
	})
	if l.connected && len(l.pods) == 0 {
		if l.leafPods, err = r.Fleet.ListLeafPods(ctx, cr.Name); err != nil {
			return fmt.Errorf("list the Pods that still run in member %s: %w", cr.Name, err)
		}
		if l.leavesOfPods, err = r.Fleet.ListLeavesOfPods(ctx, cr.Name); err != nil {
			return fmt.Errorf("list the objects for Pods that are still in member %s: %w", cr.Name, err)
		}
	}
	return nil
}

// describeNodes names the virtual nodes that are not deleted yet.
func (l *remainingObjects) describeNodes() string {
	if len(l.nodes) == 1 {
		return fmt.Sprintf("waiting until node %q is deleted", l.nodes[0])
	}
	return fmt.Sprintf("waiting for the deletion of %s (%s)", wording.CountNoun(len(l.nodes), "node"), firstNames(l.nodes))
}

// isForcedAndUnreachable reports whether the member is unreachable and an admin forces the deregistration.
func (l *remainingObjects) isForcedAndUnreachable() bool {
	return l.forced && !l.connected && !l.connectionPending
}

// recallVolumes treats the volumes of a lost member that are released when unused as promises without a
// disk, so that other members can fulfill them. It makes no requests.
func (l *remainingObjects) recallVolumes() {
	if !l.isForcedAndUnreachable() {
		return
	}
	l.volumes = slices.DeleteFunc(l.volumes, func(pv corev1.PersistentVolume) bool {
		recalled := mayRecallVolume(&pv)
		if recalled {
			l.promises = append(l.promises, pv)
		}
		return recalled
	})
}

// mayRecallVolume reports whether another member may fulfill a lost member's promise again, although its disk
// is then abandoned. A disk that is retained is not released with its last Pod, so it stays the claim's.
func mayRecallVolume(pv *corev1.PersistentVolume) bool {
	return hostpv.IsMovablePromise(pv) && (hostpv.IsUnfulfilledPromise(pv) || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete)
}

// isBoundToPromise reports whether a claim is bound to a promise without a disk or, if its member is lost,
// to a promise that is released when unused.
func (r *Deregisterer) isBoundToPromise(ctx context.Context, claim *corev1.PersistentVolumeClaim, lost bool) (bool, error) {
	pv, err := r.promiseNamedBy(ctx, claim)
	return pv != nil && (hostpv.IsUnfulfilledPromise(pv) || lost && mayRecallVolume(pv)), err
}

// promiseNamedBy returns the promise that a claim names, or nil.
func (r *Deregisterer) promiseNamedBy(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if !hostpv.IsPromiseName(claim.Spec.VolumeName) {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return index.FindObject[corev1.PersistentVolume](ctx, r.Client, index.ClusterScopedKey(claim.Spec.VolumeName))
}

// isClusterShared reports whether another registration that is not being deleted refers to the same cluster.
// If so, one of the two was rejected as a duplicate.
func (r *Deregisterer) isClusterShared(ctx context.Context, cr *v1alpha1.ClusterRegistration) (bool, error) {
	same, err := index.RegistrationsOfCluster(ctx, r.Client, cr.Status.ClusterID)
	return slices.ContainsFunc(same, func(other v1alpha1.ClusterRegistration) bool {
		return other.UID != cr.UID && other.DeletionTimestamp == nil
	}), err
}

// stepWithdrawClaims removes selected-node from claims without a volume. root_pvc then withdraws the leaf
// claim and, once the member is proven to hold none of the claim's objects, the placement. If an
// admin forces the deregistration of an unreachable member, withdraw also removes the placement.
func (r *Deregisterer) withdrawClaims(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects) error {
	writer := r.hostWriter(cr)
	for i := range l.promises {
		if l.connected {
			break // root_pvc and root_pv release them
		}
		before := &l.promises[i]
		if err := r.recordForcedRelease(ctx, cr, before, hostpv.DescribeVolume(before)+" is abandoned, with any disk that the member has for it"); err != nil {
			return err
		}
		claim, err := r.claimOfPromise(ctx, before)
		if err != nil {
			return err
		}
		e, err := r.releaseEvidence(cr, before)
		if err != nil {
			return err
		}
		err = writer.FreePromise(ctx, actor, before, claim, cr.Status.ClusterID, e)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if !hostpv.IsUnfulfilledPromise(before) && err == nil {
			r.emitPromiseRecalled(cr, before, claim)
		}
	}
	for i := range l.unboundClaims {
		before := &l.unboundClaims[i]
		after := withdrawnClaim(before, cr, l.connected)
		if !l.connected {
			if err := r.recordForcedRelease(ctx, cr, before, fmt.Sprintf("any volume of claim \"%s/%s\" in the member is abandoned", before.Namespace, before.Name)); err != nil {
				return err
			}
		}
		if len(after.Annotations) == len(before.Annotations) {
			continue
		}
		if err := writer.AnnotateClaim(ctx, actor, before, after); client.IgnoreNotFound(err) != nil {
			return err
		}
		r.emitClaimWithdrawn(cr, after)
	}
	return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, l.describeWithdrawal())
}

// withdrawnClaim returns a claim without the scheduler's choice of the member's node and, if the member cannot
// withdraw the claim itself, without its placement. The scheduler may have chosen another member already.
func withdrawnClaim(claim *corev1.PersistentVolumeClaim, cr *v1alpha1.ClusterRegistration, connected bool) *corev1.PersistentVolumeClaim {
	after := claim.DeepCopy()
	if cr.HasNode(after.Annotations[route.AnnSelectedNode]) {
		delete(after.Annotations, route.AnnSelectedNode)
	}
	if !connected {
		delete(after.Annotations, v1alpha1.AnnotationPlacedIn)
	}
	return after
}

// describeWithdrawal describes the claims and promises that are being withdrawn, and what blocks this.
func (l *remainingObjects) describeWithdrawal() string {
	what := "withdrawing " + describeCounts(objectCount{len(l.unboundClaims), "claim", firstObjects(l.unboundClaims)}, objectCount{len(l.promises), "promise", firstObjects(l.promises)})
	if l.destructionSuspended {
		what += ". Xylem deletes nothing in the member until an admin confirms the restore that condition Connected reports"
	}
	return what
}

// claimOfPromise returns the claim of a promise, or nil if it was deleted.
func (r *Deregisterer) claimOfPromise(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return nil, nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if claim != nil && claim.UID != ref.UID {
		claim = nil
	}
	return claim, err
}

// stepReleaseVolumes removes Xylem's finalizer from the host PVs, and emits an event on each PV to report that
// its cluster was deregistered. It changes nothing in the member.
func (r *Deregisterer) releaseVolumes(ctx context.Context, cr *v1alpha1.ClusterRegistration, volumes []corev1.PersistentVolume, forced bool) error {
	writer := r.hostWriter(cr)
	for i := range volumes {
		before := &volumes[i]
		if !hasLeafFinalizer(*before) {
			continue
		}
		after := before.DeepCopy()
		controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[v1alpha1.AnnotationClusterGone] = cr.Name
		if err := r.recordReleasedVolume(ctx, cr, before, forced); err != nil {
			return err
		}
		e, err := r.releaseEvidence(cr, before)
		if err != nil {
			return err
		}
		if err := writer.DropHostVolume(ctx, actor, before, after, e); client.IgnoreNotFound(err) != nil {
			return err
		}
		r.emitVolumeClusterGone(cr, after)
	}
	return r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf("releasing %s, whose data stays in the member", wording.CountNoun(len(volumes), "volume")))
}

// recordReleasedVolume records a volume that stays in the member. Otherwise, nothing in the host would name the
// disk of a PV that disappears with its finalizer.
func (r *Deregisterer) recordReleasedVolume(ctx context.Context, cr *v1alpha1.ClusterRegistration, pv *corev1.PersistentVolume, forced bool) error {
	what := hostpv.DescribeVolume(pv) + " stays in the member"
	switch {
	case forced:
		return r.recordForcedRelease(ctx, cr, pv, what)
	case pv.DeletionTimestamp != nil:
		return r.Records.RecordAbandoned(ctx, r.hostWriter(cr), cr.Status.ClusterID, fmt.Sprintf("registration %q was deleted: %s", cr.Name, what))
	}
	return nil
}

// releaseSnapshots records on the contents of the member's snapshots that their cluster was
// deregistered. From then on, the host_snapshot controller completes deletions of these contents.
// releaseSnapshots changes nothing in the member.
func (r *Deregisterer) releaseSnapshots(ctx context.Context, cr *v1alpha1.ClusterRegistration, contents []snapshotv1.VolumeSnapshotContent, forced bool) error {
	writer := r.hostWriter(cr)
	for i := range contents {
		before := &contents[i]
		if !isSnapshotUnreleased(*before) {
			continue
		}
		if forced {
			if err := r.recordForcedRelease(ctx, cr, before, fmt.Sprintf("snapshot %q stays in the member", snapshot.RootSnapshotKey(before))); err != nil {
				return err
			}
		}
		if err := writer.PatchHostContent(ctx, actor, before, snapshot.RecordClusterGone(before, cr.Name)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// releaseCopies removes the record that the member may have copies of other members' shared
// volumes, so that the volumes can be destroyed. The copies stay in the member, with policy Retain.
// The member's Pods are gone, unless the deregistration is forced.
func (r *Deregisterer) releaseCopies(ctx context.Context, cr *v1alpha1.ClusterRegistration, copied []corev1.PersistentVolume, forced bool) error {
	writer := r.hostWriter(cr)
	for i := range copied {
		before := &copied[i]
		if forced {
			if err := r.recordForcedRelease(ctx, cr, before, fmt.Sprintf("a copy of shared volume %q may stay in the member", before.Name)); err != nil {
				return err
			}
		}
		e, proven := proof.CopyDroppableIfMemberLeaves(r.Clock, before, cr)
		if !proven {
			return unprovenReleaseError(cr, before)
		}
		if err := writer.DropCopyRecord(ctx, actor, before, e); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// releaseEvidence returns the evidence for releasing a host PV from a member that is being deregistered.
func (r *Deregisterer) releaseEvidence(cr *v1alpha1.ClusterRegistration, host *corev1.PersistentVolume) (proof.DroppableVolume, error) {
	e, proven := proof.DroppableIfMemberLeaves(r.Clock, host, cr)
	if !proven {
		return e, unprovenReleaseError(cr, host)
	}
	return e, nil
}

func unprovenReleaseError(cr *v1alpha1.ClusterRegistration, host *corev1.PersistentVolume) error {
	return fmt.Errorf("release host PV %s from registration %s: %w", host.Name, cr.Name, proof.ErrUnproven)
}

// recordForcedRelease reports and records what a forced deregistration will release while the member is
// unreachable.
func (r *Deregisterer) recordForcedRelease(ctx context.Context, cr *v1alpha1.ClusterRegistration, about client.Object, what string) error {
	err := r.Records.RecordAbandoned(ctx, r.hostWriter(cr), cr.Status.ClusterID,
		fmt.Sprintf("registration %q (%s=true): %s", cr.Name, v1alpha1.AnnotationForceDeregister, what))
	if err == nil {
		r.emitForcedRelease(cr, about, what)
	}
	return err
}

// reportClusterGone reports, on the claims with volumes in the member, that the member was deregistered. If
// the host rejects a claim's status for good, an event on the claim reports this instead.
func (r *Deregisterer) reportClusterGone(ctx context.Context, cr *v1alpha1.ClusterRegistration, claims []corev1.PersistentVolumeClaim) error {
	return r.reportOnClaims(ctx, cr, claims, report.ClusterGoneRefusal(cr), func(claim *corev1.PersistentVolumeClaim, err error) {
		ctrl.LoggerFrom(ctx).Info("could not report on the claim that its member was deregistered", "cluster", cr.Name, "root", client.ObjectKeyFromObject(claim), "cause", err.Error())
		r.emitClaimClusterGone(cr, claim)
	})
}

// reportOnClaims sets the Placed conditions of claims, or removes them if problem is nil. It calls rejected for a
// claim whose status the host rejects for good: no user's object keeps the registration.
func (r *Deregisterer) reportOnClaims(ctx context.Context, cr *v1alpha1.ClusterRegistration, claims []corev1.PersistentVolumeClaim, problem *mirror.Refusal, rejected func(*corev1.PersistentVolumeClaim, error)) error {
	var errs []error
	for i := range claims {
		claim := &claims[i]
		err := client.IgnoreNotFound(r.ReportPlaced(ctx, r.hostWriter(cr), claim, cr.Status.ClusterID, problem, r.Clock.Now()))
		switch {
		case err == nil:
		case isStatusUnwritable(claim, err):
			rejected(claim, err)
		case len(errs) < wording.NamesListed:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// largeClaimBytes is the size in bytes above which etcd may reject a claim with its managed fields, which
// the cache lacks. The API server limits only the annotations, to the same size.
const largeClaimBytes = 256 << 10

// isStatusUnwritable reports whether the host would reject a claim's status again, for example because its
// annotations already have the maximum size.
func isStatusUnwritable(claim *corev1.PersistentVolumeClaim, err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) || claim.Size() > largeClaimBytes
}

func (r *Deregisterer) hostWriter(cr *v1alpha1.ClusterRegistration) *guarded.HostWriter {
	return guarded.NewHostWriter(r.Client, cr.Name, guarded.HostOnlyGuard{})
}

// firstObjects returns the names of the first few objects in a list.
func firstObjects[T any, P interface {
	*T
	client.Object
}](objects []T) string {
	names := make([]string, 0, len(objects))
	for i := range objects {
		obj := P(&objects[i])
		names = append(names, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"))
	}
	return firstNames(names)
}

func firstNames(names []string) string {
	return wording.FirstNames(names, wording.NamesListed, ", ")
}
