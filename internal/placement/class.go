package placement

import (
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// StorageClassFor returns the member's class for claims with a host class, and the rule that selected it,
// as text for messages. See mapHostClass.
func (m Member) StorageClassFor(host *storagev1.StorageClass) (name, rule string) {
	return m.mapHostClass(hostClass{
		kind: "StorageClass", name: host.Name, rules: m.Rules.classes, field: "storage.classes",
		parameter: v1alpha1.ParameterMemberClass, parameters: host.Parameters,
	})
}

// AttributesClassFor returns the member's VolumeAttributesClass for a host class, and the rule that
// selected it. See mapHostClass. host is nil if the host has no class with that name.
func (m Member) AttributesClassFor(name string, host *storagev1.VolumeAttributesClass) (member, rule string) {
	n := hostClass{
		kind: "VolumeAttributesClass", name: name, rules: m.Rules.attributesClasses, field: "storage.attributesClasses",
		parameter: v1alpha1.ParameterMemberAttributesClass,
	}
	if host != nil {
		n.parameters = host.Parameters
	}
	return m.mapHostClass(n)
}

// SnapshotClassFor returns the member's VolumeSnapshotClass for a host class, and the rule that
// selected it. See mapHostClass. host is nil if the host's class was deleted after the snapshot was
// created.
func (m Member) SnapshotClassFor(name string, host *snapshotv1.VolumeSnapshotClass) (member, rule string) {
	n := hostClass{
		kind: "VolumeSnapshotClass", name: name, rules: m.Rules.snapshotClasses, field: "storage.snapshotClasses",
		parameter: v1alpha1.ParameterMemberSnapshotClass,
	}
	if host != nil {
		n.parameters = host.Parameters
	}
	return m.mapHostClass(n)
}

// hostClass is a host class of any kind, with the rules that map it.
type hostClass struct {
	kind, name string
	// rules are the registration's exact rules for that kind. They are in the spec field named
	// field.
	rules map[string]string
	field string
	// parameter is the key in parameters by which the host class names the member's class.
	parameter  string
	parameters map[string]string
}

// mapHostClass returns the member's class for a host class, and the rule that selected it, as text for
// messages. The first rule that applies wins:
// 1. the registration's exact rule for the host class (spec.storage.classes and the like),
// 2. the host class's parameter (xylem.io/member-class and the like),
// 3. the registration's prefix (spec.storage.prefix): the host class's name without the prefix,
// 4. the same name.
//
// Only admins can write these rules. The author of a claim chooses among the host's classes, never
// among the member's.
func (m Member) mapHostClass(n hostClass) (name, rule string) {
	if name := n.rules[n.name]; name != "" {
		return name, fmt.Sprintf("a rule in spec.%s of ClusterRegistration %q", n.field, m.Registration)
	}
	if name := n.parameters[n.parameter]; name != "" {
		return name, fmt.Sprintf("the parameter %s of %s %q", n.parameter, n.kind, n.name)
	}
	if name, found := strings.CutPrefix(n.name, m.Rules.prefix); found && m.Rules.prefix != "" && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name, fmt.Sprintf("the prefix %q in ClusterRegistration %q", m.Rules.prefix, m.Registration)
	}
	return n.name, "name"
}

// classAllowsNode reports whether a class allows volumes on a node, as the scheduler does
// (k8s.io/kubernetes/pkg/apis/core/v1/helper, MatchTopologySelectorTerms): a class without terms
// allows every node, an empty term allows none, and a missing label matches no value.
func classAllowsNode(class *storagev1.StorageClass, node *corev1.Node) bool {
	if len(class.AllowedTopologies) == 0 {
		return true
	}
	var selector corev1.NodeSelector
	for _, topology := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range topology.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	// An error means that the terms are invalid, so they match nothing.
	matches, _ := nodeaffinity.NewLazyErrorNodeSelector(&selector).Match(node)
	return matches
}

// PromisedClass returns a promise's class as it was when the promise was created, but with the
// topologies of the current class with that name, if any, because a promise does not fix the
// allowed members.
func PromisedClass(promise *corev1.PersistentVolume, present *storagev1.StorageClass) *storagev1.StorageClass {
	class := hostpv.ClassOfPromise(promise)
	if present != nil {
		class.AllowedTopologies = present.AllowedTopologies
	}
	return class
}
