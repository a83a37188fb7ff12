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
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/dropping"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/text"
)

const actor = guarded.Actor("cluster-registration")

// leavesDelay is the interval at which the Leaver reads a member again while it waits for leaf Pods
// to end.
const leavesDelay = 2 * time.Second

// placementsDelay is the interval at which the Leaver lists a member's claims again while the host lacks
// the placement of one of them.
const placementsDelay = 30 * time.Second

// leaving contains the remaining objects of a member that is being deregistered.
type leaving struct {
	connected, forced, confirmed bool
	// suspended means that the member is connected, but an admin must confirm a restore before Xylem
	// deletes anything in it.
	suspended bool
	// connecting reports whether it is not known yet if the member can be reached, for example after
	// the start of the manager.
	connecting bool
	// owns means that the member has a cluster ID that no other registration shares, so that the claims,
	// volumes and snapshots in it belong to this registration.
	owns bool
	// unlinked reports whether this process ended the link, because the member was no longer needed.
	unlinked bool
	policy   v1alpha1.DeregistrationPolicy
	// pods are the host Pods that are bound to the virtual node, except DaemonSet Pods. Pods that
	// only finalizers keep, or that never had a leaf, do not count once a live list can show, or has
	// shown, that no leaves remain (see leaves), or if the member is lost.
	pods []corev1.Pod
	// leaves are the leaf Pods that remain in the member when no host Pod is bound to the virtual
	// node, according to a live list. For example, a user deleted the Node, and the host's garbage
	// collection then deleted the Pods. Or a Pod has volumes in the member but is not bound to a
	// node yet.
	leaves []string
	// lacking are the claims in the host that lack their placement in the member, although the member has
	// their leaf claims, according to a live list. It is read only if nothing else needs the link.
	lacking []string
	// unbound and bound are the claims that are placed in the member. Claims bound to a promise
	// without a disk count as unbound.
	unbound, bound []corev1.PersistentVolumeClaim
	// promises are the member's promises without a disk, including recalled ones.
	promises []corev1.PersistentVolume
	// volumes are the host PVs whose leaf PV is in the member.
	volumes []corev1.PersistentVolume
	// copied are the host PVs of other members' shared volumes that this member may have copies of.
	copied []corev1.PersistentVolume
	// snapshots are the contents in the host whose snapshot is, or may be, in the member.
	snapshots []snapshotv1.VolumeSnapshotContent
	// node reports whether the virtual node still exists.
	node bool
}

// step is the next step of a deregistration.
type step int

const (
	waitForConnection step = iota // until it is known whether the member can be reached
	waitForMember                 // the next steps need the member, which is unreachable
	waitForConfirmation
	evictPods
	withdrawClaims
	waitForClaims // only with policy Drain
	waitForLeaves
	waitForPlacements
	// The steps above need the link. The steps below start only after the link has ended.
	releaseVolumes
	waitForNode
	finish
)

// next decides on the next step. It is a pure function. The virtual_node controller cordons the
// virtual node, and deletes it once its Pods are gone.
func (l *leaving) next() step {
	switch {
	case l.connecting:
		return waitForConnection
	case l.outOfReach():
		return waitForMember
	case l.running() > 0 && !l.confirmed && (l.connected || !l.forced):
		return waitForConfirmation
	case len(l.pods) > 0:
		return evictPods
	case len(l.unbound)+len(l.promises) > 0:
		return withdrawClaims
	case l.policy == v1alpha1.DeregistrationDrain && !l.forced && l.claims() > 0:
		return waitForClaims
	case len(l.leaves) > 0 && !l.forced:
		return waitForLeaves
	case len(l.lacking) > 0 && !l.forced:
		return waitForPlacements
	case slices.ContainsFunc(l.volumes, held), slices.ContainsFunc(l.snapshots, stays), len(l.copied) > 0:
		return releaseVolumes
	case l.node:
		return waitForNode
	}
	return finish
}

