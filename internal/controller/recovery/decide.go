package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// observed is the input of Decide. A nil field means that the object does not exist.
type observed struct {
	Member mirror.Member
	Now    time.Time
	// SchedulerNominates reports whether the host's scheduler sets status.nominatedNodeName before it binds a
	// Pod.
	SchedulerNominates bool
	// Namespace is the claims' namespace.
	Namespace placement.Namespace
	// Claim is the claim of the request, or nil if it does not exist.
	Claim *observedClaim
	// ClaimGroup contains the claims that must be in the same member: Claim, the other claims of its Pods,
	// the claims of other Pods that use those, and so on. It lacks deleted claims.
	ClaimGroup []observedClaim
	// Shared are the host PVs of the Pods' other claims with shared volumes, which several members can
	// use.
	Shared []*corev1.PersistentVolume
	// Pods are the Pods that use a claim of the group, have not finished, and are not bound to a
	// node yet.
	Pods []corev1.Pod
	// Destinations contains all members that have a virtual node, and a member with spec.nodes once for each of its
	// virtual nodes.
	Destinations []placement.Candidate
}

// observedClaim is a root claim and its class.
type observedClaim struct {
	Root *corev1.PersistentVolumeClaim
	// Class is nil unless it is one of Xylem's classes, in mirror mode.
	Class *storagev1.StorageClass
	// Volume is the host PV that the claim names. It is not read for the claim of the request.
	Volume  *corev1.PersistentVolume
	Timeout time.Duration
	// StillProvisioning reports whether an abandoned call of this member's provisioner may still create the
	// claim's volume.
	StillProvisioning bool
	// MayBeProvisioning reports whether this member's provisioner may be creating the claim's volume. Unlike
	// StillProvisioning, it includes a first call that has not failed yet.
	MayBeProvisioning bool
	// BindsImmediately reports whether the class of the leaf claim binds immediately, so that no Pod affects
	// where its volume is provisioned.
	BindsImmediately bool
	// Source is the claim's data source, or nil if it has none.
	Source *mirror.DataSource
}

// pinnedBySource reports whether only one member, the one with the data source, can create the claim.
func (c observedClaim) pinnedBySource() bool { return c.Source != nil && c.Source.IsInOneMember() }

// volumeNotRequested reports whether Xylem may not select a node for the claim yet.
func (c observedClaim) volumeNotRequested() bool {
	_, recorded := mirror.DataSourceRecordOf(c.Root)
	return c.Root.Annotations[volumehelpers.AnnStorageProvisioner] != v1alpha1.ProvisionerName && !recorded
}

// decision is the next step. The types below are the only ones.
type decision interface{ isDecision() }

type (
	// nothing means that the claim needs no action for the duration Again, or, if Again is 0, until
	// the next event.
	nothing struct{ Again time.Duration }
	// removeRecords removes recovery's annotations from a claim that has its volume.
	removeRecords struct{}
	// lowerCapacity publishes less capacity here, so that the claim, and others of its size, no longer fit. It
	// only spares these claims an attempt. moveClaims does not depend on it: the scheduler keeps to the node
	// that moveClaims selects.
	lowerCapacity struct{}
	// moveClaims reassigns the claims to a node.
	moveClaims struct {
		Claims    []observedClaim
		To        *corev1.Node
		Attempted report.AttemptedMembers
		Why       *mirror.Refusal // nil if the claims follow another claim
	}
	// freeClaims lets the scheduler select among all members again, because a round has ended.
	freeClaims struct {
		Claims    []observedClaim
		Attempted report.AttemptedMembers
	}
	// recordNoCandidate records that no other member remains.
	recordNoCandidate struct {
		Claims    []observedClaim
		Attempted report.AttemptedMembers
		Why       *mirror.Refusal
	}
)

