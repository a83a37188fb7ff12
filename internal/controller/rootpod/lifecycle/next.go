package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// Observed is the input of NextDecision. A nil field means that the object does not exist.
type Observed struct {
	Member mirror.Member
	Rules  placement.Rules
	// SchedulerNominates means that the host's scheduler sets the root's nominated node before it binds the
	// root.
	SchedulerNominates bool
	Root               *corev1.Pod
	// Leaf is the leaf Pod with the root's name. Origin is its stamp, which may name another root.
	Leaf   *corev1.Pod
	Origin mirror.Origin
	// Node is the virtual node of the member, or of a group of its nodes, with the name that NodeName returns.
	Node *corev1.Node
	// OtherNodes contains the nodes, other than the member's, that the root and its unbound claims name.
	OtherNodes map[string]*corev1.Node
	// HostNamespace is the root's namespace in the host.
	HostNamespace placement.Namespace
	// MemberNamespace is the member's namespace with the same name.
	MemberNamespace *corev1.Namespace
	// Rejection is why the member rejects the creation of that namespace, or nil.
	Rejection *mirror.Refusal
	// Claims are the claims that the root's volumes refer to.
	Claims []Claim
	// Copies determines the names of the copies of the root's ConfigMaps and Secrets. Its
	// namespace UID is empty if the namespace is not in the cache yet.
	Copies mirror.ConfigCopies
	// MissingCopies lists the objects, each with its kind, that root_config has not copied yet. Lacking
	// reports an object that the Pod needs but that cannot be copied. Both are computed only while
	// the Pod has no leaf, and may omit further objects.
	MissingCopies    []string
	ReferenceProblem *mirror.Refusal
	// ResizeRejected means that the member has just rejected a resize, which must not keep Xylem from other steps.
	ResizeRejected bool
}

// Decision is the next step for a Pod.
type Decision interface{ isDecision() }

// The decisions.
type (
	// Nothing means that there is nothing to do. Problem, if any, is reported to the user.
	Nothing struct{ Problem *mirror.Refusal }
	// CreateLeaf creates the leaf Pod.
	CreateLeaf struct{ Leaf *corev1.Pod }
	// AwaitReferences waits for objects that root_config has not copied yet. If the host
	// lacks one, Problem reports it. Watches of the copies enqueue the Pod. The host's
	// objects are not watched and are read periodically.
	AwaitReferences struct{ Problem *mirror.Refusal }
	// MarkCopying replaces an earlier problem on the root that concerned its references: the host has
	// all of them, and root_config has not copied Objects yet.
	MarkCopying struct{ Objects []string }
	// MarkPushed records on the root which leaf Pod runs for it.
	MarkPushed struct{}
	// MarkWithdrawn records that the root no longer has a leaf and may get another one. That the leaf is
	// gone, and that one of its claims was never bound, must be proven first.
	MarkWithdrawn struct{}
	// ChooseAgain makes the scheduler choose a node again, because it lost its nomination of this member's
	// node (podstatus.NominationLost) and waits for the volume of Claim.
	ChooseAgain struct{ Claim *corev1.PersistentVolumeClaim }
	// MarkAwaiting replaces an earlier problem on the root: the root now waits for a claim's volume,
	// which is being provisioned.
	MarkAwaiting struct{ Claim string }
	// RepeatProblem repeats on the Pod a problem that root_pvc reported on a claim.
	RepeatProblem struct {
		Claim   string
		Problem *mirror.Refusal
	}
	// CopyVolume takes the next step towards a copy of a claim's shared volume. Volume is the host PV.
	CopyVolume struct{ Claim, Volume string }
	// UpdateLeaf patches the mutable fields of the leaf Pod.
	UpdateLeaf struct{ Drift podspec.PodDrift }
	// AddDebugContainers adds the ephemeral containers that the leaf lacks, as `kubectl debug` adds
	// them to the root.
	AddDebugContainers struct{}
	// ResizeLeaf changes the resources of the leaf, as somebody resized the root.
	ResizeLeaf struct{ Drift podspec.PodDrift }
	// RemoveLeaf deletes the leaf Pod. If RootGone is set, the root's absence must be proven
	// first.
	RemoveLeaf struct {
		Grace    *int64
		RootGone bool
		Why      string
	}
	// FinishRoot completes the deletion of the root, after proof that the leaf is gone.
	FinishRoot struct{}
)

