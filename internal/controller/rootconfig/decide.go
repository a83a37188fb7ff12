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
	"github.com/xylem-io/xylem/internal/route"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	kind   string
	key    types.NamespacedName
	// users are the host's Pods that need the copy.
	users []*corev1.Pod
	// held: a leaf Pod refers to the copy. Looked up only if there are no users.
	held bool
	// suspended: nothing may be removed at present.
	suspended bool
	// namespace in the member.
	namespace *corev1.Namespace
	// leaf copy of ours; foreign if something that is not stands in its place.
	leaf    client.Object
	foreign bool
	// read: the root was read, as it is due.
	read bool
	// want is the translation of the root; nil if the root is absent, or, with a
	// refusal, if it is not to be pushed.
	want    client.Object
	refusal *mirror.Refusal
	// drift of leaf from want.
	drift mirror.ConfigDrift
}

// decision is what to do next. The set is closed.
type decision interface{ decision() }

type (
	// nothing to do.
	nothing struct{}
	// create the copy.
	create struct{ leaf client.Object }
	// update its contents, and the UID of its root.
	update struct{}
	// remove it, for good or to be made anew.
	remove struct{}
	// tell the users why they cannot have it.
	tell struct{ refusal *mirror.Refusal }
)

func (nothing) decision() {}
func (create) decision()  {}
func (update) decision()  {}
func (remove) decision()  {}
func (tell) decision()    {}

func decide(o observed) decision {
	switch {
	case o.leaf != nil && o.leaf.GetDeletionTimestamp() != nil:
		return nothing{} // its end wakes us
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
	case o.drift == mirror.ConfigImmutable:
		return o.withdraw()
	case o.drift == mirror.ConfigChanged || rootUID(o.leaf) != rootUID(o.want):
		return update{}
	}
	return nothing{}
}

func (o observed) withdraw() decision {
	if o.leaf == nil || o.suspended {
		return nothing{}
	}
	return remove{}
}

func (o observed) conflict() *mirror.Refusal {
	return &mirror.Refusal{Reason: v1alpha1.ReasonNameTaken, Message: fmt.Sprintf(
		"member %s has a %s %s of its own in namespace %s: it is left alone, and the Pod does not start before it is gone. Use another name, or have it removed there",
		o.member.Registration, o.kind, o.key.Name, o.key.Namespace)}
}

// pushable reports whether copies may be put into the member's namespace.
func (o observed) pushable() bool {
	usable, _ := mirror.UseNamespace(o.key.Namespace, o.namespace, o.member)
	return usable
}

func rootUID(leaf client.Object) types.UID {
	origin, _ := mirror.OriginOf(leaf)
	return origin.UID
}

// ours reports whether an object is the copy of the root of the same name. A
// stamp that was copied to another name says nothing.
func ours(leaf client.Object, hostID string) bool {
	origin, stamped := mirror.OriginIn(hostID, leaf)
	return stamped && origin.Root == client.ObjectKeyFromObject(leaf)
}

// use says how a Pod of the host needs what it refers to.
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
	case mirror.IsDaemonSetPod(pod), pod.DeletionTimestamp != nil,
		mirror.Finished(pod):
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
	return slices.Contains(mirror.References(pod), mirror.Reference{Kind: kind, Name: name})
}

// refers reports whether a Pod refers to it at all.
func refers(pod *corev1.Pod, kind, name string) bool {
	return slices.ContainsFunc(mirror.References(pod), func(ref mirror.Reference) bool { return ref.Kind == kind && ref.Name == name })
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