func (nothing) isDecision()           {}
func (removeRecords) isDecision()     {}
func (lowerCapacity) isDecision()     {}
func (moveClaims) isDecision()        {}
func (freeClaims) isDecision()        {}
func (recordNoCandidate) isDecision() {}

// schedulerFollowTime is the minimum time for the scheduler to follow a reassigned claim. The scheduler
// detects within a second that its PreBind has failed, and backs off for up to ten seconds
// (kube-scheduler's podMaxBackoffSeconds).
const schedulerFollowTime = 15 * time.Second

// truncationAllowance is the maximum by which a time shrinks when it is truncated to seconds.
const truncationAllowance = time.Second

// requestCheckInterval is how often a claim is checked for which the host's PV controller has not requested a
// volume yet.
const requestCheckInterval = time.Second

// decideWhenRequested returns the next step for the claim. The policy on Xylem's account lets it select a node only
// after the PV controller has requested the volume, which takes a moment, or for a claim whose source
// is recorded.
func decideWhenRequested(o observed) decision {
	d := o.decideReassignment()
	if move, ok := d.(moveClaims); ok && slices.ContainsFunc(move.Claims, observedClaim.volumeNotRequested) {
		return nothing{requestCheckInterval}
	}
	return d
}

func (o observed) decideReassignment() decision {
	switch {
	case o.Claim == nil || o.Claim.Root.DeletionTimestamp != nil:
		return nothing{}
	case o.Claim.Root.Spec.VolumeName != "":
		return o.decideForBound()
	case o.Claim.Class == nil:
		return nothing{}
	}
	if d, follows := o.followDataSource(); follows {
		return d
	}
	if d, follows := o.followReassignedClaim(); follows {
		return d
	}
	if !o.memberSelectedFor(*o.Claim) {
		return nothing{}
	}
	if d, split := o.rejoinBoundClaim(); split {
		return d
	}
	why, until := o.failureEvidence()
	switch {
	case why == nil && (o.reassignedAndWaiting() || o.podEventsNotReceived()):
		return nothing{o.Claim.Timeout} // events of Pods without a node do not reach the member's controllers
	case why == nil:
		return nothing{}
	}
	if wait := until.Sub(o.Now); wait > 0 {
		return nothing{wait} // a driver that lacks capacity in one topology segment may have it in another
	}
	return o.decideAfterTimeout(why)
}

// decideForBound returns the decision for a bound claim. Once the claim has its volume, recovery removes
// its annotations, because events have already reported what they record. A claim that is bound to
// a promise has its volume once the promise is fulfilled. Until then, leaf_pod needs the attempted
// members.
func (o observed) decideForBound() decision {
	root := o.Claim.Root
	if hostpv.IsPromiseName(root.Spec.VolumeName) && !report.PromiseHasDisk(root) {
		return nothing{}
	}
	if root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID && hasRecords(root) {
		return removeRecords{}
	}
	return nothing{}
}

// hasRecords reports whether the claim has annotations about its reassignment or about attempted
// members.
func hasRecords(root *corev1.PersistentVolumeClaim) bool {
	_, reassigned := root.Annotations[v1alpha1.AnnotationSteeredTo]
	_, attempted := root.Annotations[v1alpha1.AnnotationTried]
	return reassigned || attempted
}

// memberSelectedFor reports whether the scheduler or Xylem selected this member for a claim.
func (o observed) memberSelectedFor(c observedClaim) bool {
	return c.Root.Spec.VolumeName == "" && o.Member.HasNode(c.selectedNode())
}

func (c observedClaim) selectedNode() string { return c.Root.Annotations[route.AnnSelectedNode] }

