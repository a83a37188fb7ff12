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
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// Observed is the input of Next. A nil field means that the object does not exist.
type Observed struct {
	Member mirror.Member
	Rules  placement.Rules
	// Nominated means that the host's scheduler sets the root's nominated node before it binds the
	// root.
	Nominated bool
	Root      *corev1.Pod
	// Leaf is the leaf Pod with the root's name. Origin is its stamp, which may name another root.
	Leaf   *corev1.Pod
	Origin mirror.Origin
	// Node is the member's virtual node.
	Node *corev1.Node
	// Others contains the nodes, other than Node, that the root and its unbound claims name.
	Others map[string]*corev1.Node
	// From is the root's namespace in the host.
	From placement.Namespace
	// Namespace is the member's namespace with the same name.
	Namespace *corev1.Namespace
	// Rejection is why the member rejects the creation of that namespace, or nil.
	Rejection *mirror.Refusal
	// Claims are the claims that the root's volumes refer to.
	Claims []Claim
	// Copies determines the names of the copies of the root's ConfigMaps and Secrets. Its
	// namespace UID is empty if the namespace is not in the cache yet.
	Copies mirror.Copies
	// Missing lists the objects, each with its kind, that root_config has not copied yet. Lacking
	// reports an object that the Pod needs but that cannot be copied. Both are computed only while
	// the Pod has no leaf, and may omit further objects.
	Missing []string
	Lacking *mirror.Refusal
}

// Decision is the next step for a Pod.
type Decision interface{ decision() }

// The decisions.
type (
	// Nothing means that there is nothing to do. Problem, if any, is reported to the user.
	Nothing struct{ Problem *mirror.Refusal }
	// Create creates the leaf Pod.
	Create struct{ Leaf *corev1.Pod }
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
	// Repeat repeats on the Pod a problem that root_pvc reported on a claim.
	Repeat struct {
		Claim   string
		Problem *mirror.Refusal
	}
	// CopyVolume takes the next step towards a copy of a claim's shared volume. Volume is the host PV.
	CopyVolume struct{ Claim, Volume string }
	// Update patches the mutable fields of the leaf Pod.
	Update struct{ Drift podspec.Drift }
	// AddDebug adds the ephemeral containers that the leaf lacks, as `kubectl debug` adds
	// them to the root.
	AddDebug struct{}
	// ReportResize reports that the root was resized and its leaf was not.
	ReportResize struct{}
	// Remove deletes the leaf Pod. If RootGone is set, the root's absence must be proven
	// first.
	Remove struct {
		Grace    *int64
		RootGone bool
		Why      string
	}
	// Finish completes the deletion of the root, after proof that the leaf is gone.
	Finish struct{}
)

func (Nothing) decision()         {}
func (Create) decision()          {}
func (AwaitReferences) decision() {}
func (MarkCopying) decision()     {}
func (MarkPushed) decision()      {}
func (MarkWithdrawn) decision()   {}
func (ChooseAgain) decision()     {}
func (MarkAwaiting) decision()    {}
func (Repeat) decision()          {}
func (CopyVolume) decision()      {}
func (Update) decision()          {}
func (AddDebug) decision()        {}
func (ReportResize) decision()    {}
func (Remove) decision()          {}
func (Finish) decision()          {}

func refuse(reason, format string, args ...any) Nothing {
	return Nothing{mirror.Refuse(reason, format, args...)}
}

func refuseDaemonSet() Nothing {
	return refuse(v1alpha1.ReasonDaemonSet, "Xylem does not push Pods of DaemonSets. Run the DaemonSet in the member, or keep this one off nodes with the label %s=true", v1alpha1.LabelVirtualNode)
}

// Next returns the next step for a Pod.
func Next(o Observed) Decision {
	switch {
	case o.Leaf != nil && (o.Root == nil || o.Root.UID != o.Origin.UID):
		if o.Leaf.DeletionTimestamp != nil {
			return Nothing{}
		}
		return Remove{RootGone: true, Why: "the Pod is gone"}
	case o.Root == nil:
		return Nothing{}
	case o.Root.DeletionTimestamp != nil:
		return o.deleting()
	case o.Root.Spec.NodeName == o.Member.NodeName:
		return o.bound()
	case o.Leaf != nil:
		return o.early()
	case !o.Concerns():
		return Nothing{}
	case podstatus.HadLeaf(o.Root):
		if o.Ran() && !o.mayHaveStarted() {
			return MarkWithdrawn{}
		}
		return Nothing{} // leaf_pod fails the root once it is bound
	}
	return o.mayGoEarly()
}

