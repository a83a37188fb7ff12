package rootconfig

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	kind   string
	key    types.NamespacedName
	// users are the host's Pods that need the copy.
	users []*corev1.Pod
	// copies names the copies. Its namespace UID is empty if the host lacks the namespace.
	copies mirror.ConfigCopies
	// referredByLeafPod means that a leaf Pod refers to the copy. It is computed only if there are no
	// users.
	referredByLeafPod bool
	// former contains the root's other copies: those that have the root's name because an earlier
	// version created them, and those that belong to an earlier namespace with the same name.
	former []formerCopy
	// deletionSuspended means that deletions in the member are suspended.
	deletionSuspended bool
	// hostNamespace is the namespace in the host.
	hostNamespace placement.Namespace
	// memberNamespace is the namespace in the member.
	memberNamespace *corev1.Namespace
	// leaf is the existing copy. foreign means that a foreign object has the copy's name.
	leaf      client.Object
	nameTaken bool
	// rootRead means that a read of the root was due and was made.
	rootRead bool
	// pause is the time until the next read after this one, before jitter.
	pause time.Duration
	// want is the translation of the root. It is nil if the root does not exist or must not be pushed.
	// In the latter case, refusal is the reason.
	want    client.Object
	refusal *mirror.Refusal
	// problem is why the host does not issue the Pod's tokens. Those in the copy stay until they expire.
	problem *mirror.Refusal
	// drift is how leaf differs from want.
	drift refs.ConfigDrift
}

// formerCopy is a copy that new Pods do not refer to.
type formerCopy struct {
	leaf client.Object
	// referredByLeafPod means that a leaf Pod refers to the copy.
	referredByLeafPod bool
	// drift is how the copy differs from the root. It is computed only if the root was read and the
	// copy has the root's name.
	drift refs.ConfigDrift
}

// decision is the next step, one of the types below.
type decision interface{ isDecision() }

type (
	// doNothing means that there is nothing to do.
	doNothing struct{}
	// createCopy creates the copy.
	createCopy struct{ leaf client.Object }
	// updateCopy patches a copy's contents, and its annotation with the root's UID.
	updateCopy struct{ leaf client.Object }
	// deleteCopy deletes a copy, either permanently or to re-create it.
	deleteCopy struct{ leaf client.Object }
	// reportRefusal reports on the Pods why the object is not copied.
	reportRefusal struct{ refusal *mirror.Refusal }
)

func (doNothing) isDecision()     {}
func (createCopy) isDecision()    {}
func (updateCopy) isDecision()    {}
func (deleteCopy) isDecision()    {}
func (reportRefusal) isDecision() {}

func decideCopyAction(o observed) decision {
	if d := o.decideFormerCopies(); d != nil {
		return d
	}
	switch {
	case o.leaf != nil && o.leaf.GetDeletionTimestamp() != nil:
		return doNothing{} // the copy's deletion event enqueues the request
	case len(o.users) == 0 && !o.referredByLeafPod:
		return o.decideWithdrawal()
	case !o.rootRead:
		return doNothing{}
	case o.problem != nil:
		return reportRefusal{o.problem}
	case o.refusal != nil && (o.leaf == nil || o.refusal.Reason == v1alpha1.ReasonReferenceTooLarge):
		return reportRefusal{o.refusal} // running Pods may keep a copy from before the root grew
	case o.want == nil:
		return o.decideWithdrawal()
	case o.leaf == nil && o.nameTaken:
		return reportRefusal{o.nameTakenRefusal()}
	case o.leaf == nil:
		return createCopy{o.want}
	case o.drift == refs.ConfigImmutable:
		return o.decideWithdrawal()
	case o.drift == refs.ConfigChanged || stampedRootUID(o.leaf) != stampedRootUID(o.want):
		return updateCopy{o.leaf}
	}
	return doNothing{}
}