// followDataSource reassigns claims to the member that has the data source of another claim of their
// group, because their Pod can only run there.
func (o observed) followDataSource() (decision, bool) {
	var to string
	var behind []observedClaim
	for _, c := range o.ClaimGroup {
		node := c.Root.Annotations[v1alpha1.AnnotationSteeredTo]
		switch {
		case c.Class == nil || c.Root.Spec.VolumeName != "":
			return nil, false
		case c.pinnedBySource() && (node == "" || node != c.selectedNode() || to != "" && to != node):
			return nil, false // the source's member is not selected yet, or the sources are in several members
		case c.pinnedBySource():
			to = node
		case o.memberSelectedFor(c):
			behind = append(behind, c)
		}
	}
	behind = slices.DeleteFunc(behind, func(c observedClaim) bool { return c.selectedNode() == to })
	if to == "" || len(behind) == 0 {
		return nil, false
	}
	for _, p := range o.Destinations {
		if p.Node.Name == to {
			tried := report.AttemptedMembersOf(behind[0].Root)
			tried.Moved = o.Now.Unix()
			return moveClaims{Claims: behind, To: p.Node, Attempted: tried}, true
		}
	}
	return nil, false
}

// followReassignedClaim reassigns claims to the member to which another claim of their group was reassigned later.
// This happens if the manager was killed between the two writes.
func (o observed) followReassignedClaim() (decision, bool) {
	for _, ahead := range o.ClaimGroup {
		to := ahead.Root.Annotations[v1alpha1.AnnotationSteeredTo]
		if to == "" || to != ahead.selectedNode() || ahead.Root.Spec.VolumeName != "" {
			continue
		}
		tried := report.AttemptedMembersOf(ahead.Root)
		var behind []observedClaim
		for _, c := range o.ClaimGroup {
			moved := report.AttemptedMembersOf(c.Root).Moved
			if o.memberSelectedFor(c) && c.selectedNode() != to && (moved < tried.Moved || moved == tried.Moved && c.selectedNode() < to) {
				behind = append(behind, c)
			}
		}
		for i := range o.Destinations {
			if o.Destinations[i].Node.Name == to && len(behind) > 0 && claimsMovable(o.ClaimGroup) {
				return moveClaims{Claims: behind, To: o.Destinations[i].Node, Attempted: tried}, true
			}
		}
	}
	return nil, false
}

// rejoinBoundClaim reassigns the claim to the member in which another claim of its group has its volume, and there to
// a virtual node that reaches this volume. Both were to be reassigned together, but the other claim's volume had just
// been created. Their Pod can only run where that volume is.
func (o observed) rejoinBoundClaim() (decision, bool) {
	var at string
	var volumes []*corev1.PersistentVolume
	for _, c := range o.ClaimGroup {
		placed := c.Root.Annotations[v1alpha1.AnnotationPlacedIn]
		switch {
		case c.Root.Spec.VolumeName == "":
		case c.Class == nil, placed == "", placed == o.Member.ClusterID && len(o.Member.NodeGroups) == 0, at != "" && at != placed:
			return nil, false // the volume is not Xylem's, or is in this member, or the volumes are in several members
		default:
			at, volumes = placed, append(volumes, c.Volume)
		}
	}
	to := o.destinationReaching(at, volumes)
	if to == nil || to.Node.Name == o.Claim.selectedNode() {
		return nil, false
	}
	tried := report.AttemptedMembersOf(o.Claim.Root)
	tried.Moved = o.Now.Unix()
	return moveClaims{Claims: []observedClaim{*o.Claim}, To: to.Node, Attempted: tried}, true
}

// destinationReaching returns the member with the given cluster ID. With spec.nodes, it returns the selected virtual node if
// this node reaches the volumes, or another one that does, preferably one to which the Pods can be scheduled.
func (o observed) destinationReaching(clusterID string, volumes []*corev1.PersistentVolume) *placement.Candidate {
	var found *placement.Candidate
	best := -1
	for i := range o.Destinations {
		p := &o.Destinations[i]
		if clusterID == "" || p.ClusterID != clusterID {
			continue
		}
		rank := 0
		switch reaches := !slices.ContainsFunc(volumes, func(v *corev1.PersistentVolume) bool { return !p.Reaches(v) }); {
		case reaches && p.Node.Name == o.Claim.selectedNode():
			rank = 3
		case reaches && p.MayRunPods(o.Pods...):
			rank = 2
		case reaches:
			rank = 1
		case clusterID == o.Member.ClusterID:
			continue // no node of this member may reach the volume, so the selection stays
		}
		if rank > best {
			found, best = p, rank
		}
	}
	return found
}

