package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// Observed is all that a decision is taken on; nil is absent.
type Observed struct {
	Member mirror.Member
	Rules  placement.Rules
	// Nominated: the host's scheduler shows in the root where it is about to bind it.
	Nominated bool
	Root      *corev1.Pod
	// Leaf Pod of ours by that name, for whichever root its origin says.
	Leaf   *corev1.Pod
	Origin mirror.Origin
	// Node is the member's virtual node.
	Node *corev1.Node
	// Others are the other nodes that the root and its unbound claims name.
	Others map[string]*corev1.Node
	// Namespace in the member.
	Namespace *corev1.Namespace
	// Claims of the root's volumes.
	Claims []Claim
	// Copies names those of the root's ConfigMaps and Secrets; without the UID of a
	// namespace if the cache has none yet.
	Copies mirror.Copies
	// Missing is what of them root_config has still to copy, and Lacking says what can
	// not be copied though the Pod needs it. Looked up only while there is no leaf.
	Missing []string
	Lacking *mirror.Refusal
}

// Decision is the next step for a Pod.
type Decision interface{ decision() }

// Decisions.
type (
	// Nothing to do; Problem, if any, is what the user has to know meanwhile.
	Nothing struct{ Problem *mirror.Refusal }
	// Create the leaf Pod.
	Create struct{ Leaf *corev1.Pod }
	// AwaitReferences that root_config is to copy, or that the host lacks, which is the
	// problem then: watches of the copies enqueue the Pod, and those of the host, which
	// are not watched, are read again.
	AwaitReferences struct{ Problem *mirror.Refusal }
	// MarkPushed records on the root which leaf Pod runs for it.
	MarkPushed struct{}
	// MarkWithdrawn records that none does any more, so that one may again.
	MarkWithdrawn struct{}
	// MarkAwaiting withdraws what was said against the root: it waits for the volume
	// of a claim, which is about to be created.
	MarkAwaiting struct{ Claim string }
	// Repeat on the Pod what root_pvc reports on a claim.
	Repeat struct {
		Claim   string
		Problem *mirror.Refusal
	}
	// Update what may change of the leaf Pod.
	Update struct{ Drift podspec.Drift }
	// AddDebug adds the ephemeral containers that the leaf lacks, as `kubectl debug` adds
	// them to the root.
	AddDebug struct{}
	// Remove the leaf Pod. If RootGone, the root's absence is to be proven first.
	Remove struct {
		Grace    *int64
		RootGone bool
		Why      string
	}
	// Finish the root Pod, once the leaf is proven gone.
	Finish struct{}
)

func (Nothing) decision()         {}
func (Create) decision()          {}
func (AwaitReferences) decision() {}
func (MarkPushed) decision()      {}
func (MarkWithdrawn) decision()   {}
func (MarkAwaiting) decision()    {}
func (Repeat) decision()          {}
func (Update) decision()          {}
func (AddDebug) decision()        {}
func (Remove) decision()          {}
func (Finish) decision()          {}

func refuse(reason, format string, args ...any) Nothing {
	return Nothing{&mirror.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

func refuseDaemonSet() Nothing {
	return refuse(v1alpha1.ReasonDaemonSet, "Xylem does not push Pods of DaemonSets. Run the DaemonSet in the member, or keep this one off nodes with the label %s=true", v1alpha1.LabelVirtualNode)
}

// Next is the step for a Pod. It is pure.
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
	case podstatus.Pushed(o.Root) == corev1.ConditionTrue:
		if o.Ran() && !o.mayHaveStarted() {
			return MarkWithdrawn{}
		}
		return Nothing{} // once it is bound, leaf_pod writes its end
	}
	return o.mayGoEarly()
}

// Ran reports whether the leaf that the root's Pushed condition names was
// this member's, or one of a member that was released: claims are placed here
// only once every other member is proven empty of them, or abandoned. What runs
// early in another member, only that member's controller may deny.
func (o Observed) Ran() bool {
	return mirror.ReporterOf(o.Root).ClusterID == o.Member.ClusterID || slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return c.Root != nil && c.Root.Spec.VolumeName == "" && c.Root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID
	})
}

// mayHaveStarted reports whether the containers of an early leaf that is gone may
// have started: a kubelet waits until the last volume is bound, and no longer. A leaf
// claim that is gone was bound if its volume was mirrored. Such a Pod is not run again.
func (o Observed) mayHaveStarted() bool {
	return len(o.Claims) > 0 && !slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return !c.Mirrored && (c.Leaf == nil || c.Leaf.Spec.VolumeName == "")
	})
}