func (Nothing) isDecision()            {}
func (CreateLeaf) isDecision()         {}
func (AwaitReferences) isDecision()    {}
func (MarkCopying) isDecision()        {}
func (MarkPushed) isDecision()         {}
func (MarkWithdrawn) isDecision()      {}
func (ChooseAgain) isDecision()        {}
func (MarkAwaiting) isDecision()       {}
func (RepeatProblem) isDecision()      {}
func (CopyVolume) isDecision()         {}
func (UpdateLeaf) isDecision()         {}
func (AddDebugContainers) isDecision() {}
func (ResizeLeaf) isDecision()         {}
func (RemoveLeaf) isDecision()         {}
func (FinishRoot) isDecision()         {}

func refusalDecision(reason, format string, args ...any) Nothing {
	return Nothing{mirror.NewRefusal(reason, format, args...)}
}

func refuseDaemonSet() Nothing {
	return refusalDecision(v1alpha1.ReasonDaemonSet, "Xylem does not push Pods of DaemonSets. Run the DaemonSet in the member, or keep this one off nodes with the label %s=true", v1alpha1.LabelVirtualNode)
}

// NextDecision returns the next step for a Pod.
func NextDecision(o Observed) Decision {
	switch {
	case o.Leaf != nil && (o.Root == nil || o.Root.UID != o.Origin.UID):
		if o.Leaf.DeletionTimestamp != nil {
			return Nothing{}
		}
		return RemoveLeaf{RootGone: true, Why: "the Pod is gone"}
	case o.Root == nil:
		return Nothing{}
	case o.Root.DeletionTimestamp != nil:
		return o.decideDeleting()
	case o.boundHere():
		return o.decideBound()
	case o.Leaf != nil:
		return o.decideEarlyLeaf()
	case o.Root.Spec.NodeName != "" && o.ConcernsMember():
		return o.awaitNode()
	case !o.ConcernsMember():
		return Nothing{}
	case podstatus.HadLeafPod(o.Root):
		if o.HadLeafHere() && !o.mayHaveStarted() {
			return MarkWithdrawn{}
		}
		return Nothing{} // leaf_pod fails the root once it is bound
	}
	return o.decideEarlyPush()
}

// HadLeafHere reports whether the leaf in the root's Pushed condition belonged to this member, or to
// a member that was released. In the latter case, a claim is placed in this member, which
// requires that every other member was proven empty or abandoned. Only the other member's
// controller can determine whether an early leaf there is gone.
func (o Observed) HadLeafHere() bool {
	return mirror.ReporterOfRoot(o.Root).ClusterID == o.Member.ClusterID || slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return c.Root != nil && c.Root.Spec.VolumeName == "" && c.Root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID
	})
}

// mayHaveStarted reports whether the containers of a vanished early leaf may have started. A
// kubelet starts them once the last volume is bound. A Pod that may have started must not run again.
func (o Observed) mayHaveStarted() bool {
	return len(o.Claims) > 0 && !slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return !c.BoundHere && (c.Leaf == nil || c.Leaf.Spec.VolumeName == "")
	})
}

// ConcernsMember reports whether the Pod has a leaf in this member, is bound to it, or may be pushed to
// it.
func (o Observed) ConcernsMember() bool {
	return o.Leaf != nil || o.Member.HasNode(o.Root.Spec.NodeName) || o.Root.Spec.NodeName == "" &&
		(len(podspec.ClaimNamesOfPod(o.Root)) > 0 || podstatus.HadLeafPod(o.Root))
}

// NodeName returns the name of the member's node that the root is bound to, or that was chosen for it. If there is
// none, it returns the name of the node that represents the whole member.
func (o Observed) NodeName() string {
	names := []string{o.Root.Spec.NodeName}
	if o.Root.Spec.NodeName == "" {
		names[0] = o.Root.Status.NominatedNodeName
		for _, c := range o.Claims {
			if c.Root != nil && c.Root.Spec.VolumeName == "" {
				names = append(names, c.Root.Annotations[route.AnnSelectedNode])
			}
		}
	}
	if i := slices.IndexFunc(names, o.Member.HasNode); i >= 0 {
		return names[i]
	}
	return o.Member.NodeName
}