// failureEvidence returns the evidence that this member cannot satisfy the claim, and the time until which
// the member may still try: the class's timeout after the evidence began, or after the claim was
// reassigned here. A problem with the registration's rules ends that time immediately.
func (o observed) failureEvidence() (*mirror.Refusal, time.Time) {
	moved := time.Unix(report.AttemptedMembersOf(o.Claim.Root).Moved, 0)
	if problem, since := report.ClaimFailureIn(o.Claim.Root, o.Member.ClusterID); problem != nil {
		if report.ReasonFailsImmediately(problem.Reason) {
			return problem, time.Time{}
		}
		return problem, slices.MaxFunc([]time.Time{since, moved}, time.Time.Compare).Add(o.Claim.Timeout + truncationAllowance)
	}
	if o.reassignedAndWaiting() && len(o.Pods) > 0 && !o.podAboutToBindHere() {
		return o.notScheduledRefusal(), moved.Add(max(o.Claim.Timeout, schedulerFollowTime) + truncationAllowance)
	}
	if since, stranded := o.StrandedSince(); stranded {
		return o.notScheduledRefusal(), slices.MaxFunc([]time.Time{since, moved}, time.Time.Compare).Add(max(o.Claim.Timeout, schedulerFollowTime) + truncationAllowance)
	}
	return nil, time.Time{}
}

// StrandedSince reports whether the claim's selection keeps its Pods from all other members, although
// none of them can be placed here, and since when. The scheduler never removes such a selection.
// This happens if the Pod was replaced, or if this member no longer suits it. A Pod with a
// scheduling gate does not count.
func (o observed) StrandedSince() (since time.Time, is bool) {
	if !o.podEventsNotReceived() || o.podAboutToBindHere() || slices.ContainsFunc(o.ClaimGroup, func(c observedClaim) bool { return c.MayBeProvisioning }) {
		return since, false
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		c := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || podstatus.PushedStatus(pod) == corev1.ConditionTrue {
			return since, false
		}
		if is = true; c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since, is
}

// podEventsNotReceived reports whether the claim is not placed in another member, and none of its Pods is
// nominated here. The events of such Pods do not reach the member's controllers.
func (o observed) podEventsNotReceived() bool {
	placed := o.Claim.Root.Annotations[v1alpha1.AnnotationPlacedIn]
	return (placed == "" || placed == o.Member.ClusterID) && (!o.SchedulerNominates || !o.podAboutToBindHere())
}

// reassignedAndWaiting reports whether the claim was reassigned here and waits for the scheduler to follow,
// because root_pvc has not placed it.
func (o observed) reassignedAndWaiting() bool {
	return o.Member.HasNode(o.Claim.Root.Annotations[v1alpha1.AnnotationSteeredTo]) && o.Claim.Root.Annotations[v1alpha1.AnnotationPlacedIn] == ""
}

// podAboutToBindHere reports whether the scheduler is about to bind one of the Pods here.
func (o observed) podAboutToBindHere() bool {
	return slices.ContainsFunc(o.Pods, func(pod corev1.Pod) bool {
		if o.SchedulerNominates {
			return o.Member.HasNode(pod.Status.NominatedNodeName)
		}
		own := o.ownDestination()
		return own != nil && placement.SchedulableOnNode(&pod, own.Node)
	})
}

// notScheduledRefusal reports that the scheduler does not place the Pod here, with the scheduler's message.
func (o observed) notScheduledRefusal() *mirror.Refusal {
	message := "the scheduler reports no reason"
	pod := append(o.consumerPods(), o.Pods...)[0]
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			message = c.Message
		}
	}
	where := fmt.Sprintf("in member %q", o.Member.Registration)
	if node := o.Claim.selectedNode(); node != o.Member.NodeName {
		where = fmt.Sprintf("on node %q of member %q", node, o.Member.Registration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonNotScheduled, "the scheduler does not place Pod %q %s: %s", pod.Name, where, message)
}

