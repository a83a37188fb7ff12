package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// Member is a member as a place for claims and Pods.
type Member struct {
	mirror.Member
	// Rules of its registration.
	Rules Rules
	// Node is its virtual node; nil if there is none.
	Node *corev1.Node
	// Inside is what the member has; nil if the caller cannot know.
	Inside *Inside
}

// Inside is what a member has that claims and Pods need there.
type Inside struct {
	// Classes are the names of its StorageClasses.
	Classes []string
	// Namespace of the request; nil if it is not there yet.
	Namespace *corev1.Namespace
}

// MemberOf is the member of a registration, as far as the host knows it.
func MemberOf(cr *v1alpha1.ClusterRegistration, node *corev1.Node) Member {
	return Member{
		Member: mirror.Member{Registration: cr.Name, ClusterID: cr.Status.ClusterID, NodeName: cr.NodeName()},
		Rules:  RulesOf(cr), Node: node,
	}
}

// Namespace is a namespace of the host.
type Namespace struct {
	Name string
	// Labels of the namespace, if it is Known. It may be unknown for a moment: the host's cache
	// has a new claim or Pod before its namespace.
	Labels map[string]string
	Known  bool
}

// NamespaceOf is the namespace of a name as the host's cache has it; nil if it does not.
func NamespaceOf(name string, cached *corev1.Namespace) Namespace {
	if cached == nil {
		return Namespace{Name: name}
	}
	return Namespace{Name: name, Labels: cached.Labels, Known: true}
}

// Request is what is to go to a member.
type Request struct {
	// Namespace of the claim or Pod.
	Namespace Namespace
	// Class of a claim that needs a new volume; nil for anything else.
	Class *storagev1.StorageClass
	// Volume that a claim is bound to in the host; nil for none.
	Volume *corev1.PersistentVolume
	// Source that a new volume is to be created from; nil for none.
	Source *datasource.Source
}

// Answer to a request.
type Answer struct {
	// Class of the member that the volume is to be of, and by which Rule; empty if the
	// request names no class.
	Class, Rule string
	// Refusal is why the request may not go there; nil if it may.
	Refusal *mirror.Refusal
	// Waits: nothing is refused, and the member's namespace is still to be created, or the
	// labels of the host's namespace, which count, are not known yet.
	Waits bool
}

// Allowed reports whether the request may go to the member now.
func (a Answer) Allowed() bool { return a.Refusal == nil && !a.Waits }

// ByClass reports whether it is the class that the request may not go there for:
// another member may suit it, and the scheduler can choose again.
func (a Answer) ByClass() bool {
	return a.Refusal != nil && (a.Refusal.Reason == v1alpha1.ReasonClassKeepsOff || a.Refusal.Reason == v1alpha1.ReasonClassNotFound)
}

// Answer reports whether a request may go to the member, and if not, why.
func (m Member) Answer(q Request) Answer {
	var a Answer
	if q.Class != nil {
		a.Class, a.Rule = m.ClassFor(q.Class)
		if a.Refusal = m.refuseClass(q.Class, a); a.Refusal != nil {
			return a
		}
	}
	if a.Refusal = m.refuseVolume(q.Volume); a.Refusal != nil {
		return a
	}
	if a.Refusal = m.refuseSource(q.Source); a.Refusal != nil {
		return a
	}
	a.Refusal = m.refuseNamespace(q.Namespace)
	a.Waits = a.Refusal == nil && (m.Inside != nil && m.Inside.Namespace == nil || len(m.Rules.labels) > 0 && !q.Namespace.Known)
	return a
}

// classesLimit in bytes of the classes that a message says a member has.
const classesLimit = 512

func (m Member) refuseClass(class *storagev1.StorageClass, a Answer) *mirror.Refusal {
	switch {
	case !allowsNode(class, m.Node): // nobody but the scheduler goes by it
		return &mirror.Refusal{Reason: v1alpha1.ReasonClassKeepsOff, Message: fmt.Sprintf(
			"StorageClass %q excludes member %q by its allowedTopologies. Re-create the Pod on another node, or use another class",
			class.Name, m.Registration)}
	case m.Inside != nil && !slices.Contains(m.Inside.Classes, a.Class):
		has := strings.Join(slices.Sorted(slices.Values(m.Inside.Classes)), ", ")
		return &mirror.Refusal{Reason: v1alpha1.ReasonClassNotFound, Message: fmt.Sprintf(
			"member %q has no StorageClass %q (by %s); it has: %s. Create it there, or map another one in ClusterRegistration %q, spec.storage.classes",
			m.Registration, a.Class, a.Rule, sanitize.Plain(has, classesLimit), m.Registration)}
	}
	return nil
}

func (m Member) refuseVolume(volume *corev1.PersistentVolume) *mirror.Refusal {
	var labels map[string]string
	if m.Node != nil {
		labels = m.Node.Labels
	}
	if volume == nil || volumehelpers.CheckNodeAffinity(volume, labels) == nil {
		return nil
	}
	return &mirror.Refusal{Reason: v1alpha1.ReasonVolumeElsewhere, Message: fmt.Sprintf(
		"the nodeAffinity of volume %q excludes member %q. Run the Pod where the volume is", volume.Name, m.Registration)}
}