// boundHere reports whether the root is bound to the node of this member, or of a group of its nodes.
func (o Observed) boundHere() bool { return placement.IsPodInMember(o.Root, o.Node, o.Member) }

// nominatedHere reports whether the scheduler is about to bind the root to the node of this member, or of a group.
func (o Observed) nominatedHere() bool { return o.Member.HasNode(o.Root.Status.NominatedNodeName) }

// nodeObserved reports whether Node is the node that NodeName names, which a live read of the root may have changed, and
// represents this member or a group of its nodes.
func (o Observed) nodeObserved() bool {
	return o.Node != nil && o.Node.Name == o.NodeName() && placement.RepresentsMember(o.Node, o.Member)
}

// awaitNode returns the decision for a root that is bound to a node whose name is that of a group, if that node
// does not exist. A node of the host with such a name has a kubelet, which runs the root.
func (o Observed) awaitNode() Decision {
	if o.Node == nil && !podstatus.HadLeafPod(o.Root) && !podstatus.IsPodFinished(o.Root) {
		return o.refuseNode("does not exist")
	}
	return Nothing{}
}

// refuseNode reports what the root's node lacks. Events of the node enqueue the root.
func (o Observed) refuseNode(why string) Nothing {
	return refusalDecision(v1alpha1.ReasonSelectedNode, "Xylem does not push the Pod yet: node %q, which would represent a group of the nodes of member %q, %s. Check spec.nodes of ClusterRegistration %[2]q, or re-create the Pod without spec.nodeName",
		o.NodeName(), o.Member.Registration, why)
}

// decideDeleting returns the decision for a root that is being deleted. Xylem acts as the root's kubelet.
func (o Observed) decideDeleting() Decision {
	switch {
	case o.Leaf != nil:
		if o.Leaf.DeletionTimestamp != nil && !shorterGracePeriod(o.Root.DeletionGracePeriodSeconds, o.Leaf.DeletionGracePeriodSeconds) {
			return Nothing{} // the leaf's deletion event enqueues the Pod
		}
		return RemoveLeaf{Grace: o.Root.DeletionGracePeriodSeconds, Why: "the Pod is being deleted"}
	case !o.boundHere():
		return Nothing{} // the API server has already deleted an unbound Pod
	case !podstatus.IsPodFinished(o.Root):
		return Nothing{} // leaf_pod first writes the final status, even if the Pod never ran, because Jobs count it
	}
	return FinishRoot{}
}

func shorterGracePeriod(a, b *int64) bool { return a != nil && b != nil && *a < *b }

// decideBound returns the decision for a root that the scheduler, or the Pod's creator, has bound to this
// member's node.
func (o Observed) decideBound() Decision {
	switch {
	case o.Leaf != nil && podstatus.IsPodFinished(o.Root) && podstatus.IsPodFinished(o.Leaf) && o.Leaf.DeletionTimestamp == nil && slices.ContainsFunc(o.Claims, Claim.diskBeingReleased):
		return RemoveLeaf{Why: "the Pod has ended, and Xylem is releasing its disk"}
	case o.Leaf != nil:
		return o.keepLeafCurrent()
	case podstatus.IsPodFinished(o.Root), podstatus.HadLeafPod(o.Root):
		return Nothing{} // the root ran and must not run again; leaf_pod writes the final status
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	case o.Member.Leaving, placement.KubeletRejection(o.Root, o.Node) != nil:
		return Nothing{} // leaf_pod fails the root, as a kubelet does
	}
	for _, c := range o.Claims {
		if c.strandedInOtherMember(o.Member) {
			return Nothing{} // leaf_pod fails the root
		}
		if problem := c.whyPodMustWait(o.memberAsNode()); problem != nil && !c.bindingHere(o.Member) {
			return Nothing{problem}
		}
		if c.deletingWithDisk() {
			return refusalDecision(v1alpha1.ReasonClaimNotBound, "claim %q is being deleted, so no further Pod can use it. Delete the Pod, or re-create both the claim and the Pod", c.Name)
		}
	}
	for _, c := range o.Claims {
		if c.pendingHere(o.Member) {
			return o.decideAwaitingClaim(c)
		}
	}
	return o.decideCreate()
}