// AwaitsNode reports whether the root says that a leaf runs for it, and has no node yet.
func (o Observed) AwaitsNode() bool {
	return o.Root.Spec.NodeName == "" && podstatus.Pushed(o.Root) == corev1.ConditionTrue
}

// Concerns reports whether the Pod is, or may be about to be, this member's.
func (o Observed) Concerns() bool {
	return o.Leaf != nil || o.Root.Spec.NodeName == o.Member.NodeName || o.Root.Spec.NodeName == "" &&
		(len(podspec.ClaimNames(o.Root)) > 0 || podstatus.Pushed(o.Root) == corev1.ConditionTrue)
}

// deleting: the root's owner, or the user, has deleted it; its kubelet is us.
func (o Observed) deleting() Decision {
	switch {
	case o.Leaf != nil:
		if o.Leaf.DeletionTimestamp != nil && !shorter(o.Root.DeletionGracePeriodSeconds, o.Leaf.DeletionGracePeriodSeconds) {
			return Nothing{} // its end enqueues us
		}
		return Remove{Grace: o.Root.DeletionGracePeriodSeconds, Why: "the Pod is being deleted"}
	case o.Root.Spec.NodeName != o.Member.NodeName:
		return Nothing{} // without a node, the API server has deleted it already
	case !podstatus.Finished(o.Root):
		return Nothing{} // leaf_pod writes its end first, also if it never ran: Jobs count it
	}
	return Finish{}
}

func shorter(a, b *int64) bool { return a != nil && b != nil && *a < *b }

// bound: the root is bound to this member's node, by the scheduler or by its
// maker.
func (o Observed) bound() Decision {
	switch {
	case o.Leaf != nil && podstatus.Finished(o.Root) && podstatus.Finished(o.Leaf) && o.Leaf.DeletionTimestamp == nil && slices.ContainsFunc(o.Claims, Claim.released):
		return Remove{Why: "the Pod has ended, and Xylem is releasing its disk"}
	case o.Leaf != nil:
		return o.current()
	case podstatus.Finished(o.Root), podstatus.Pushed(o.Root) == corev1.ConditionTrue:
		return Nothing{} // it ran, and is not run again: leaf_pod writes its end
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	case placement.Admit(o.Root, o.Node) != nil:
		return Nothing{} // leaf_pod fails it, as a kubelet would
	}
	for _, c := range o.Claims {
		if c.stranded(o.Member) {
			return Nothing{} // leaf_pod fails it
		}
		if problem := c.here(o.Member); problem != nil {
			return Nothing{problem}
		}
	}
	for _, c := range o.Claims {
		if c.Leaf == nil || c.unseen() || c.released() {
			return o.awaits(c)
		}
	}
	return o.create()
}

// awaits: root_pvc creates a claim's counterpart, and reports on the claim why it
// cannot. That is said on the Pod as well; what was said before, and is over, is
// withdrawn.
func (o Observed) awaits(c Claim) Decision {
	if problem := report.ClaimProblem(c.Root, v1alpha1.ClaimPlaced); problem != nil && c.Leaf == nil && c.Root.Annotations[v1alpha1.AnnotationPlacedIn] == o.Member.ClusterID {
		return Repeat{c.Name, &mirror.Refusal{Reason: problem.Reason, Message: fmt.Sprintf("claim %q: %s", c.Name, problem.Message)}}
	}
	if shown := report.PodProblem(o.Root, v1alpha1.PodPushed); shown != nil && shown.Reason != v1alpha1.ReasonVolumeAwaited {
		return MarkAwaiting{c.Name}
	}
	return Nothing{}
}

// current keeps the leaf of a bound root current.
func (o Observed) current() Decision {
	if d := o.ended(); d != nil {
		return d
	}
	if podstatus.Pushed(o.Root) != corev1.ConditionTrue || o.Root.Annotations[v1alpha1.AnnotationLeafUID] == "" {
		return MarkPushed{} // earlier versions recorded no UID
	}
	if o.Leaf.DeletionTimestamp == nil && !podstatus.Finished(o.Leaf) && !podstatus.Finished(o.Root) {
		if drift := podspec.LeafDrift(o.Root, o.Leaf, o.Member); !drift.Empty() {
			return Update{drift}
		}
		if o.lacksDebug() {
			return AddDebug{}
		}
	}
	return Nothing{}
}