// decideAfterTimeout returns the decision after the member's timeout.
func (o observed) decideAfterTimeout(why *mirror.Refusal) decision {
	waiting := nothing{o.Claim.Timeout}
	node := o.failedNode(why)
	if len(o.Pods) == 0 || !claimsMovable(o.ClaimGroup) && (node == "" || !claimsMovableInMember(o.ClaimGroup)) || slices.ContainsFunc(o.ClaimGroup, func(c observedClaim) bool { return c.StillProvisioning }) {
		return waiting // root_pvc reports the reason, except for slow provisioning
	}
	tried := report.AttemptedMembersOf(o.Claim.Root).BeginRound(o.Now)
	if tried.Until != 0 {
		return nothing{time.Unix(tried.Until, 0).Sub(o.Now)}
	}
	claims := slices.DeleteFunc(slices.Clone(o.ClaimGroup), func(c observedClaim) bool { return !o.memberSelectedFor(c) })
	others := o.otherSuitable(node)
	if len(others) > 0 && why.Reason == v1alpha1.ReasonOutOfSpace && o.capacityFitsHere() && o.provisionableOnAnyNode() {
		return lowerCapacity{}
	}
	known := tried.HasAttemptedNode(o.Member.ClusterID, node)
	tried = tried.WithFailedNode(o.Member, node, why)
	for _, p := range others {
		if !tried.HasAttemptedNode(p.ClusterID, p.Node.Name) {
			tried.Moved = o.Now.Unix()
			return moveClaims{claims, p.Node, tried, why}
		}
	}
	switch {
	case len(others) > 0:
		return freeClaims{claims, tried.EndRound(o.Now, o.Claim.Timeout)}
	case !known:
		return recordNoCandidate{claims, tried, why}
	}
	return waiting
}

// failedNode returns the selected virtual node if other groups of the member's nodes may satisfy the claim. Otherwise,
// it returns "", for the whole member. The volume of a leaf class that binds immediately depends on no Pod, and so
// on no group.
func (o observed) failedNode(why *mirror.Refusal) string {
	node := o.Claim.selectedNode()
	if node == o.Member.NodeName || !report.ReasonDependsOnNode(why.Reason) ||
		o.Claim.BindsImmediately && (why.Reason == v1alpha1.ReasonProvisioningFailed || why.Reason == v1alpha1.ReasonOutOfSpace) {
		return ""
	}
	return node
}

// provisionableOnAnyNode reports whether the member could have provisioned the claim on any of its nodes. If the
// claim's own Pods, their group or their other volumes exclude nodes, the nodes that remain may lack capacity
// while others have it, and a tenant could make the class look full for all tenants. One Pod must
// have waited in the member for the timeout: a Pod that has just replaced another proves nothing. None
// of this applies to a leaf class that binds immediately: its volumes depend on no Pod.
func (o observed) provisionableOnAnyNode() bool {
	if o.Claim.BindsImmediately {
		return true
	}
	if o.Claim.selectedNode() != o.Member.NodeName || len(o.Shared) > 0 || slices.ContainsFunc(o.ClaimGroup, func(c observedClaim) bool { return c.Class.Name != o.Claim.Class.Name }) ||
		slices.ContainsFunc(o.Pods, func(pod corev1.Pod) bool { return podspec.RestrictsMemberNodes(&pod, o.Member) }) {
		return false
	}
	return slices.ContainsFunc(o.Pods, func(pod corev1.Pod) bool {
		c := podstatus.FindPodCondition(pod.Status.Conditions, v1alpha1.PodPushed)
		return c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.Add(o.Claim.Timeout).After(o.Now)
	})
}