// decideAwaitingClaim returns the decision while a claim has no leaf claim, or is not bound yet. If root_pvc reports on
// the claim why this is so, the decision is to repeat that on the Pod. If the Pod shows an earlier
// problem that is resolved, the decision is to replace it.
func (o Observed) decideAwaitingClaim(c Claim) Decision {
	here := c.Root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID || mirror.ReporterOfRoot(c.Root).ClusterID == o.Member.ClusterID
	if problem := report.ClaimConditionProblem(c.Root, v1alpha1.ClaimPlaced); problem != nil && (c.Leaf == nil || c.Root.Spec.VolumeName == "") && here {
		return RepeatProblem{c.Name, mirror.NewRefusal(problem.Reason, "claim %q: %s", c.Name, problem.Message)}
	}
	return o.AwaitVolumeOf(c.Name)
}

// AwaitVolumeOf returns the decision while a claim's volume is being provisioned or copied: to replace an
// earlier problem that the Pod shows.
func (o Observed) AwaitVolumeOf(claim string) Decision {
	if shown := report.PodConditionProblem(o.Root, v1alpha1.PodPushed); shown != nil && shown.Reason != v1alpha1.ReasonVolumeAwaited {
		return MarkAwaiting{claim}
	}
	return Nothing{}
}

// keepLeafCurrent keeps the leaf of a bound root up to date.
func (o Observed) keepLeafCurrent() Decision {
	if d := o.removeEndedLeaf(); d != nil {
		return d
	}
	if podstatus.PushedStatus(o.Root) != corev1.ConditionTrue || o.Root.Annotations[v1alpha1.AnnotationLeafUID] == "" || o.conditionShowsUnbindable() {
		return MarkPushed{} // earlier versions recorded no UID
	}
	if o.Leaf.DeletionTimestamp == nil && !podstatus.IsPodFinished(o.Leaf) && !podstatus.IsPodFinished(o.Root) {
		// Without the copy, which the member's admin may delete, the leaf cannot be scheduled.
		if copied := o.copyMissingVolume(); copied != nil && o.Leaf.Spec.NodeName == "" {
			return copied
		}
		drift := podspec.PodDriftOf(o.Root, o.Leaf, o.Member)
		switch {
		case drift.Resizes() && !o.ResizeRejected:
			return ResizeLeaf{drift}
		case drift.NeedsUpdate():
			return UpdateLeaf{drift}
		case o.missesDebugContainers():
			return AddDebugContainers{}
		}
	}
	return Nothing{}
}

// removeEndedLeaf removes the unfinished leaf of a finished root, or returns nil. The root's owner may have
// counted and replaced it, so a leaf that a restored member starts again could run alongside the
// replacement.
func (o Observed) removeEndedLeaf() Decision {
	switch {
	case !podstatus.IsPodFinished(o.Root) || podstatus.IsPodFinished(o.Leaf) || o.Leaf.DeletionTimestamp != nil:
		return nil
	case o.Root.Status.Reason == v1alpha1.ReasonPlacementFailed:
		return RemoveLeaf{Why: "the member could not provision its disk"}
	}
	return RemoveLeaf{Why: "the Pod has ended with phase " + string(o.Root.Status.Phase)}
}

// decideEarlyLeaf returns the decision for a leaf that was created before the host bound the root. The leaf
// stays as long as each claim is bound or requested in this member. If all claims are bound, the
// scheduler is about to bind the Pod, so the leaf must stay.
func (o Observed) decideEarlyLeaf() Decision {
	if o.Leaf.DeletionTimestamp != nil {
		return Nothing{}
	}
	if name := o.Root.Spec.NodeName; name != "" {
		if o.OtherNodes[name] == nil || o.nodeOfSameCluster(name) {
			return Nothing{}
		}
		return RemoveLeaf{Why: "the Pod was bound to node " + strconv.Quote(name)}
	}
	if d := o.removeEndedLeaf(); d != nil {
		return d
	}
	for _, c := range o.Claims {
		if c.Root == nil {
			return RemoveLeaf{Why: "claim " + strconv.Quote(c.Name) + " is gone"}
		}
		if o.requestedOutside(c) {
			return RemoveLeaf{Why: o.whyRequestedElsewhere(c)}
		}
		// A volume that is not in the cache yet may be in this member.
		if c.Root.Spec.VolumeName != "" && c.Volume != nil && c.whyPodMustWait(o.Member) != nil {
			return RemoveLeaf{Why: fmt.Sprintf("claim %q is bound to volume %q, which is not in member %q", c.Name, c.Volume.Name, o.Member.Registration)}
		}
	}
	if !o.earlyLeafRecorded() {
		return MarkPushed{}
	}
	if copied := o.copyMissingVolume(); copied != nil && o.Leaf.Spec.NodeName == "" {
		return copied
	}
	return Nothing{}
}

