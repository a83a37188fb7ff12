package rootpod

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

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

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	// nominated: the host's scheduler shows in the root where it is about to bind it.
	nominated bool
	root      *corev1.Pod
	// leaf Pod of ours by that name, for whichever root its origin says.
	leaf   *corev1.Pod
	origin mirror.Origin
	// node is the member's virtual node.
	node *corev1.Node
	// others are the other nodes that the root and its unbound claims name.
	others map[string]*corev1.Node
	// namespace in the member.
	namespace *corev1.Namespace
	// claims of the root's volumes.
	claims []claim
	// copies names those of the root's ConfigMaps and Secrets; without the UID of a
	// namespace if the cache has none yet.
	copies mirror.Copies
	// missing is what of them root_config has still to copy, and lacking says what can
	// not be copied though the Pod needs it. Looked up only while there is no leaf.
	missing []string
	lacking *mirror.Refusal
}

// claim is one claim of the Pod.
type claim struct {
	name string
	// root claim; volume is the host PV that it is bound to, UIDs agreeing.
	root   *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	// leaf claim of this root, and whether its class waits for a consumer.
	leaf      *corev1.PersistentVolumeClaim
	leafWaits bool
	// mirrored: there is no leaf claim, and the host has a PV of this member for the
	// claim. Looked up only while the Pod has no node and its leaf is gone.
	mirrored bool
	// foreign: the Pod's generic ephemeral volume wants that name, and the claim is
	// not the Pod's.
	foreign bool
	// shared: other Pods that have not ended use the unbound claim.
	shared bool
}

type decision interface{ decision() }

type (
	// nothing to do; problem, if any, is what the user has to know meanwhile.
	nothing struct{ problem *mirror.Refusal }
	// create the leaf Pod.
	create struct{ leaf *corev1.Pod }
	// awaitReferences that root_config is to copy, or that the host lacks, which is the
	// problem then: watches of the copies enqueue the Pod, and those of the host, which
	// are not watched, are read again.
	awaitReferences struct{ problem *mirror.Refusal }
	// markPushed records on the root which leaf Pod runs for it.
	markPushed struct{}
	// markWithdrawn records that none does any more, so that one may again.
	markWithdrawn struct{}
	// markAwaiting takes back what was said against the root: it waits for the volume
	// of a claim, which is about to be made.
	markAwaiting struct{ claim string }
	// repeat on the Pod what root_pvc reports on a claim.
	repeat struct {
		claim   string
		problem *mirror.Refusal
	}
	// update what may change of the leaf Pod.
	update struct{ drift podspec.Drift }
	// remove the leaf Pod. If rootGone, the root's absence is to be proven first.
	remove struct {
		grace    *int64
		rootGone bool
		why      string
	}
	// finish the root Pod, once the leaf is proven gone.
	finish struct{}
)

func (nothing) decision()         {}
func (create) decision()          {}
func (awaitReferences) decision() {}
func (markPushed) decision()      {}
func (markWithdrawn) decision()   {}
func (markAwaiting) decision()    {}
func (repeat) decision()          {}
func (update) decision()          {}
func (remove) decision()          {}
func (finish) decision()          {}