// claimsMovable reports whether another member can satisfy the claims: all have Xylem's classes, and none
// has a volume, or a data source that ties it to one member.
func claimsMovable(group []observedClaim) bool {
	return claimsMovableInMember(group) && !slices.ContainsFunc(group, observedClaim.pinnedBySource)
}

// claimsMovableInMember reports whether other nodes of the same member can satisfy the claims.
func claimsMovableInMember(group []observedClaim) bool {
	return !slices.ContainsFunc(group, func(c observedClaim) bool { return c.Class == nil || c.Root.Spec.VolumeName != "" })
}

func (o observed) ownDestination() *placement.Candidate {
	if i := slices.IndexFunc(o.Destinations, func(p placement.Candidate) bool { return p.Node.Name == o.Claim.selectedNode() }); i >= 0 {
		return &o.Destinations[i]
	}
	return nil
}

// otherSuitable returns the other members and virtual nodes that can satisfy the claims: only those of this member if it has
// the data source of one of them. If only the given virtual node
// failed, the others of this member come first, because placed claims then stay in their member. Otherwise, the order
// starts with the one with the most capacity.
func (o observed) otherSuitable(failedNode string) []placement.Verdict {
	onlyHere := !claimsMovable(o.ClaimGroup)
	found := slices.DeleteFunc(placement.Survey(o.placementQuery(), o.Destinations), func(v placement.Verdict) bool {
		here := v.ClusterID == o.Member.ClusterID
		return !v.Suitable() || onlyHere && !here || here && (failedNode == "" || v.Node.Name == failedNode)
	})
	slices.SortFunc(found, func(a, b placement.Verdict) int {
		return cmp.Or(o.compareToOwn(a, b), -cmp.Compare(a.Capacity, b.Capacity), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return found
}

// compareToOwn orders the virtual nodes of this member before those of other members.
func (o observed) compareToOwn(a, b placement.Verdict) int {
	own := func(v placement.Verdict) int {
		if v.ClusterID == o.Member.ClusterID {
			return 0
		}
		return 1
	}
	return own(a) - own(b)
}

// placementQuery asks which members can take all claims of the group, and the Pods' shared volumes.
func (o observed) placementQuery() placement.Query {
	q := placement.Query{Namespace: o.Namespace, Pods: o.consumerPods()}
	for _, c := range o.ClaimGroup {
		q.Claims = append(q.Claims, c.placementNeed())
	}
	for _, volume := range o.Shared {
		q.Claims = append(q.Claims, placement.ClaimNeed{Volume: volume})
	}
	return q
}

// placementNeed returns what the claim needs of a member.
func (c observedClaim) placementNeed() placement.ClaimNeed {
	return placement.ClaimNeed{Class: c.Class, Source: c.Source, Size: c.Root.Spec.Resources.Requests[corev1.ResourceStorage]}
}

// consumerPods returns the Pods for which the scheduler selected this member. If there are none, it
// returns all Pods without scheduling gates.
func (o observed) consumerPods() []corev1.Pod {
	chosen := slices.DeleteFunc(slices.Clone(o.Pods), func(pod corev1.Pod) bool { return !o.Member.HasNode(pod.Status.NominatedNodeName) })
	if len(chosen) > 0 {
		return chosen
	}
	return slices.DeleteFunc(slices.Clone(o.Pods), func(pod corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })
}

// capacityFitsHere reports whether this member publishes enough capacity for the claim.
func (o observed) capacityFitsHere() bool {
	own := o.ownDestination()
	return own != nil && placement.Query{Claims: []placement.ClaimNeed{o.Claim.placementNeed()}}.VerdictOn(*own).StorageObstacle == nil
}