// outOfReach reports whether the member is unreachable but still has objects that must be removed
// first, and the deregistration is not forced. Pods whose roots were deleted together with the Node
// may still use copies of shared volumes.
func (l *leaving) outOfReach() bool {
	there := len(l.pods)+len(l.unbound)+len(l.promises) > 0 || len(l.copied) > 0 && !l.unlinked
	return !l.connected && !l.forced && (there || l.policy == v1alpha1.DeregistrationDrain && l.claims() > 0)
}

// claims returns the number of claims, volumes and snapshots that Drain waits for.
func (l *leaving) claims() int { return len(l.bound) + len(l.volumes) + len(l.snapshots) }

// stays reports whether a snapshot has not been released yet.
func stays(content snapshotv1.VolumeSnapshotContent) bool { return !snapshot.Gone(&content) }

// left returns the names of the objects that Drain waits for. A retained volume may be left without
// a claim. left is a pure function.
func (l *leaving) left() string {
	return listed(kind{len(l.bound), "claim", firstObjects(l.bound)}, kind{len(l.volumes), "volume", firstObjects(l.volumes)},
		kind{len(l.snapshots), "snapshot", firstNames(rootsOf(l.snapshots))})
}

// kind counts the objects of one kind, and names some of them.
type kind struct {
	count       int
	name, names string
}

// listed lists the kinds that have objects.
func listed(kinds ...kind) string {
	var parts []string
	for _, k := range kinds {
		if k.count > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", text.Count(k.count, k.name), k.names))
		}
	}
	return strings.Join(parts, " and ")
}

// remaining counts the objects that an unreachable member still has, by kind. It is a pure function.
func (l *leaving) remaining() string {
	var parts []string
	for _, kind := range []struct {
		count    int
		name, of string
	}{
		{len(l.pods), "Pod", ""}, {len(l.unbound) + len(l.bound), "claim", ""}, {len(l.promises), "promise", " without a disk"},
		{len(l.volumes), "volume", ""}, {len(l.snapshots), "snapshot", ""}, {len(l.copied), "copy", " of shared volumes"},
	} {
		if kind.count > 0 {
			parts = append(parts, text.Count(kind.count, kind.name)+kind.of)
		}
	}
	return strings.Join(parts, ", ")
}

// rootsOf returns the names of the VolumeSnapshots that the contents belong to.
func rootsOf(contents []snapshotv1.VolumeSnapshotContent) []string {
	names := make([]string, 0, len(contents))
	for i := range contents {
		names = append(names, snapshot.RootOf(&contents[i]).String())
	}
	return names
}