// ended removes the unfinished leaf of a root that has ended; nil if there is none. The
// root has been counted, and may have been replaced: a leaf that a restored member
// runs again would run beside the replacement.
func (o Observed) ended() Decision {
	switch {
	case !podstatus.Finished(o.Root) || podstatus.Finished(o.Leaf) || o.Leaf.DeletionTimestamp != nil:
		return nil
	case o.Root.Status.Reason == v1alpha1.ReasonPlacementFailed:
		return Remove{Why: "the member could not provision its disk"}
	}
	return Remove{Why: "the Pod has ended as " + string(o.Root.Status.Phase)}
}

// early: the leaf was created before the host has bound the root. It stays as long
// as each claim is bound here or asked for here; all bound and no node yet is
// the moment before the binding, and no reason to withdraw.
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
		// A volume that is not seen yet is no evidence of one elsewhere.
		if c.Root.Spec.VolumeName != "" && c.Volume != nil && c.here(o.Member) != nil {
			return Remove{Why: fmt.Sprintf("claim %q is bound to volume %q, which is not in member %q", c.Name, c.Volume.Name, o.Member.Registration)}
		}
	}
	if podstatus.Pushed(o.Root) != corev1.ConditionTrue || mirror.ReporterOf(o.Root).ClusterID != o.Member.ClusterID {
		return MarkPushed{}
	}
	return Nothing{}
}

// sameCluster reports whether another node is of this member's cluster: two
// registrations of one cluster share its leaves, and each has a node. The leaf of
// the other's root is the other's to withdraw.
func (o Observed) sameCluster(name string) bool {
	node := o.Others[name]
	return node != nil && node.Labels[v1alpha1.LabelVirtualNode] == "true" && node.Labels[v1alpha1.LabelClusterID] == o.Member.ClusterID
}

// elsewhere is why a claim's volume is not asked for here any more.
func (Observed) elsewhere(c Claim) string {
	selected := c.Root.Annotations[route.AnnSelectedNode]
	if selected != "" && selected == c.Root.Annotations[v1alpha1.AnnotationSteeredTo] {
		return fmt.Sprintf("the member could not provision claim %q, and Xylem tries node %q", c.Name, selected)
	}
	return "the scheduler has chosen another node"
}

// mayGoEarly decides whether the root is pushed before the host has bound it:
// some claim of it waits in the member for a consumer; each unbound one was
// asked for on this node; the bound ones are here; and it is the scheduler that
// put it here, which a tenant, who may write a claim's selected-node, cannot pretend.
func (o Observed) mayGoEarly() Decision {
	waits := false
	for _, c := range o.Claims {
		switch {
		case c.Root == nil || c.Root.DeletionTimestamp != nil || c.Foreign:
			return Nothing{}
		case c.Root.Spec.VolumeName != "":
			if c.here(o.Member) != nil || c.Leaf == nil {
				return Nothing{}
			}
		case c.Root.Annotations[route.AnnSelectedNode] != o.Member.NodeName,
			c.Root.Annotations[v1alpha1.AnnotationPlacedIn] != o.Member.ClusterID,
			c.Leaf == nil, c.Shared:
			return Nothing{}
		default:
			waits = waits || c.LeafWaits
		}
	}
	switch {
	case !waits, len(o.Root.Spec.SchedulingGates) > 0, podstatus.Finished(o.Root), o.Node == nil:
		return Nothing{}
	case o.Nominated && o.Root.Status.NominatedNodeName != o.Member.NodeName:
		return Nothing{}
	case !o.Nominated && !placement.Schedulable(o.Root, o.Node):
		return Nothing{}
	case podspec.IsDaemonSetPod(o.Root):
		return refuseDaemonSet()
	}
	return o.create()
}

// create the leaf Pod, or say why not.
func (o Observed) create() Decision {
	leaf, err := podspec.Translate(o.Root, o.Member)
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return Nothing{refusal}
	}
	there := placement.Member{Member: o.Member, Rules: o.Rules, Inside: &placement.Inside{Namespace: o.Namespace}}
	answer := there.Answer(placement.Request{Namespace: o.Root.Namespace})
	switch {
	case answer.Refusal != nil:
		return Nothing{answer.Refusal}
	case answer.Waits:
		return Nothing{} // leaf_namespace brings it, and its watch enqueues us
	case o.Copies.Namespace == "":
		return Nothing{} // the cache is about to have the host's namespace, whose event enqueues the Pod
	case o.Lacking != nil || len(o.Missing) > 0:
		return AwaitReferences{o.Lacking}
	}
	refs.PointAt(o.Copies, leaf)
	return Create{leaf}
}