// requestedOutside reports whether a claim's volume is no longer requested from this member, or from the group of its nodes for
// which the leaf was created. If the group's Node is missing, the leaf stays: it may run, and the Node may come back.
func (o Observed) requestedOutside(c Claim) bool {
	selected := c.Root.Annotations[route.AnnSelectedNode]
	switch {
	case c.Root.Spec.VolumeName != "", selected == o.Member.NodeName, o.Member.HasNode(selected) && o.OtherNodes[selected] == nil:
		return false
	}
	return !o.nodeOfSameCluster(selected) || o.leafOutsideGroup(selected)
}

// earlyLeafRecorded reports whether the root's condition describes its early leaf.
func (o Observed) earlyLeafRecorded() bool {
	return podstatus.PushedStatus(o.Root) == corev1.ConditionTrue && mirror.ReporterOfRoot(o.Root).ClusterID == o.Member.ClusterID && o.conditionShowsUnbindable() == o.UnbindableLeafRuns()
}

// UnbindableLeafRuns reports whether a leaf that has a node in the member runs, or may run, although the host's
// scheduler cannot bind the root to the virtual node. For example, an admin cordoned the node while the
// scheduler restarted.
func (o Observed) UnbindableLeafRuns() bool {
	scheduled := podstatus.FindPodCondition(o.Root.Status.Conditions, corev1.PodScheduled)
	return o.Root.Spec.NodeName == "" && o.Leaf.Spec.NodeName != "" &&
		scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable &&
		(o.Node == nil || !placement.SchedulableOnNode(o.Root, o.Node))
}

// conditionShowsUnbindable reports whether the root's condition shows that the scheduler cannot bind the root.
func (o Observed) conditionShowsUnbindable() bool {
	shown := podstatus.FindPodCondition(o.Root.Status.Conditions, v1alpha1.PodPushed)
	return shown != nil && shown.Status == corev1.ConditionTrue && shown.Reason == corev1.PodReasonUnschedulable
}

// nodeOfSameCluster reports whether another node belongs to this member's cluster. Two registrations of
// one cluster share its leaves but have separate nodes. Only the registration that a root belongs
// to withdraws its leaf.
func (o Observed) nodeOfSameCluster(name string) bool {
	node := o.OtherNodes[name]
	return node != nil && node.Labels[v1alpha1.LabelVirtualNode] == "true" && node.Labels[v1alpha1.LabelClusterID] == o.Member.ClusterID
}

// leafOutsideGroup reports whether a group of this member's nodes was selected for a claim after the leaf was created for another
// one, and the leaf has not started. A leaf whose volumes exist stays: they determine where the root is bound.
func (o Observed) leafOutsideGroup(selected string) bool {
	group, ok := podspec.GroupSelectorOf(o.OtherNodes[selected])
	return ok && o.Member.HasNode(selected) && !podspec.IsKeptToGroup(o.Leaf, group) && !o.mayHaveStarted()
}

// whyRequestedElsewhere returns why a claim's volume is no longer requested in this member.
func (o Observed) whyRequestedElsewhere(c Claim) string {
	selected := c.Root.Annotations[route.AnnSelectedNode]
	if source, has := mirror.DataSourceOf(c.Root); has && source.IsInOneMember() {
		return fmt.Sprintf("the data source of claim %q is not in member %q", c.Name, o.Member.Registration)
	}
	if selected != "" && selected == c.Root.Annotations[v1alpha1.AnnotationSteeredTo] {
		return fmt.Sprintf("the member could not provision claim %q, and Xylem chose node %q", c.Name, selected)
	}
	return "the scheduler has chosen another node"
}