func refuse(reason, format string, args ...any) nothing {
	return nothing{&mirror.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

func refuseDaemonSet() nothing {
	return refuse(v1alpha1.ReasonDaemonSet, "Pods of DaemonSets are not pushed to members: run one there, or keep this one off nodes labelled %s=true", v1alpha1.LabelVirtualNode)
}

func decide(o observed) decision {
	switch {
	case o.leaf != nil && (o.root == nil || o.root.UID != o.origin.UID):
		if o.leaf.DeletionTimestamp != nil {
			return nothing{}
		}
		return remove{rootGone: true, why: "its root is gone"}
	case o.root == nil:
		return nothing{}
	case o.root.DeletionTimestamp != nil:
		return o.deleting()
	case o.root.Spec.NodeName == o.member.NodeName:
		return o.bound()
	case o.leaf != nil:
		return o.early()
	case !o.concerns():
		return nothing{}
	case podstatus.Pushed(o.root) == corev1.ConditionTrue:
		if o.ran() && !o.mayHaveStarted() {
			return markWithdrawn{}
		}
		return nothing{} // once it is bound, leaf_pod writes its end
	}
	return o.mayGoEarly()
}

// ran reports whether the leaf that the root's Pushed condition tells of was
// this member's, or one of a member that was let go of: claims are placed here
// only once every other member is proven empty of them, or abandoned. What runs
// early in another member, only that member's controller may deny.
func (o observed) ran() bool {
	return mirror.ReporterOf(o.root).ClusterID == o.member.ClusterID || slices.ContainsFunc(o.claims, func(c claim) bool {
		return c.root != nil && c.root.Spec.VolumeName == "" && c.root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID
	})
}

// mayHaveStarted reports whether the containers of an early leaf that is gone may
// have started: a kubelet waits until the last volume is bound, and no longer. A leaf
// claim that is gone was bound if its volume was mirrored. Such a Pod is not run again.
func (o observed) mayHaveStarted() bool {
	return len(o.claims) > 0 && !slices.ContainsFunc(o.claims, func(c claim) bool {
		return !c.mirrored && (c.leaf == nil || c.leaf.Spec.VolumeName == "")
	})
}

// awaitsNode reports whether the root says that a leaf runs for it, and has no node yet.
func (o observed) awaitsNode() bool {
	return o.root.Spec.NodeName == "" && podstatus.Pushed(o.root) == corev1.ConditionTrue
}

// concerns reports whether the Pod is, or may be about to be, this member's.
func (o observed) concerns() bool {
	return o.leaf != nil || o.root.Spec.NodeName == o.member.NodeName || o.root.Spec.NodeName == "" &&
		(len(podspec.ClaimNames(o.root)) > 0 || podstatus.Pushed(o.root) == corev1.ConditionTrue)
}

// deleting: the root's owner, or the user, has deleted it; its kubelet is us.
func (o observed) deleting() decision {
	switch {
	case o.leaf != nil:
		if o.leaf.DeletionTimestamp != nil && !shorter(o.root.DeletionGracePeriodSeconds, o.leaf.DeletionGracePeriodSeconds) {
			return nothing{} // its end wakes us
		}
		return remove{grace: o.root.DeletionGracePeriodSeconds, why: "its root is deleted"}
	case o.root.Spec.NodeName != o.member.NodeName:
		return nothing{} // without a node, the API server has deleted it already
	case !podstatus.Finished(o.root):
		return nothing{} // leaf_pod writes its end first, also if it never ran: Jobs count it
	}
	return finish{}
}

func shorter(a, b *int64) bool { return a != nil && b != nil && *a < *b }

// bound: the root is bound to this member's node, by the scheduler or by its
// maker.
func (o observed) bound() decision {
	switch {
	case o.leaf != nil && podstatus.Finished(o.root) && podstatus.Finished(o.leaf) && o.leaf.DeletionTimestamp == nil && slices.ContainsFunc(o.claims, claim.released):
		return remove{why: "it has ended, and the disk that went with it is being released"}
	case o.leaf != nil:
		return o.current()
	case podstatus.Finished(o.root), podstatus.Pushed(o.root) == corev1.ConditionTrue:
		return nothing{} // it ran, and is not run again: leaf_pod writes its end
	case podspec.IsDaemonSetPod(o.root):
		return refuseDaemonSet()
	case placement.Admit(o.root, o.node) != nil:
		return nothing{} // leaf_pod fails it, as a kubelet would
	}
	for _, c := range o.claims {
		if c.stranded(o.member) {
			return nothing{} // leaf_pod fails it
		}
		if problem := c.here(o.member); problem != nil {
			return nothing{problem}
		}
	}
	for _, c := range o.claims {
		if c.leaf == nil || c.unseen() || c.released() {
			return o.awaits(c)
		}
	}
	return o.create()
}

// awaits: root_pvc is to make a claim's counterpart, and says on the claim why it
// cannot. That is said on the Pod as well; what was said before, and is over, is
// taken back.
func (o observed) awaits(c claim) decision {
	if problem := report.ClaimProblem(c.root, v1alpha1.ClaimPlaced); problem != nil && c.leaf == nil && c.root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID {
		return repeat{c.name, &mirror.Refusal{Reason: problem.Reason, Message: fmt.Sprintf("claim %q: %s", c.name, problem.Message)}}
	}
	for _, condition := range o.root.Status.Conditions {
		if condition.Type == v1alpha1.PodPushed && condition.Status == corev1.ConditionFalse && condition.Reason != v1alpha1.ReasonVolumeAwaited {
			return markAwaiting{c.name}
		}
	}
	return nothing{}
}

// here says why a claim keeps a bound Pod waiting; nil if its volume is in this
// member, or about to be.
func (c claim) here(m mirror.Member) *mirror.Refusal {
	switch {
	case c.root == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "there is no claim %q. Create it, or name another one in the Pod", c.name).problem
	case c.foreign:
		return refuse(v1alpha1.ReasonClaimForeign, "claim %q of the Pod's ephemeral volume exists already, and is not the Pod's: remove that claim, or rename the Pod", c.name).problem
	case c.unseen():
		return nil
	case c.root.Spec.VolumeName == "" || c.volume == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "claim %q is not bound: the Pod was bound to node %q by hand, so no scheduler asks for its volume. Leave spec.nodeName to the scheduler", c.name, m.NodeName).problem
	}
	if hostpv.IsUnfulfilled(c.volume) {
		return c.promised(m)
	}
	cluster, _, _, ours := hostpv.LeafOf(c.volume)
	switch {
	case ours && cluster != m.ClusterID && hostpv.WhenUnused(c.volume):
		return c.occupied(cluster)
	case !ours || cluster != m.ClusterID:
		return refuse(v1alpha1.ReasonVolumeUnreachable, "claim %q is bound to volume %q, which member %q cannot reach: run the Pod where the volume is, or use another claim", c.name, c.volume.Name, m.Registration).problem
	}
	return nil
}