// decideFormerCopies returns the next step for the former copies, or nil. Xylem keeps them up to date
// while a leaf Pod refers to them, and then deletes them.
func (o observed) decideFormerCopies() decision {
	for _, f := range o.former {
		switch {
		case f.leaf.GetDeletionTimestamp() != nil:
		case !f.referredByLeafPod && !o.deletionSuspended:
			return deleteCopy{f.leaf}
		case f.referredByLeafPod && o.want != nil && f.drift == refs.ConfigChanged:
			return updateCopy{f.leaf}
		}
	}
	return nil
}

func (o observed) decideWithdrawal() decision {
	if o.leaf == nil || o.deletionSuspended {
		return doNothing{}
	}
	return deleteCopy{o.leaf}
}

func (o observed) nameTakenRefusal() *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "Xylem does not push the Pod to member %q: namespace %q there has a %s %q that Xylem did not create, in place of the copy of %q. Ask the member's admin to delete that object",
		o.member.Registration, o.key.Namespace, o.kind, o.copies.NameOfCopy(o.key.Name), o.key.Name)
}

// copiesAllowed reports whether copies may be created in the member's namespace.
func (o observed) copiesAllowed() bool {
	there := placement.Member{Member: o.member, Rules: o.rules, Objects: &placement.MemberObjects{Namespace: o.memberNamespace}}
	return there.AnswerRequest(placement.Request{Namespace: o.hostNamespace}).AllowedNow()
}

func stampedRootUID(leaf client.Object) types.UID {
	origin, _ := mirror.LeafOrigin(leaf)
	return origin.UID
}

// isCopyOfRoot reports whether the stamp shows that an object is a copy of the root.
func isCopyOfRoot(leaf client.Object, hostID string, root types.NamespacedName) bool {
	origin, stamped := mirror.LeafOriginFromHost(hostID, leaf)
	return stamped && origin.Root == root
}

// podUse describes whether a host Pod needs the copies of the objects that it refers to.
type podUse int

const (
	// copiesUnused means that the Pod does not and will not run in the member.
	copiesUnused podUse = iota
	// copiesUsed means that the Pod is bound to the member's node.
	copiesUsed
	// copiesUsedEarly means that the Pod may be pushed before it is bound, if one of its claims is
	// placed in the member, and the member is not being deregistered.
	copiesUsedEarly
)

func podUseOf(pod *corev1.Pod, m mirror.Member) podUse {
	switch {
	case podspec.IsDaemonSetPod(pod), pod.DeletionTimestamp != nil,
		podstatus.IsPodFinished(pod):
		return copiesUnused
	case m.HasNode(pod.Spec.NodeName):
		return copiesUsed
	case pod.Spec.NodeName != "", len(pod.Spec.SchedulingGates) > 0, m.Leaving:
		return copiesUnused
	case m.HasNode(pod.Status.NominatedNodeName) || pod.Status.NominatedNodeName == "":
		return copiesUsedEarly
	}
	return copiesUnused
}

// allowsEarlyPush reports whether a claim allows the Pods that use it to be pushed early: Xylem placed
// the claim in the member, which a tenant cannot fake, and the scheduler chose the member's node
// for it.
func allowsEarlyPush(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID && m.HasNode(claim.Annotations[route.AnnSelectedNode])
}

// podRequires reports whether the Pod cannot start without the object.
func podRequires(pod *corev1.Pod, kind, name string) bool {
	ref, found := refs.FindReference(pod, kind, name)
	return found && !ref.Optional
}

// podRefersTo reports whether a Pod refers to the object.
func podRefersTo(pod *corev1.Pod, kind, name string) bool {
	_, found := refs.FindReference(pod, kind, name)
	return found
}

// reading describes the last read of a root.
type reading struct {
	// next is when the next read is due.
	next time.Time
	// users are the Pods that needed the root at that time. If another Pod needs it, the root is read
	// again.
	users sets.Set[types.UID]
}

// readDue reports whether the root must be read for these users.
func (r reading) readDue(now time.Time, users []*corev1.Pod) bool {
	if r.users == nil || !now.Before(r.next) {
		return true
	}
	return slices.ContainsFunc(users, func(pod *corev1.Pod) bool { return !r.users.Has(pod.UID) })
}