// Ran reports whether the leaf in the root's Pushed condition belonged to this member, or to
// a member that was released. In the latter case, a claim is placed in this member, which
// requires that every other member was proven empty or abandoned. Only the other member's
// controller can determine whether an early leaf there is gone.
func (o Observed) Ran() bool {
	return mirror.ReporterOf(o.Root).ClusterID == o.Member.ClusterID || slices.ContainsFunc(o.Claims, func(c Claim) bool {
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

// Concerns reports whether the Pod has a leaf in this member, is bound to it, or may be pushed to
// it.
func (o Observed) Concerns() bool {
	return o.Leaf != nil || o.Root.Spec.NodeName == o.Member.NodeName || o.Root.Spec.NodeName == "" &&
		(len(podspec.ClaimNames(o.Root)) > 0 || podstatus.HadLeaf(o.Root))
}

// deleting returns the decision for a root that is being deleted. Xylem acts as the root's kubelet.
func (o Observed) deleting() Decision {
	switch {
	case o.Leaf != nil:
		if o.Leaf.DeletionTimestamp != nil && !shorter(o.Root.DeletionGracePeriodSeconds, o.Leaf.DeletionGracePeriodSeconds) {
			return Nothing{} // the leaf's deletion event enqueues the Pod
		}
		return Remove{Grace: o.Root.DeletionGracePeriodSeconds, Why: "the Pod is being deleted"}
	case o.Root.Spec.NodeName != o.Member.NodeName:
		return Nothing{} // the API server has already deleted an unbound Pod
	case !podstatus.Finished(o.Root):
		return Nothing{} // leaf_pod first writes the final status, even if the Pod never ran, because Jobs count it
	}
	return Finish{}
}

func shorter(a, b *int64) bool { return a != nil && b != nil && *a < *b }

// bound returns the decision for a root that the scheduler, or the Pod's creator, has bound to this
// member's node.
func (o Observed) bound() Decision {
	switch {
	case o.Leaf != nil && podstatus.Finished(o.Root) && podstatus.Finished(o.Leaf) && o.Leaf.DeletionTimestamp == nil && slices.ContainsFunc(o.Claims, Claim.released):
		return Remove{Why: "the Pod has ended, and Xylem is releasing its disk"}
	case o.Leaf != nil:
		return o.current()
	case podstatus.Finished(o.Root), podstatus.HadLeaf(o.Root):
		return Nothing{} // the root ran and must not run again; leaf_pod writes the final status
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	case o.Member.Leaving, placement.Admit(o.Root, o.Node) != nil:
		return Nothing{} // leaf_pod fails the root, as a kubelet does
	}
	for _, c := range o.Claims {
		if c.stranded(o.Member) {
			return Nothing{} // leaf_pod fails the root
		}
		if problem := c.here(o.Member); problem != nil && !c.binding(o.Member) {
			return Nothing{problem}
		}
		if c.ending() {
			return refuse(v1alpha1.ReasonClaimNotBound, "claim %q is being deleted, so no further Pod can use it. Delete the Pod, or re-create both the claim and the Pod", c.Name)
		}
	}
	for _, c := range o.Claims {
		if c.pending(o.Member) {
			return o.awaits(c)
		}
	}
	return o.create()
}

// awaits returns the decision while a claim has no leaf claim, or is not bound yet. If root_pvc reports on
// the claim why this is so, the decision is to repeat that on the Pod. If the Pod shows an earlier
// problem that is resolved, the decision is to replace it.
func (o Observed) awaits(c Claim) Decision {
	here := c.Root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID || mirror.ReporterOf(c.Root).ClusterID == o.Member.ClusterID
	if problem := report.ClaimProblem(c.Root, v1alpha1.ClaimPlaced); problem != nil && (c.Leaf == nil || c.Root.Spec.VolumeName == "") && here {
		return Repeat{c.Name, mirror.Refuse(problem.Reason, "claim %q: %s", c.Name, problem.Message)}
	}
	return o.Awaiting(c.Name)
}

// Awaiting returns the decision while a claim's volume is being provisioned or copied: to replace an
// earlier problem that the Pod shows.
func (o Observed) Awaiting(claim string) Decision {
	if shown := report.PodProblem(o.Root, v1alpha1.PodPushed); shown != nil && shown.Reason != v1alpha1.ReasonVolumeAwaited {
		return MarkAwaiting{claim}
	}
	return Nothing{}
}

// current keeps the leaf of a bound root up to date.
func (o Observed) current() Decision {
	if d := o.ended(); d != nil {
		return d
	}
	if podstatus.Pushed(o.Root) != corev1.ConditionTrue || o.Root.Annotations[v1alpha1.AnnotationLeafUID] == "" || o.shownUnbindable() {
		return MarkPushed{} // earlier versions recorded no UID
	}
	if o.Leaf.DeletionTimestamp == nil && !podstatus.Finished(o.Leaf) && !podstatus.Finished(o.Root) {
		// Without the copy, which the member's admin may delete, the leaf cannot be scheduled.
		if copied := o.uncopied(); copied != nil && o.Leaf.Spec.NodeName == "" {
			return copied
		}
		if drift := podspec.LeafDrift(o.Root, o.Leaf, o.Member); !drift.Empty() {
			return Update{drift}
		}
		if o.missesDebugContainers() {
			return AddDebug{}
		}
		if podspec.Resized(o.Root, o.Leaf) {
			return ReportResize{}
		}
	}
	return Nothing{}
}

// ended removes the unfinished leaf of a finished root, or returns nil. The root's owner may have
// counted and replaced it, so a leaf that a restored member starts again could run alongside the
// replacement.
func (o Observed) ended() Decision {
	switch {
	case !podstatus.Finished(o.Root) || podstatus.Finished(o.Leaf) || o.Leaf.DeletionTimestamp != nil:
		return nil
	case o.Root.Status.Reason == v1alpha1.ReasonPlacementFailed:
		return Remove{Why: "the member could not provision its disk"}
	}
	return Remove{Why: "the Pod has ended with phase " + string(o.Root.Status.Phase)}
}

// early returns the decision for a leaf that was created before the host bound the root. The leaf
// stays as long as each claim is bound or requested in this member. If all claims are bound, the
// scheduler is about to bind the Pod, so the leaf must stay.
func (o Observed) early() Decision {
	if o.Leaf.DeletionTimestamp != nil {
		return Nothing{}
	}
	if name := o.Root.Spec.NodeName; name != "" {
		if o.Others[name] == nil || o.sameCluster(name) {
			return Nothing{}
		}
		return Remove{Why: "the Pod was bound to node " + strconv.Quote(name)}
	}
	if d := o.ended(); d != nil {
		return d
	}
	for _, c := range o.Claims {
		if c.Root == nil {
			return Remove{Why: "claim " + strconv.Quote(c.Name) + " is gone"}
		}
		if selected := c.Root.Annotations[route.AnnSelectedNode]; c.Root.Spec.VolumeName == "" && selected != o.Member.NodeName && !o.sameCluster(selected) {
			return Remove{Why: o.elsewhere(c)}
		}
		// A volume that is not in the cache yet may be in this member.
		if c.Root.Spec.VolumeName != "" && c.Volume != nil && c.here(o.Member) != nil {
			return Remove{Why: fmt.Sprintf("claim %q is bound to volume %q, which is not in member %q", c.Name, c.Volume.Name, o.Member.Registration)}
		}
	}
	if !o.recorded() {
		return MarkPushed{}
	}
	if copied := o.uncopied(); copied != nil && o.Leaf.Spec.NodeName == "" {
		return copied
	}
	return Nothing{}
}

// recorded reports whether the root's condition describes its early leaf.
func (o Observed) recorded() bool {
	return podstatus.Pushed(o.Root) == corev1.ConditionTrue && mirror.ReporterOf(o.Root).ClusterID == o.Member.ClusterID && o.shownUnbindable() == o.Unbindable()
}

// Unbindable reports whether a leaf that has a node in the member runs, or may run, although the host's
// scheduler cannot bind the root to the virtual node. For example, an admin cordoned the node while the
// scheduler restarted.
func (o Observed) Unbindable() bool {
	scheduled := podstatus.Condition(o.Root.Status.Conditions, corev1.PodScheduled)
	return o.Root.Spec.NodeName == "" && o.Leaf.Spec.NodeName != "" &&
		scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable &&
		(o.Node == nil || !placement.Schedulable(o.Root, o.Node))
}

// shownUnbindable reports whether the root's condition shows that the scheduler cannot bind the root.
func (o Observed) shownUnbindable() bool {
	shown := podstatus.Condition(o.Root.Status.Conditions, v1alpha1.PodPushed)
	return shown != nil && shown.Status == corev1.ConditionTrue && shown.Reason == corev1.PodReasonUnschedulable
}

// sameCluster reports whether another node belongs to this member's cluster. Two registrations of
// one cluster share its leaves but have separate nodes. Only the registration that a root belongs
// to withdraws its leaf.
func (o Observed) sameCluster(name string) bool {
	node := o.Others[name]
	return node != nil && node.Labels[v1alpha1.LabelVirtualNode] == "true" && node.Labels[v1alpha1.LabelClusterID] == o.Member.ClusterID
}

// elsewhere returns why a claim's volume is no longer requested in this member.
func (o Observed) elsewhere(c Claim) string {
	selected := c.Root.Annotations[route.AnnSelectedNode]
	if source, has := datasource.Of(c.Root); has && source.Placed() {
		return fmt.Sprintf("the data source of claim %q is not in member %q", c.Name, o.Member.Registration)
	}
	if selected != "" && selected == c.Root.Annotations[v1alpha1.AnnotationSteeredTo] {
		return fmt.Sprintf("the member could not provision claim %q, and Xylem chose node %q", c.Name, selected)
	}
	return "the scheduler has chosen another node"
}

// mayGoEarly decides whether the root is pushed before the host has bound it. Its claims must be
// requested in this member. The scheduler must have chosen the node, because a tenant can write a
// claim's selected-node annotation.
func (o Observed) mayGoEarly() Decision {
	d := o.pushEarly()
	if d == (Nothing{}) && !o.Member.Leaving && o.Node != nil && !podstatus.Finished(o.Root) {
		if c := o.unnominated(); c != nil {
			return ChooseAgain{c}
		}
	}
	return d
}

func (o Observed) pushEarly() Decision {
	if o.Root.Status.NominatedNodeName == o.Member.NodeName && refs.TooMany(o.Root) {
		return o.create() // reports the problem; such a Pod's claims are not read
	}
	claim, ready, problem := o.requested()
	chosen := o.Nominated && o.Root.Status.NominatedNodeName == o.Member.NodeName || !o.Nominated && o.Node != nil && placement.Schedulable(o.Root, o.Node)
	switch {
	case o.Member.Leaving, claim == "", len(o.Root.Spec.SchedulingGates) > 0, podstatus.Finished(o.Root), o.Node == nil:
		return Nothing{}
	case problem != nil && chosen:
		return Nothing{problem} // the scheduler does not know that the node cannot mount the volume
	case problem != nil:
		return Nothing{}
	case !ready && mirror.ReporterOf(o.Root).ClusterID != o.Member.ClusterID:
		return o.Awaiting(claim) // instead of the problem in the member where the claim was before
	case !ready, !chosen:
		return Nothing{}
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	}
	return o.create()
}

// unnominated returns the first claim that waits for this Pod, although the scheduler does not show that
// it chose this member's node. A claim that is being provisioned, or that another Pod waits for, is not affected.
func (o Observed) unnominated() *corev1.PersistentVolumeClaim {
	if !o.Nominated || !podstatus.NominationLost(o.Root) {
		return nil
	}
	for _, c := range o.Claims {
		if c.Root != nil && !c.Foreign && !c.Wanted && c.Root.DeletionTimestamp == nil && c.Root.Spec.VolumeName == "" &&
			c.Root.Annotations[route.AnnSelectedNode] == o.Member.NodeName &&
			c.Root.Annotations[volumehelpers.AnnStorageProvisioner] == v1alpha1.ProvisionerName &&
			(c.Leaf == nil || c.LeafWaits && c.Leaf.Spec.VolumeName == "" && c.Leaf.Annotations[route.AnnSelectedNode] == "") {
			return c.Root
		}
	}
	return nil
}

// requested returns the first unbound claim, if each unbound claim is requested in this member. ready
// reports whether all leaf claims exist and at least one of them waits for a consumer. problem is the
// reason why a bound claim's volume cannot be mounted in this member, although the volume's node
// affinity lets the scheduler choose the member.
func (o Observed) requested() (claim string, ready bool, problem *mirror.Refusal) {
	exist, waits := true, false
	for _, c := range o.Claims {
		switch {
		case c.Root == nil || c.Root.DeletionTimestamp != nil || c.Foreign:
			return "", false, nil
		case c.Root.Spec.VolumeName != "":
			elsewhere := c.here(o.Member)
			if elsewhere == nil && c.awaitsLeaf() || elsewhere != nil && !c.allows(o.Node) {
				return "", false, nil
			}
			problem = cmp.Or(problem, elsewhere)
		case c.Root.Annotations[route.AnnSelectedNode] != o.Member.NodeName,
			c.Root.Annotations[v1alpha1.AnnotationPlacedIn] != o.Member.ClusterID,
			c.Leaf != nil && c.Shared:
			return "", false, nil
		default:
			claim = cmp.Or(claim, c.Name)
			exist, waits = exist && c.Leaf != nil, waits || c.LeafWaits
		}
	}
	return claim, exist && waits, problem
}

// create returns Create, or a decision that reports why the leaf Pod cannot be created. Copies of
// shared volumes come last, so that only Pods that can be pushed get them.
func (o Observed) create() Decision {
	if refs.TooMany(o.Root) {
		return refuse(v1alpha1.ReasonPodUnsupported, "the Pod cannot run in a member: it refers to more than %[1]d ConfigMaps and Secrets, or uses more than %[1]d claims. Remove references, or divide the Pod", refs.Limit)
	}
	leaf, err := podspec.Translate(o.Root, o.Member)
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return Nothing{refusal}
	}
	answer := o.Answer()
	switch {
	case answer.Refusal != nil:
		return Nothing{answer.Refusal}
	case answer.Waits:
		return Nothing{} // leaf_namespace creates the namespace, and the watch enqueues the Pod
	case o.Copies.Namespace == "":
		return Nothing{} // the event of the host's namespace enqueues the Pod
	case o.Lacking != nil:
		return AwaitReferences{o.Lacking}
	case len(o.Missing) > 0:
		return o.copying()
	}
	if copied := o.uncopied(); copied != nil {
		return copied
	}
	refs.PointAt(o.Copies, leaf)
	return Create{leaf}
}

// Answer returns whether the member's namespace may have the Pod.
func (o Observed) Answer() placement.Answer {
	there := placement.Member{Member: o.Member, Rules: o.Rules, Inside: &placement.Inside{Namespace: o.Namespace, Rejection: o.Rejection}}
	return there.Answer(placement.Request{Namespace: o.From})
}

// copying returns the decision while root_config has not copied all objects. The member may reject a
// copy, which root_config reports only in events. So a condition that says that the host lacks an
// object must not remain.
func (o Observed) copying() Decision {
	if shown := report.PodProblem(o.Root, v1alpha1.PodPushed); shown != nil {
		switch shown.Reason {
		case v1alpha1.ReasonReferenceMissing, v1alpha1.ReasonReferenceForbidden, v1alpha1.ReasonSecretUnsupported, v1alpha1.ReasonReferenceTooLarge:
			return MarkCopying{o.Missing}
		}
	}
	return AwaitReferences{}
}

// uncopied returns CopyVolume for a shared volume of which this member has no bound copy, or nil.
func (o Observed) uncopied() Decision {
	for _, c := range o.Claims {
		if c.Copied && c.Leaf == nil && c.Volume != nil {
			return CopyVolume{c.Name, c.Volume.Name}
		}
	}
	return nil
}