// current keeps the leaf of a bound root current.
func (o observed) current() decision {
	if d := o.ended(); d != nil {
		return d
	}
	if podstatus.Pushed(o.root) != corev1.ConditionTrue || o.root.Annotations[v1alpha1.AnnotationLeafUID] == "" {
		return markPushed{} // earlier versions recorded no UID
	}
	if o.leaf.DeletionTimestamp == nil && !podstatus.Finished(o.leaf) && !podstatus.Finished(o.root) {
		if drift := podspec.LeafDrift(o.root, o.leaf, o.member); !drift.Empty() {
			return update{drift}
		}
	}
	return nothing{}
}

// ended removes the unfinished leaf of a root that has ended; nil if there is none. The
// root has been counted, and may have been replaced: a leaf that a restored member
// runs again would run beside the replacement.
func (o observed) ended() decision {
	switch {
	case !podstatus.Finished(o.root) || podstatus.Finished(o.leaf) || o.leaf.DeletionTimestamp != nil:
		return nil
	case o.root.Status.Reason == v1alpha1.ReasonPlacementFailed:
		return remove{why: "its disk could not be made there"}
	}
	return remove{why: "the Pod has ended as " + string(o.root.Status.Phase)}
}

// early: the leaf was made before the host has bound the root. It stays as long
// as each claim is bound here or asked for here; all bound and no node yet is
// the moment before the binding, and no reason to withdraw.
func (o observed) early() decision {
	if o.leaf.DeletionTimestamp != nil {
		return nothing{}
	}
	if name := o.root.Spec.NodeName; name != "" {
		if o.others[name] == nil || o.sameCluster(name) {
			return nothing{}
		}
		return remove{why: "its root was bound to node " + name}
	}
	if d := o.ended(); d != nil {
		return d
	}
	for _, c := range o.claims {
		if c.root == nil {
			return remove{why: "claim " + c.name + " is gone"}
		}
		if selected := c.root.Annotations[route.AnnSelectedNode]; c.root.Spec.VolumeName == "" && selected != o.member.NodeName && !o.sameCluster(selected) {
			return remove{why: o.elsewhere(c)}
		}
		// A volume that is not seen yet is no evidence of one elsewhere.
		if c.root.Spec.VolumeName != "" && c.volume != nil && c.here(o.member) != nil {
			return remove{why: fmt.Sprintf("claim %s is bound to volume %s, which is not in member %s", c.name, c.volume.Name, o.member.Registration)}
		}
	}
	if podstatus.Pushed(o.root) != corev1.ConditionTrue || mirror.ReporterOf(o.root).ClusterID != o.member.ClusterID {
		return markPushed{}
	}
	return nothing{}
}

