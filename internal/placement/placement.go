package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Member contains a member's properties on which placement depends.
type Member struct {
	mirror.Member
	// Rules are the registration's rules.
	Rules Rules
	// Node is the virtual node, or nil if the member has none. With spec.nodes, it is one of them.
	Node *corev1.Node
	// Objects contains the member's own objects. It is nil if the caller cannot read them.
	Objects *MemberObjects
}

// MemberObjects contains a member's objects on which claims and Pods depend.
type MemberObjects struct {
	// Classes are the names of the member's StorageClasses.
	Classes []string
	// Namespace is the request's namespace in the member, or nil if it does not exist yet.
	Namespace *corev1.Namespace
	// NamespaceRejection is why the member rejects the creation of that namespace, or nil.
	NamespaceRejection *mirror.Refusal
}

// MemberOfRegistration returns a registration's member, as described by the host's objects.
func MemberOfRegistration(cr *v1alpha1.ClusterRegistration, node *corev1.Node) Member {
	return Member{
		Member: mirror.Member{Registration: cr.Name, ClusterID: cr.Status.ClusterID, NodeName: cr.NodeName(), Leaving: cr.DeletionTimestamp != nil},
		Rules:  RulesOfRegistration(cr), Node: node,
	}
}

// VirtualNodeName returns the name of the virtual node, even if it does not exist yet.
func (m Member) VirtualNodeName() string {
	if m.Node != nil {
		return m.Node.Name
	}
	return m.NodeName
}

// IsGroup reports whether the virtual node represents a group of the member's nodes instead of the whole member.
func (m Member) IsGroup() bool { return m.Node != nil && m.Node.Name != m.NodeName }

// Namespace is a host namespace.
type Namespace struct {
	Name string
	// Labels are the namespace's labels, if Known is set. Known may be false briefly, because the
	// host's cache may observe a new claim or Pod before its namespace.
	Labels map[string]string
	Known  bool
}

// NamespaceOf returns the Namespace with the given name. cached is the namespace in the host's
// cache, or nil.
func NamespaceOf(name string, cached *corev1.Namespace) Namespace {
	if cached == nil {
		return Namespace{Name: name}
	}
	return Namespace{Name: name, Labels: cached.Labels, Known: true}
}

// Request describes the claim or Pod that Xylem may push to a member.
type Request struct {
	// Namespace is the host namespace of the claim or Pod.
	Namespace Namespace
	// Class is the class of a claim that needs a new volume. It is nil in all other cases.
	Class *storagev1.StorageClass
	// Volume is the host PV to which the claim is bound, or nil.
	Volume *corev1.PersistentVolume
	// Source is the data source for a new volume, or nil.
	Source *mirror.DataSource
}

// Answer is the decision on a request.
type Answer struct {
	// Class is the member's class for the volume, and Rule the rule that selected it. Both are
	// empty if the request names no class.
	Class, Rule string
	// Refusal is the reason why the request is refused, or nil.
	Refusal *mirror.Refusal
	// MustWait is set if the request is not refused, but the member's namespace does not exist yet, or
	// a rule depends on labels of the host namespace that are not known yet.
	MustWait bool
}

// AllowedNow reports whether Xylem may push to the member now.
func (a Answer) AllowedNow() bool { return a.Refusal == nil && !a.MustWait }

// RefusedByClass reports whether the class is the reason for the refusal. The scheduler can then select
// another member.
func (a Answer) RefusedByClass() bool {
	return a.Refusal != nil && (a.Refusal.Reason == v1alpha1.ReasonClassKeepsOff || a.Refusal.Reason == v1alpha1.ReasonClassNotFound)
}

// AnswerRequest decides whether Xylem may push the requested object to the member, and if not, why.
func (m Member) AnswerRequest(q Request) Answer {
	answer, obstacle := m.findObstacle(q)
	answer.Refusal = m.refusalFor(obstacle)
	return answer
}

// findObstacle returns the answer without its Refusal, and the obstacle, if any.
func (m Member) findObstacle(q Request) (a Answer, obstacle *Obstacle) {
	if q.Class != nil {
		a.Class, a.Rule = m.StorageClassFor(q.Class)
		if m.Leaving {
			return a, leavingObstacle(true)
		}
		if obstacle = m.classObstacle(q.Class, a); obstacle != nil {
			return a, obstacle
		}
	}
	if !m.Reaches(q.Volume) {
		return a, &Obstacle{Reason: v1alpha1.ReasonVolumeElsewhere, Cause: fmt.Sprintf("is excluded by the nodeAffinity of volume %q", q.Volume.Name),
			Remedy: "Run the Pod in a member that the nodeAffinity allows"}
	}
	if obstacle = cmp.Or(m.sourceObstacle(q.Source), m.namespaceObstacle(q.Namespace)); obstacle != nil {
		return a, obstacle
	}
	a.MustWait = m.Objects != nil && m.Objects.Namespace == nil || len(m.Rules.labels) > 0 && !q.Namespace.Known
	return a, nil
}

// maxClassListLength is the maximum length in bytes of the list of a member's classes in a message.
const maxClassListLength = 512

// maxNodeListLength is the maximum length in bytes of the list of a member's virtual nodes in a message.
const maxNodeListLength = 200

func (m Member) classObstacle(class *storagev1.StorageClass, a Answer) *Obstacle {
	switch {
	case !classAllowsNode(class, m.Node): // the member does not enforce host topologies
		return &Obstacle{Reason: v1alpha1.ReasonClassKeepsOff, Cause: fmt.Sprintf("is excluded by the allowedTopologies of StorageClass %q", class.Name),
			Remedy: "Re-create the Pod on another node, use another class, or change the allowedTopologies of the class"}
	case m.Objects != nil && !slices.Contains(m.Objects.Classes, a.Class):
		has := cmp.Or(strings.Join(slices.Sorted(slices.Values(m.Objects.Classes)), ", "), "none")
		return &Obstacle{Reason: v1alpha1.ReasonClassNotFound, Cause: fmt.Sprintf("has no StorageClass %q (by %s; existing classes: %s)", a.Class, a.Rule, mirror.PlainText(has, maxClassListLength)),
			Remedy: fmt.Sprintf("Create that class in the member, or map another one in ClusterRegistration %q, spec.storage.classes", m.Registration)}
	}
	return nil
}

// Reaches reports whether the node affinity of a volume, if any, allows the member's virtual node.
func (m Member) Reaches(volume *corev1.PersistentVolume) bool {
	var labels map[string]string
	if m.Node != nil {
		labels = m.Node.Labels
	}
	return volume == nil || volumehelpers.CheckNodeAffinity(volume, labels) == nil
}