func (l *leaving) running() int {
	n := 0
	for i := range l.pods {
		if !podstatus.Finished(&l.pods[i]) && l.pods[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func held(pv corev1.PersistentVolume) bool {
	return controllerutil.ContainsFinalizer(&pv, v1alpha1.FinalizerLeafVolume)
}

// Fleet contains the methods of fleet.Fleet that a deregistration needs.
type Fleet interface {
	Ensure(fleet.Registration)
	Remove(name string) bool
	State(name string) (fleet.State, bool)
	LeafPods(ctx context.Context, name string) ([]string, error)
	LeafClaims(ctx context.Context, name string) ([]mirror.Origin, error)
}

// ReportPlaced sets the Placed condition of a claim in the name of a cluster's root_pvc, or removes it if
// problem is nil.
type ReportPlaced func(ctx context.Context, host *guarded.Root, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, now time.Time) error

// Leaver deregisters members step by step.
type Leaver struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Fleet links the members.
	Fleet Fleet
	// Recorder emits events on registrations, Pods and claims.
	Recorder events.EventRecorder
	// Records records the objects that an admin abandoned.
	Records *hostrecord.Records
	// ReportPlaced sets or removes the Placed conditions of claims.
	ReportPlaced ReportPlaced
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.Optional

	// Unlinked contains the UIDs of the registrations whose link this process has ended, because the
	// member is no longer needed. A new process connects and checks again.
	Unlinked *sync.Map

	// Registration returns the registration that the fleet must link.
	Registration func(context.Context, *v1alpha1.ClusterRegistration) (fleet.Registration, error)
	// Report writes the registration's status, with the reason why it is not ready.
	Report func(ctx context.Context, cr *v1alpha1.ClusterRegistration, reason, message string) error
	// Patch patches the registration, unless it has changed.
	Patch func(ctx context.Context, before, after *v1alpha1.ClusterRegistration) error
}

// Deregister takes the next step of a deregistration. The end of a leaf Pod or claim causes no event
// in the host, so Deregister polls for it. A list of all claims is more expensive, and the placement of a
// claim is an event.
func (r *Leaver) Deregister(ctx context.Context, cr *v1alpha1.ClusterRegistration) (reconcile.Result, error) {
	next, err := r.leave(ctx, cr)
	switch {
	case err != nil:
	case next == waitForLeaves:
		return reconcile.Result{RequeueAfter: leavesDelay}, nil
	case next == waitForPlacements:
		return reconcile.Result{RequeueAfter: placementsDelay}, nil
	}
	return reconcile.Result{}, err
}

func (r *Leaver) leave(ctx context.Context, cr *v1alpha1.ClusterRegistration) (step, error) {
	if !controllerutil.ContainsFinalizer(cr, v1alpha1.FinalizerRegistration) {
		r.Unlinked.Delete(cr.UID)
		r.Fleet.Remove(cr.Name)
		return finish, nil
	}
	wanted, err := r.Registration(ctx, cr)
	if err != nil {
		return finish, err
	}
	l, err := r.leaving(ctx, cr)
	if err != nil {
		return finish, err
	}
	if l.connected && l.owns && l.next() >= releaseVolumes {
		if l.lacking, err = r.lacking(ctx, cr); err != nil {
			return finish, errors.Join(err, r.Report(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf("waiting until Xylem can list the claims in the member: %v", err)))
		}
		if err := r.recordLacking(ctx, cr, l); err != nil {
			return finish, err
		}
	}
	next := l.next()
	if next < releaseVolumes {
		r.Unlinked.Delete(cr.UID)
		r.Fleet.Ensure(wanted)
		return next, r.take(ctx, cr, l, next)
	}
	r.Unlinked.Store(cr.UID, nil)
	if !r.Fleet.Remove(cr.Name) {
		return next, nil // the fleet enqueues the request when the link has ended
	}
	return next, r.take(ctx, cr, l, next)
}

// take performs a step.
func (r *Leaver) take(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving, next step) error {
	switch next {
	case waitForConnection:
		return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, "waiting until Xylem has connected to the member, or has failed to do so several times (see condition Connected)")
	case waitForMember:
		return r.Report(ctx, cr, v1alpha1.ReasonMemberUnreachable, fmt.Sprintf(
			"the member is unreachable (see condition Connected), but still has %s. Make the member reachable, or abandon it by setting this annotation on the registration: %s=true",
			l.remaining(), v1alpha1.AnnotationForceDeregister))
	case waitForConfirmation:
		return r.Report(ctx, cr, v1alpha1.ReasonConfirmationNeeded, fmt.Sprintf(
			"the deregistration would evict %s in the member (%s). To confirm it, set this annotation on the registration: %s=%s", text.Count(l.running(), "Pod"), firstObjects(l.pods), v1alpha1.AnnotationConfirmDeregister, cr.Name))
	case evictPods:
		return r.evict(ctx, cr, l)
	case withdrawClaims:
		return r.withdraw(ctx, cr, l)
	case waitForClaims:
		return r.Report(ctx, cr, v1alpha1.ReasonDraining, fmt.Sprintf(
			"policy Drain waits for %s in the member. Delete them, or set spec.deregistration to Retain", l.left()))
	case waitForLeaves:
		return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf(
			"the member still has %s (%s). Xylem deletes those whose Pods in the host are gone or bound elsewhere. If others remain, delete them in the host, check condition Connected, or abandon the member by setting this annotation on the registration: %s=true",
			text.Count(len(l.leaves), "Pod"), firstNames(l.leaves), v1alpha1.AnnotationForceDeregister))
	case waitForPlacements:
		return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf(
			"the host does not record that the member has the disk of %s (%s): the host was restored, or somebody removed annotation %s. Xylem restores the record, if necessary after the confirmation that condition Connected or the claims' conditions ask for. To leave the disks in the member instead, after which these claims get new, empty disks in other members, set this annotation on the registration: %s=true",
			text.Count(len(l.lacking), "claim"), firstNames(l.lacking), v1alpha1.AnnotationPlacedIn, v1alpha1.AnnotationForceDeregister))
	case releaseVolumes:
		if err := r.releaseSnapshots(ctx, cr, l.snapshots, l.forced); err != nil {
			return err
		}
		if err := r.releaseCopies(ctx, cr, l.copied, l.forced); err != nil {
			return err
		}
		return r.release(ctx, cr, l.volumes, l.forced)
	case waitForNode:
		return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf("waiting until node %q is deleted", cr.NodeName()))
	case finish:
	}
	if err := r.leaveClaims(ctx, cr, l.bound); err != nil {
		return err
	}
	if l.owns {
		if err := r.forgetReports(ctx, cr); err != nil {
			return err
		}
	}
	before := cr.DeepCopy()
	controllerutil.RemoveFinalizer(cr, v1alpha1.FinalizerRegistration)
	if err := r.Patch(ctx, before, cr); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from registration %s: %w", cr.Name, err)
	}
	return nil
}

