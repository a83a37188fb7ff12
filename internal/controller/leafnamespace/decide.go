package leafnamespace

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// minIdleTime is how long a namespace must have been neither needed nor occupied before Xylem deletes
	// it. It is long enough that replacing a Pod or reinstalling a chart does not delete the
	// namespace.
	minIdleTime = 30 * time.Second
	// emptyCheckInterval is the delay before a namespace that could not be proven empty is checked again.
	// No event reports the deletion of a foreign object.
	emptyCheckInterval = 10 * time.Minute
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	// root is the namespace in the host, leaf the one in the member.
	root, leaf *corev1.Namespace
	// needed means that an object in the host's namespace is, or will be, placed in the member. It is
	// computed only while the namespace is not occupied.
	needed bool
	// occupied means that the namespace in the member contains leaves.
	occupied bool
	// applied contains the label keys that Xylem owns according to the leaf's managed fields.
	// It is computed only if the leaf has unexpected Pod Security labels.
	applied sets.Set[string]
	// idle is how long the namespace has been neither needed nor occupied.
	idle time.Duration
	// suspended means that deletions in the member are suspended.
	suspended bool
}

// decision is the next step, one of the types below.
type decision interface{ isDecision() }

type (
	// nothing means that there is nothing to do.
	nothing struct{}
	// createLeaf creates the leaf namespace.
	createLeaf struct{ leaf *corev1.Namespace }
	// relabelLeaf patches the leaf namespace's labels and annotations.
	relabelLeaf struct{ leaf *corev1.Namespace }
	// waitForIdle waits until the quiet period has passed.
	waitForIdle struct{ rest time.Duration }
	// removeLeaf deletes the leaf namespace if it is proven empty.
	removeLeaf struct{}
)

func (nothing) isDecision()     {}
func (createLeaf) isDecision()  {}
func (relabelLeaf) isDecision() {}
func (waitForIdle) isDecision() {}
func (removeLeaf) isDecision()  {}

func decideNamespace(o observed) decision {
	switch {
	case o.leaf == nil:
		there := placement.Member{Member: o.member, Rules: o.rules}
		if o.needed && o.root != nil && o.root.DeletionTimestamp == nil && there.AnswerRequest(placement.Request{Namespace: placement.NamespaceOf(o.root.Name, o.root)}).AllowedNow() {
			return createLeaf{mirror.LeafNamespace(o.root, o.member)}
		}
		return nothing{}
	case o.leaf.DeletionTimestamp != nil, !mirror.IsNamespaceCreatedByXylem(o.leaf, o.member.HostID):
		return nothing{}
	case o.needed || o.occupied:
		return o.decideLabels()
	case o.suspended:
		return nothing{} // after an admin's confirmation, the link is re-created
	case o.idle < minIdleTime:
		return waitForIdle{minIdleTime - o.idle}
	}
	return removeLeaf{}
}

// decideLabels returns the decision that keeps the labels and annotations of a namespace in use up to
// date.
func (o observed) decideLabels() decision {
	if o.root == nil || o.root.DeletionTimestamp != nil {
		return nothing{} // Pods may still run in it, so do not change its Pod Security level
	}
	want := mirror.LeafNamespace(o.root, o.member)
	after := o.leaf.DeepCopy()
	for key, theirs := range o.unexpectedLabels() {
		switch {
		case o.applied.Has(key):
			delete(after.Labels, key) // the host no longer sets this label
		case mirror.KeepsPodSecurityLabel(key, theirs, o.root):
			delete(want.Labels, key)
		}
	}
	maps.Copy(after.Labels, want.Labels)
	maps.Copy(after.Annotations, want.Annotations)
	if maps.Equal(after.Labels, o.leaf.Labels) && maps.Equal(after.Annotations, o.leaf.Annotations) {
		return nothing{}
	}
	return relabelLeaf{after}
}

// unexpectedLabels returns the leaf's Pod Security labels that differ from the desired ones, because
// either the host's labels changed or someone in the member set them.
func (o observed) unexpectedLabels() map[string]string {
	labels := mirror.PodSecurityLabels(o.leaf)
	want := mirror.LeafNamespace(o.root, o.member).Labels
	maps.DeleteFunc(labels, func(key, value string) bool { return want[key] == value })
	return labels
}

// podNeedsNamespace reports whether a Pod needs the namespace, because it is, or will be, pushed to the
// member. Xylem does not push Pods of DaemonSets. A finished Pod does not need the namespace, but
// its leaf keeps the namespace occupied while the leaf exists.
func podNeedsNamespace(pod *corev1.Pod, m mirror.Member) bool {
	switch {
	case podspec.IsDaemonSetPod(pod), pod.DeletionTimestamp != nil,
		podstatus.IsPodFinished(pod):
		return false
	case pod.Spec.NodeName != "":
		return m.HasNode(pod.Spec.NodeName)
	}
	return m.HasNode(pod.Status.NominatedNodeName)
}

// claimNeedsNamespace reports whether a claim needs the namespace, because its volume is, or will be, in the
// member.
func claimNeedsNamespace(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	if placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" {
		return placed == m.ClusterID
	}
	return m.HasNode(claim.Annotations[route.AnnSelectedNode]) && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == ""
}

// labelKeysOfFields returns the label keys in a managed fields entry (FieldsV1).
func labelKeysOfFields(fields map[string]any) sets.Set[string] {
	keys := sets.New[string]()
	metadata, ok := fields["f:metadata"].(map[string]any)
	if !ok {
		return keys
	}
	labels, ok := metadata["f:labels"].(map[string]any)
	if !ok {
		return keys
	}
	for field := range labels {
		if key, found := strings.CutPrefix(field, "f:"); found {
			keys.Insert(key)
		}
	}
	return keys
}