// decideEarlyPush decides whether the root is pushed before the host has bound it. Its claims must be
// requested in this member. The scheduler must have chosen the node, because a tenant can write a
// claim's selected-node annotation.
func (o Observed) decideEarlyPush() Decision {
	d := o.pushIfRequested()
	if d == (Nothing{}) && !o.Member.Leaving && o.Node != nil && !podstatus.IsPodFinished(o.Root) {
		if c := o.claimLackingNomination(); c != nil {
			return ChooseAgain{c}
		}
	}
	return d
}

func (o Observed) pushIfRequested() Decision {
	if o.nominatedHere() && refs.HasTooManyReferences(o.Root) {
		return o.decideCreate() // reports the problem; such a Pod's claims are not read
	}
	claim, ready, problem := o.claimsRequestedHere()
	chosen := o.SchedulerNominates && o.nominatedHere() || !o.SchedulerNominates && o.Node != nil && placement.SchedulableOnNode(o.Root, o.Node)
	switch {
	case o.Member.Leaving, claim == "", len(o.Root.Spec.SchedulingGates) > 0, podstatus.IsPodFinished(o.Root), !o.nodeObserved():
		return Nothing{}
	case problem != nil && chosen:
		return Nothing{problem} // the scheduler does not know that the node cannot mount the volume
	case problem != nil:
		return Nothing{}
	case !ready && mirror.ReporterOfRoot(o.Root).ClusterID != o.Member.ClusterID:
		return o.AwaitVolumeOf(claim) // instead of the problem in the member where the claim was before
	case !ready, !chosen:
		return Nothing{}
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	}
	return o.decideCreate()
}

// claimLackingNomination returns the first claim that waits for this Pod, although the scheduler does not show that
// it chose this member's node. A claim that is being provisioned, or that another Pod waits for, is not affected.
func (o Observed) claimLackingNomination() *corev1.PersistentVolumeClaim {
	if !o.SchedulerNominates || !podstatus.NominationLost(o.Root) {
		return nil
	}
	for _, c := range o.Claims {
		if c.Root != nil && !c.NotOwnedByPod && !c.WantedByOtherPod && c.Root.DeletionTimestamp == nil && c.Root.Spec.VolumeName == "" &&
			o.Member.HasNode(c.Root.Annotations[route.AnnSelectedNode]) &&
			c.Root.Annotations[volumehelpers.AnnStorageProvisioner] == v1alpha1.ProvisionerName &&
			(c.Leaf == nil || c.LeafClassWaits && c.Leaf.Spec.VolumeName == "" && c.Leaf.Annotations[route.AnnSelectedNode] == "") {
			return c.Root
		}
	}
	return nil
}

// claimsRequestedHere returns the first unbound claim, if each unbound claim is requested in this member. ready
// reports whether all leaf claims exist and at least one of them waits for a consumer. problem is the
// reason why a bound claim's volume cannot be mounted in this member, although the volume's node
// affinity lets the scheduler choose the member.
func (o Observed) claimsRequestedHere() (claim string, ready bool, problem *mirror.Refusal) {
	exist, waits := true, false
	for _, c := range o.Claims {
		switch {
		case c.Root == nil || c.Root.DeletionTimestamp != nil || c.NotOwnedByPod:
			return "", false, nil
		case c.Root.Spec.VolumeName != "":
			elsewhere := c.whyPodMustWait(o.Member)
			if elsewhere == nil && c.awaitsLeafClaim() || elsewhere != nil && !c.volumeAllowsNode(o.Node) {
				return "", false, nil
			}
			problem = cmp.Or(problem, elsewhere)
		case c.Root.Annotations[route.AnnSelectedNode] != o.NodeName(),
			c.Root.Annotations[v1alpha1.AnnotationPlacedIn] != o.Member.ClusterID,
			c.Leaf != nil && c.UsedByOlderPod:
			return "", false, nil
		default:
			claim = cmp.Or(claim, c.Name)
			exist, waits = exist && c.Leaf != nil, waits || c.LeafClassWaits
		}
	}
	return claim, exist && waits, problem
}