func (r *Leaver) leaving(ctx context.Context, cr *v1alpha1.ClusterRegistration) (*leaving, error) {
	state, _ := r.Fleet.State(cr.Name)
	l := &leaving{
		// An earlier link may still create leaf Pods.
		connected: state.Connected && state.Synced && state.Leaving,
		forced:    cr.Annotations[v1alpha1.AnnotationForceDeregister] == "true",
		confirmed: cr.Annotations[v1alpha1.AnnotationConfirmDeregister] == cr.Name,
		policy:    cr.Spec.Deregistration,
	}
	if cr.Status.ClusterID == "" {
		return l, nil // never connected, so it has no objects
	}
	l.suspended = l.connected && !state.MayDestroy
	_, l.unlinked = r.Unlinked.Load(cr.UID)
	l.connecting = !l.unlinked && !l.connected && !state.Lost()
	if err := r.leavingPods(ctx, cr, l); err != nil {
		return nil, err
	}
	if shared, err := r.shared(ctx, cr); err != nil || shared {
		l.connecting = l.connecting && len(l.pods) > 0
		return l, err // claims and volumes belong to the other registration
	}
	l.owns = true
	return l, r.leavingStorage(ctx, cr, l)
}

// leavingStorage reads the claims, volumes and snapshots in the member.
func (r *Leaver) leavingStorage(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving) error {
	claims, err := index.ClaimsPlacedIn(ctx, r.Client, cr.Status.ClusterID)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		promised, err := r.promised(ctx, &claim, l.lost())
		if err != nil {
			return err
		}
		if claim.Spec.VolumeName == "" || promised {
			l.unbound = append(l.unbound, claim)
		} else {
			l.bound = append(l.bound, claim)
		}
	}
	if l.promises, err = index.PromisesIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	if l.volumes, err = index.VolumesIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	if l.copied, err = index.VolumesCopiedIn(ctx, r.Client, cr.Status.ClusterID); err != nil {
		return err
	}
	l.recall()
	served, err := r.Snapshots.Check()
	if err != nil || !served {
		return err // while this is unknown, the member's snapshots would be lost without a record
	}
	l.snapshots, err = index.SnapshotsIn(ctx, r.Client, cr.Status.ClusterID)
	return err
}

// leavingPods reads the Node and its Pods.
func (r *Leaver) leavingPods(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving) error {
	node, err := index.Find[corev1.Node](ctx, r.Client, index.Named(cr.NodeName()))
	if err != nil {
		return err
	}
	l.node = node != nil && nodes.Represents(node, cr.Status.ClusterID)
	if l.node || node == nil { // Pods outlive a deleted Node
		pods, err := index.PodsOnNode(ctx, r.Client, cr.NodeName())
		if err != nil {
			return err
		}
		l.pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
			return podspec.IsDaemonSetPod(&pod) || (podstatus.FinalizersRemain(&pod) || !podstatus.HadLeaf(&pod)) && (l.connected || l.unlinked || l.lost())
		})
	}
	if l.connected && len(l.pods) == 0 {
		if l.leaves, err = r.Fleet.LeafPods(ctx, cr.Name); err != nil {
			return fmt.Errorf("list the Pods that still run in member %s: %w", cr.Name, err)
		}
	}
	return nil
}

