package rootconfig

import (
	"fmt"
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

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	kind   string
	key    types.NamespacedName
	// users are the host's Pods that need the copy.
	users []*corev1.Pod
	// copies names them; without the UID of a namespace if the host has none.
	copies mirror.Copies
	// held: a leaf Pod refers to the copy. Looked up only if there are no users.
	held bool
	// former copies of the root: those under its own name, which earlier versions made,
	// and those of an earlier namespace of that name.
	former []former
	// suspended: nothing may be removed at present.
	suspended bool
	// namespace in the member.
	namespace *corev1.Namespace
	// leaf copy of Xylem's; foreign if something that is not stands in its place.
	leaf    client.Object
	foreign bool
	// read: the root was read, as it is due.
	read bool
	// want is the translation of the root; nil if the root is absent, or, with a
	// refusal, if it is not to be pushed.
	want    client.Object
	refusal *mirror.Refusal
	// drift of leaf from want.
	drift refs.ConfigDrift
}

// former is a copy that no new Pod refers to.
type former struct {
	leaf client.Object
	// held: a leaf Pod refers to it.
	held bool
	// drift from the root, if that was read and is the copy's.
	drift refs.ConfigDrift
}

// decision is what to do next. The set is closed.
type decision interface{ decision() }

type (
	// nothing to do.
	nothing struct{}
	// create the copy.
	create struct{ leaf client.Object }
	// update a copy's contents, and the UID of its root.
	update struct{ leaf client.Object }
	// remove a copy, permanently or to create it again.
	remove struct{ leaf client.Object }
	// tell the users why they cannot have it.
	tell struct{ refusal *mirror.Refusal }
)

func (nothing) decision() {}
func (create) decision()  {}
func (update) decision()  {}
func (remove) decision()  {}
func (tell) decision()    {}

func decide(o observed) decision {
	if d := o.formerCopies(); d != nil {
		return d
	}
	switch {
	case o.leaf != nil && o.leaf.GetDeletionTimestamp() != nil:
		return nothing{} // its end enqueues us
	case len(o.users) == 0 && !o.held:
		return o.withdraw()
	case !o.read:
		return nothing{}
	case o.refusal != nil && o.leaf == nil:
		return tell{o.refusal}
	case o.want == nil:
		return o.withdraw()
	case o.leaf == nil && o.foreign:
		return tell{o.conflict()}
	case o.leaf == nil:
		return create{o.want}
	case o.drift == refs.ConfigImmutable:
		return o.withdraw()
	case o.drift == refs.ConfigChanged || rootUID(o.leaf) != rootUID(o.want):
		return update{o.leaf}
	}
	return nothing{}
}

// formerCopies deals with the copies of an earlier name: Xylem keeps them current while a
// leaf Pod refers to them, and removes them then. It is nil if there is nothing to do.
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
	return &mirror.Refusal{Reason: v1alpha1.ReasonNameTaken, Message: fmt.Sprintf(
		"Xylem does not push the Pod to member %q: namespace %q there has a %s %q that Xylem did not create, in place of the copy of %q. Ask the member's admin to delete it",
		o.member.Registration, o.key.Namespace, o.kind, o.copies.Name(o.key.Name), o.key.Name)}
}

// pushable reports whether copies may be put into the member's namespace.
func (o observed) pushable() bool {
	there := placement.Member{Member: o.member, Rules: o.rules, Inside: &placement.Inside{Namespace: o.namespace}}
	return there.Answer(placement.Request{Namespace: o.key.Namespace}).Allowed()
}

func rootUID(leaf client.Object) types.UID {
	origin, _ := mirror.OriginOf(leaf)
	return origin.UID
}

// ours reports whether an object is a copy of a root. A stamp that was copied to
// another name says nothing.
func ours(leaf client.Object, hostID string, root types.NamespacedName) bool {
	origin, stamped := mirror.OriginIn(hostID, leaf)
	return stamped && origin.Root == root
}

// use reports how a Pod of the host needs what it refers to.
type use int

const (
	// unused: it does not run, and will not run, in the member.
	unused use = iota
	// used: it is bound to the member's node.
	used
	// usedEarly: it may be pushed before it is bound, if a claim of it is placed here.
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

// bringsEarly reports whether a claim brings the Pods that use it to the member
// before they are bound: we placed it here, which no tenant can do, and the
// scheduler chose the member's node for it.
func bringsEarly(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID && claim.Annotations[route.AnnSelectedNode] == m.NodeName
}

// needed reports whether a Pod cannot start without what it refers to.
func needed(pod *corev1.Pod, kind, name string) bool {
	return slices.Contains(refs.Of(pod), refs.Reference{Kind: kind, Name: name})
}

// refers reports whether a Pod refers to it at all.
func refers(pod *corev1.Pod, kind, name string) bool {
	return slices.ContainsFunc(refs.Of(pod), func(ref refs.Reference) bool { return ref.Kind == kind && ref.Name == name })
}

// reading is what is remembered of the last time that a root was read.
type reading struct {
	// next is when it is due again.
	next time.Time
	// users at that time: one that is new finds the root as it is now.
	users sets.Set[types.UID]
}

// due reports whether the root has to be read for these users.
func (r reading) due(now time.Time, users []*corev1.Pod) bool {
	if r.users == nil || !now.Before(r.next) {
		return true
	}
	return slices.ContainsFunc(users, func(pod *corev1.Pod) bool { return !r.users.Has(pod.UID) })
}