// decideCreate returns CreateLeaf, or a decision that reports why the leaf Pod cannot be created. Copies of
// shared volumes come last, so that only Pods that can be pushed get them.
func (o Observed) decideCreate() Decision {
	if refs.HasTooManyReferences(o.Root) {
		return refusalDecision(v1alpha1.ReasonPodUnsupported, "the Pod cannot run in a member: it refers to more than %[1]d ConfigMaps and Secrets, or uses more than %[1]d claims. Remove references, or divide the Pod", refs.ReferenceLimit)
	}
	leaf, err := podspec.TranslatePod(o.Root, o.memberAsNode())
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return Nothing{refusal}
	}
	if o.NodeName() != o.Member.NodeName {
		group, ok := podspec.GroupSelectorOf(o.Node)
		switch {
		case !o.nodeObserved():
			return Nothing{} // the cache will catch up
		case !ok:
			return o.refuseNode("does not show which nodes these are (annotation " + v1alpha1.AnnotationNodeSelector + ")")
		case slices.ContainsFunc(o.Claims, o.mayBeOutsideGroup):
			podspec.PreferGroup(leaf, group)
		default:
			podspec.RequireGroup(leaf, group)
		}
	}
	answer := o.NamespaceAnswer()
	switch {
	case answer.Refusal != nil:
		return Nothing{answer.Refusal}
	case answer.MustWait:
		return Nothing{} // leaf_namespace creates the namespace, and the watch enqueues the Pod
	case o.Copies.NamespaceUID == "":
		return Nothing{} // the event of the host's namespace enqueues the Pod
	case o.ReferenceProblem != nil:
		return AwaitReferences{o.ReferenceProblem}
	case len(o.MissingCopies) > 0:
		return o.decideAwaitingCopies()
	}
	if copied := o.copyMissingVolume(); copied != nil {
		return copied
	}
	refs.PointAtCopies(o.Copies, leaf)
	return CreateLeaf{leaf}
}

// mayBeOutsideGroup reports whether the group of the root's node may lack the claim's volume. The leaf must still run where
// the volume is: the node was chosen without regard to it, by spec.nodeName or before the volume existed.
func (o Observed) mayBeOutsideGroup(c Claim) bool {
	promised := c.Volume != nil && hostpv.IsUnfulfilledPromise(c.Volume) && c.Leaf != nil && !c.LeafClassWaits
	return c.GroupsUnknown || promised || c.BoundHere && !placement.Member{Node: o.Node}.Reaches(c.Volume)
}

// memberAsNode returns the member with the name of the root's node, by which the root may select it.
func (o Observed) memberAsNode() mirror.Member {
	m := o.Member
	m.NodeName = o.NodeName()
	return m
}

// NamespaceAnswer returns whether the member's namespace may have the Pod.
func (o Observed) NamespaceAnswer() placement.Answer {
	there := placement.Member{Member: o.Member, Rules: o.Rules, Objects: &placement.MemberObjects{Namespace: o.MemberNamespace, NamespaceRejection: o.Rejection}}
	return there.AnswerRequest(placement.Request{Namespace: o.HostNamespace})
}

// decideAwaitingCopies returns the decision while root_config has not copied all objects. The member may reject a
// copy, which root_config reports only in events. So a condition that says that the host lacks an
// object must not remain.
func (o Observed) decideAwaitingCopies() Decision {
	if shown := report.PodConditionProblem(o.Root, v1alpha1.PodPushed); shown != nil {
		switch shown.Reason {
		case v1alpha1.ReasonReferenceMissing, v1alpha1.ReasonReferenceForbidden, v1alpha1.ReasonSecretUnsupported, v1alpha1.ReasonReferenceTooLarge:
			return MarkCopying{o.MissingCopies}
		}
	}
	return AwaitReferences{}
}

// copyMissingVolume returns CopyVolume for a shared volume of which this member has no bound copy, or nil.
func (o Observed) copyMissingVolume() Decision {
	for _, c := range o.Claims {
		if c.NeedsVolumeCopy && c.Leaf == nil && c.Volume != nil {
			return CopyVolume{c.Name, c.Volume.Name}
		}
	}
	return nil
}