// lost reports whether the member is unreachable and an admin forces the deregistration.
func (l *leaving) lost() bool { return l.forced && !l.connected && !l.connecting }

// recall treats the volumes of a lost member that are released when unused as promises without a
// disk, so that other members can fulfill them. It makes no requests.
func (l *leaving) recall() {
	if !l.lost() {
		return
	}
	l.volumes = slices.DeleteFunc(l.volumes, func(pv corev1.PersistentVolume) bool {
		recalled := recallable(&pv)
		if recalled {
			l.promises = append(l.promises, pv)
		}
		return recalled
	})
}

// recallable reports whether another member may fulfill a lost member's promise again, although its disk
// is then abandoned. A disk that is retained is not released with its last Pod, so it stays the claim's.
func recallable(pv *corev1.PersistentVolume) bool {
	return hostpv.Movable(pv) && (hostpv.IsUnfulfilled(pv) || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete)
}

// promised reports whether a claim is bound to a promise without a disk or, if its member is lost,
// to a promise that is released when unused.
func (r *Leaver) promised(ctx context.Context, claim *corev1.PersistentVolumeClaim, lost bool) (bool, error) {
	pv, err := r.promiseOf(ctx, claim)
	return pv != nil && (hostpv.IsUnfulfilled(pv) || lost && recallable(pv)), err
}

// promiseOf returns the promise that a claim names, or nil.
func (r *Leaver) promiseOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if !hostpv.NamesPromise(claim.Spec.VolumeName) {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return index.Find[corev1.PersistentVolume](ctx, r.Client, index.Named(claim.Spec.VolumeName))
}

// shared reports whether another registration that is not being deleted refers to the same cluster.
// If so, one of the two was rejected as a duplicate.
func (r *Leaver) shared(ctx context.Context, cr *v1alpha1.ClusterRegistration) (bool, error) {
	same, err := index.RegistrationsOf(ctx, r.Client, cr.Status.ClusterID)
	return slices.ContainsFunc(same, func(other v1alpha1.ClusterRegistration) bool {
		return other.UID != cr.UID && other.DeletionTimestamp == nil
	}), err
}

// withdraw removes selected-node from claims without a volume. root_pvc then withdraws the leaf
// claim and, once the member is proven to hold none of the claim's objects, the placement. If an
// admin forces the deregistration of an unreachable member, withdraw also removes the placement.
func (r *Leaver) withdraw(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving) error {
	writer := r.writer(cr)
	for i := range l.promises {
		if l.connected {
			break // root_pvc and root_pv release them
		}
		before := &l.promises[i]
		if err := r.force(ctx, cr, before, hostpv.Describe(before)+" is abandoned, with any disk that the member has for it"); err != nil {
			return err
		}
		claim, err := r.claimOf(ctx, before)
		if err != nil {
			return err
		}
		e, err := r.releasing(cr, before)
		if err != nil {
			return err
		}
		err = writer.FreePromise(ctx, actor, before, claim, cr.Status.ClusterID, e)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if !hostpv.IsUnfulfilled(before) && err == nil {
			r.eventRecalled(cr, before, claim)
		}
	}
	for i := range l.unbound {
		before := &l.unbound[i]
		after := withdrawn(before, cr, l.connected)
		if !l.connected {
			if err := r.force(ctx, cr, before, fmt.Sprintf("any volume of claim \"%s/%s\" in the member is abandoned", before.Namespace, before.Name)); err != nil {
				return err
			}
		}
		if len(after.Annotations) == len(before.Annotations) {
			continue
		}
		if err := writer.AnnotateClaim(ctx, actor, before, after); client.IgnoreNotFound(err) != nil {
			return err
		}
		r.eventWithdrawn(cr, after)
	}
	return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, l.withdrawing())
}