// sameCluster reports whether another node is of this member's cluster: two
// registrations of one cluster share its leaves, and each has a node. The leaf of
// the other's root is the other's to withdraw.
func (o observed) sameCluster(name string) bool {
	node := o.others[name]
	return node != nil && node.Labels[v1alpha1.LabelVirtualNode] == "true" && node.Labels[v1alpha1.LabelClusterID] == o.member.ClusterID
}

// elsewhere is why a claim's volume is not asked for here any more.
func (observed) elsewhere(c claim) string {
	selected := c.root.Annotations[route.AnnSelectedNode]
	if selected != "" && selected == c.root.Annotations[v1alpha1.AnnotationSteeredTo] {
		return fmt.Sprintf("claim %s could not be met there and is tried on node %s", c.name, selected)
	}
	return "the scheduler has changed its mind"
}

// mayGoEarly decides whether the root is pushed before the host has bound it:
// some claim of it waits in the member for a consumer; each unbound one was
// asked for on this node; the bound ones are here; and it is the scheduler that
// put it here, which a tenant, who may write a claim's selected-node, cannot pretend.
func (o observed) mayGoEarly() decision {
	waits := false
	for _, c := range o.claims {
		switch {
		case c.root == nil || c.root.DeletionTimestamp != nil || c.foreign:
			return nothing{}
		case c.root.Spec.VolumeName != "":
			if c.here(o.member) != nil || c.leaf == nil {
				return nothing{}
			}
		case c.root.Annotations[route.AnnSelectedNode] != o.member.NodeName,
			c.root.Annotations[v1alpha1.AnnotationPlacedIn] != o.member.ClusterID,
			c.leaf == nil, c.shared:
			return nothing{}
		default:
			waits = waits || c.leafWaits
		}
	}
	switch {
	case !waits, len(o.root.Spec.SchedulingGates) > 0, podstatus.Finished(o.root), o.node == nil:
		return nothing{}
	case o.nominated && o.root.Status.NominatedNodeName != o.member.NodeName:
		return nothing{}
	case !o.nominated && !placement.Schedulable(o.root, o.node):
		return nothing{}
	case podspec.IsDaemonSetPod(o.root):
		return refuseDaemonSet()
	}
	return o.create()
}

// create the leaf Pod, or say why not.
func (o observed) create() decision {
	leaf, err := podspec.Translate(o.root, o.member)
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return nothing{refusal}
	}
	there := placement.Member{Member: o.member, Rules: o.rules, Inside: &placement.Inside{Namespace: o.namespace}}
	answer := there.Answer(placement.Request{Namespace: o.root.Namespace})
	switch {
	case answer.Refusal != nil:
		return nothing{answer.Refusal}
	case answer.Waits:
		return nothing{} // leaf_namespace brings it, and its watch wakes us
	case o.copies.Namespace == "":
		return nothing{} // the cache is about to have the host's namespace, whose event enqueues the Pod
	case o.lacking != nil || len(o.missing) > 0:
		return awaitReferences{o.lacking}
	}
	refs.PointAt(o.copies, leaf)
	return create{leaf}
}

// pushedMessage of the condition names the leaf.
func pushedMessage(leaf *corev1.Pod, m mirror.Member) string {
	return fmt.Sprintf("runs in member %s as Pod %s/%s with UID %s", m.Registration, leaf.Namespace, leaf.Name, leaf.UID)
}
