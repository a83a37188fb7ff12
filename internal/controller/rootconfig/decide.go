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
	copies mirror.Copies
	// held means that a leaf Pod refers to the copy. It is computed only if there are no
	// users.
	held bool
	// former contains the root's other copies: those that have the root's name because an earlier
	// version created them, and those that belong to an earlier namespace with the same name.
	former []former
	// suspended means that deletions in the member are suspended.
	suspended bool
	// from is the namespace in the host.
	from placement.Namespace
	// namespace is the namespace in the member.
	namespace *corev1.Namespace
	// leaf is the existing copy. foreign means that a foreign object has the copy's name.
	leaf    client.Object
	foreign bool
	// read means that a read of the root was due and was made.
	read bool
	// want is the translation of the root. It is nil if the root does not exist or must not be pushed.
	// In the latter case, refusal is the reason.
	want    client.Object
	refusal *mirror.Refusal
	// drift is how leaf differs from want.
	drift refs.ConfigDrift
}

// former is a copy that new Pods do not refer to.
type former struct {
	leaf client.Object
	// held means that a leaf Pod refers to the copy.
	held bool
	// drift is how the copy differs from the root. It is computed only if the root was read and the
	// copy has the root's name.
	drift refs.ConfigDrift
}

// decision is the next step, one of the types below.
type decision interface{ decision() }

type (
	// nothing means that there is nothing to do.
	nothing struct{}
	// create creates the copy.
	create struct{ leaf client.Object }
	// update patches a copy's contents, and its annotation with the root's UID.
	update struct{ leaf client.Object }
	// remove deletes a copy, either permanently or to re-create it.
	remove struct{ leaf client.Object }
	// reportRefusal reports on the Pods why the object is not copied.
	reportRefusal struct{ refusal *mirror.Refusal }
)

func (nothing) decision()       {}
func (create) decision()        {}
func (update) decision()        {}
func (remove) decision()        {}
func (reportRefusal) decision() {}

func decide(o observed) decision {
	if d := o.formerCopies(); d != nil {
		return d
	}
	switch {
	case o.leaf != nil && o.leaf.GetDeletionTimestamp() != nil:
		return nothing{} // the copy's deletion event enqueues the request
	case len(o.users) == 0 && !o.held:
		return o.withdraw()
	case !o.read:
		return nothing{}
	case o.refusal != nil && (o.leaf == nil || o.refusal.Reason == v1alpha1.ReasonReferenceTooLarge):
		return reportRefusal{o.refusal} // running Pods may keep a copy from before the root grew
	case o.want == nil:
		return o.withdraw()
	case o.leaf == nil && o.foreign:
		return reportRefusal{o.conflict()}
	case o.leaf == nil:
		return create{o.want}
	case o.drift == refs.ConfigImmutable:
		return o.withdraw()
	case o.drift == refs.ConfigChanged || rootUID(o.leaf) != rootUID(o.want):
		return update{o.leaf}
	}
	return nothing{}
}

// formerCopies returns the next step for the former copies, or nil. Xylem keeps them up to date
// while a leaf Pod refers to them, and then deletes them.
func (o observed) formerCopies() decision {
	for _, f := range o.former {
		switch {
		case f.leaf.GetDeletionTimestamp() != nil:
		case !f.held && !o.suspended:
			return remove{f.leaf}
		case f.held && o.want != nil && f.drift == refs.ConfigChanged:
			return update{f.leaf}
		}
	}
	return nil
}

func (o observed) withdraw() decision {
	if o.leaf == nil || o.suspended {
		return nothing{}
	}
	return remove{o.leaf}
}

func (o observed) conflict() *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonNameTaken, "Xylem does not push the Pod to member %q: namespace %q there has a %s %q that Xylem did not create, in place of the copy of %q. Ask the member's admin to delete that object",
		o.member.Registration, o.key.Namespace, o.kind, o.copies.Name(o.key.Name), o.key.Name)
}

// pushable reports whether copies may be created in the member's namespace.
func (o observed) pushable() bool {
	there := placement.Member{Member: o.member, Rules: o.rules, Inside: &placement.Inside{Namespace: o.namespace}}
	return there.Answer(placement.Request{Namespace: o.from}).Allowed()
}

func rootUID(leaf client.Object) types.UID {
	origin, _ := mirror.OriginOf(leaf)
	return origin.UID
}

// ours reports whether the stamp shows that an object is a copy of the root.
func ours(leaf client.Object, hostID string, root types.NamespacedName) bool {
	origin, stamped := mirror.OriginIn(hostID, leaf)
	return stamped && origin.Root == root
}

// use describes whether a host Pod needs the copies of the objects that it refers to.
type use int

const (
	// unused means that the Pod does not and will not run in the member.
	unused use = iota
	// used means that the Pod is bound to the member's node.
	used
	// usedEarly means that the Pod may be pushed before it is bound, if one of its claims is
	// placed in the member.
	usedEarly
)

func useOf(pod *corev1.Pod, m mirror.Member) use {
	switch {
	case podspec.IsDaemonSetPod(pod), pod.DeletionTimestamp != nil,
		podstatus.Finished(pod):
		return unused
	case pod.Spec.NodeName == m.NodeName:
		return used
	case pod.Spec.NodeName != "", len(pod.Spec.SchedulingGates) > 0:
		return unused
	case pod.Status.NominatedNodeName == m.NodeName || pod.Status.NominatedNodeName == "":
		return usedEarly
	}
	return unused
}

// bringsEarly reports whether a claim allows the Pods that use it to be pushed early: Xylem placed
// the claim in the member, which a tenant cannot fake, and the scheduler chose the member's node
// for it.
func bringsEarly(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID && claim.Annotations[route.AnnSelectedNode] == m.NodeName
}

// needed reports whether the Pod cannot start without the object.
func needed(pod *corev1.Pod, kind, name string) bool {
	ref, found := refs.Find(pod, kind, name)
	return found && !ref.Optional
}

// refers reports whether a Pod refers to the object.
func refers(pod *corev1.Pod, kind, name string) bool {
	_, found := refs.Find(pod, kind, name)
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

// due reports whether the root must be read for these users.
func (r reading) due(now time.Time, users []*corev1.Pod) bool {
	if r.users == nil || !now.Before(r.next) {
		return true
	}
	return slices.ContainsFunc(users, func(pod *corev1.Pod) bool { return !r.users.Has(pod.UID) })
}