// withdrawn returns a claim without the scheduler's choice of the member's node and, if the member cannot
// withdraw the claim itself, without its placement. The scheduler may have chosen another member already.
func withdrawn(claim *corev1.PersistentVolumeClaim, cr *v1alpha1.ClusterRegistration, connected bool) *corev1.PersistentVolumeClaim {
	after := claim.DeepCopy()
	if after.Annotations[route.AnnSelectedNode] == cr.NodeName() {
		delete(after.Annotations, route.AnnSelectedNode)
	}
	if !connected {
		delete(after.Annotations, v1alpha1.AnnotationPlacedIn)
	}
	return after
}

// withdrawing describes the claims and promises that are being withdrawn, and what blocks this.
func (l *leaving) withdrawing() string {
	what := "withdrawing " + listed(kind{len(l.unbound), "claim", firstObjects(l.unbound)}, kind{len(l.promises), "promise", firstObjects(l.promises)})
	if l.suspended {
		what += ". Xylem deletes nothing in the member until an admin confirms the restore that condition Connected reports"
	}
	return what
}

// claimOf returns the claim of a promise, or nil if it was deleted.
func (r *Leaver) claimOf(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return nil, nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if claim != nil && claim.UID != ref.UID {
		claim = nil
	}
	return claim, err
}

// release removes Xylem's finalizer from the host PVs, and emits an event on each PV to report that
// its cluster was deregistered. It changes nothing in the member.
func (r *Leaver) release(ctx context.Context, cr *v1alpha1.ClusterRegistration, volumes []corev1.PersistentVolume, forced bool) error {
	writer := r.writer(cr)
	for i := range volumes {
		before := &volumes[i]
		if !held(*before) {
			continue
		}
		after := before.DeepCopy()
		controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[v1alpha1.AnnotationClusterGone] = cr.Name
		if err := r.recordReleased(ctx, cr, before, forced); err != nil {
			return err
		}
		e, err := r.releasing(cr, before)
		if err != nil {
			return err
		}
		if err := writer.DropVolume(ctx, actor, before, after, e); client.IgnoreNotFound(err) != nil {
			return err
		}
		r.eventClusterGone(cr, after)
	}
	return r.Report(ctx, cr, v1alpha1.ReasonDeregistering, fmt.Sprintf("releasing %s, whose data stays in the member", text.Count(len(volumes), "volume")))
}

// recordReleased records a volume that stays in the member. Otherwise, nothing in the host would name the
// disk of a PV that disappears with its finalizer.
func (r *Leaver) recordReleased(ctx context.Context, cr *v1alpha1.ClusterRegistration, pv *corev1.PersistentVolume, forced bool) error {
	what := hostpv.Describe(pv) + " stays in the member"
	switch {
	case forced:
		return r.force(ctx, cr, pv, what)
	case pv.DeletionTimestamp != nil:
		return r.Records.RecordAbandoned(ctx, r.writer(cr), cr.Status.ClusterID, fmt.Sprintf("registration %q was deleted: %s", cr.Name, what))
	}
	return nil
}

// releaseSnapshots records on the contents of the member's snapshots that their cluster was
// deregistered. From then on, the host_snapshot controller completes deletions of these contents.
// releaseSnapshots changes nothing in the member.
func (r *Leaver) releaseSnapshots(ctx context.Context, cr *v1alpha1.ClusterRegistration, contents []snapshotv1.VolumeSnapshotContent, forced bool) error {
	writer := r.writer(cr)
	for i := range contents {
		before := &contents[i]
		if !stays(*before) {
			continue
		}
		if forced {
			if err := r.force(ctx, cr, before, fmt.Sprintf("snapshot %q stays in the member", snapshot.RootOf(before))); err != nil {
				return err
			}
		}
		if err := writer.PatchContent(ctx, actor, before, snapshot.Leave(before, cr.Name)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// releaseCopies removes the record that the member may have copies of other members' shared
// volumes, so that the volumes can be destroyed. The copies stay in the member, with policy Retain.
// The member's Pods are gone, unless the deregistration is forced.
func (r *Leaver) releaseCopies(ctx context.Context, cr *v1alpha1.ClusterRegistration, copied []corev1.PersistentVolume, forced bool) error {
	writer := r.writer(cr)
	for i := range copied {
		before := &copied[i]
		if forced {
			if err := r.force(ctx, cr, before, fmt.Sprintf("a copy of shared volume %q may stay in the member", before.Name)); err != nil {
				return err
			}
		}
		e, proven := dropping.MemberOfCopyLeaves(r.Clock, before, cr)
		if !proven {
			return unproven(cr, before)
		}
		if err := writer.DropCopyRecord(ctx, actor, before, e); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// releasing returns the evidence for releasing a host PV from a member that is being deregistered.
func (r *Leaver) releasing(cr *v1alpha1.ClusterRegistration, host *corev1.PersistentVolume) (dropping.Droppable, error) {
	e, proven := dropping.MemberLeaves(r.Clock, host, cr)
	if !proven {
		return e, unproven(cr, host)
	}
	return e, nil
}

func unproven(cr *v1alpha1.ClusterRegistration, host *corev1.PersistentVolume) error {
	return fmt.Errorf("release host PV %s from registration %s: %w", host.Name, cr.Name, proof.ErrUnproven)
}

// force reports and records what a forced deregistration will release while the member is
// unreachable.
func (r *Leaver) force(ctx context.Context, cr *v1alpha1.ClusterRegistration, about client.Object, what string) error {
	err := r.Records.RecordAbandoned(ctx, r.writer(cr), cr.Status.ClusterID,
		fmt.Sprintf("registration %q (%s=true): %s", cr.Name, v1alpha1.AnnotationForceDeregister, what))
	if err == nil {
		r.eventForced(cr, about, what)
	}
	return err
}

// leaveClaims reports, on the claims with volumes in the member, that the member was deregistered. If
// the host rejects a claim's status for good, an event on the claim reports this instead.
func (r *Leaver) leaveClaims(ctx context.Context, cr *v1alpha1.ClusterRegistration, claims []corev1.PersistentVolumeClaim) error {
	return r.reportOn(ctx, cr, claims, report.ClusterGone(cr), func(claim *corev1.PersistentVolumeClaim, err error) {
		ctrl.LoggerFrom(ctx).Info("could not report on the claim that its member was deregistered", "cluster", cr.Name, "root", client.ObjectKeyFromObject(claim), "cause", err.Error())
		r.eventLeft(cr, claim)
	})
}

// reportOn sets the Placed conditions of claims, or removes them if problem is nil. It calls rejected for a
// claim whose status the host rejects for good: no user's object keeps the registration.
func (r *Leaver) reportOn(ctx context.Context, cr *v1alpha1.ClusterRegistration, claims []corev1.PersistentVolumeClaim, problem *mirror.Refusal, rejected func(*corev1.PersistentVolumeClaim, error)) error {
	var errs []error
	for i := range claims {
		claim := &claims[i]
		err := client.IgnoreNotFound(r.ReportPlaced(ctx, r.writer(cr), claim, cr.Status.ClusterID, problem, r.Clock.Now()))
		switch {
		case err == nil:
		case unwritable(claim, err):
			rejected(claim, err)
		case len(errs) < text.NamesListed:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// largeClaim is the size in bytes above which etcd may reject a claim with its managed fields, which
// the cache lacks. The API server limits only the annotations, to the same size.
const largeClaim = 256 << 10

// unwritable reports whether the host would reject a claim's status again, for example because its
// annotations already have the maximum size.
func unwritable(claim *corev1.PersistentVolumeClaim, err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) || claim.Size() > largeClaim
}

func (r *Leaver) writer(cr *v1alpha1.ClusterRegistration) *guarded.Root {
	return guarded.NewRoot(r.Client, cr.Name, guarded.HostOnly{})
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
	return text.FirstNames(names, text.NamesListed, ", ")
}
