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
	// quiet is how long a namespace must have been unneeded before it is
	// removed: Pods that are replaced, and charts that are installed again, find
	// it still there.
	quiet = 30 * time.Second
	// again is how long a namespace that could not be proven empty is left alone:
	// no event shows when a stranger's object goes.
	again = 10 * time.Minute
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	// root is the host's namespace, leaf the member's.
	root, leaf *corev1.Namespace
	// needed: something in the host's namespace is, or is about to be, placed in
	// the member. Not looked up while leaves are there.
	needed bool
	// occupied: leaves of Xylem's are in the member's namespace.
	occupied bool
	// applied are the keys of the leaf's labels that we wrote, as its managed
	// fields tell. Looked up only if it has unexpected Pod Security labels.
	applied sets.Set[string]
	// idle is for how long it has been neither needed nor occupied.
	idle time.Duration
	// suspended: nothing may be destroyed at present.
	suspended bool
}

// decision is what to do next. The set is closed.
type decision interface{ decision() }

type (
	// nothing to do.
	nothing struct{}
	// create the leaf namespace.
	create struct{ leaf *corev1.Namespace }
	// relabel it.
	relabel struct{ leaf *corev1.Namespace }
	// linger: it is not needed, and will be removed after a while.
	linger struct{ rest time.Duration }
	// remove it, if it is proven to hold nothing.
	remove struct{}
)

func (nothing) decision() {}
func (create) decision()  {}
func (relabel) decision() {}
func (linger) decision()  {}
func (remove) decision()  {}

func decide(o observed) decision {
	switch {
	case o.leaf == nil:
		there := placement.Member{Member: o.member, Rules: o.rules}
		if o.needed && o.root != nil && o.root.DeletionTimestamp == nil && there.Answer(placement.Request{Namespace: o.root.Name}).Allowed() {
			return create{mirror.LeafNamespace(o.root, o.member)}
		}
		return nothing{}
	case o.leaf.DeletionTimestamp != nil, !mirror.MadeByUs(o.leaf, o.member.HostID):
		return nothing{}
	case o.needed || o.occupied:
		return o.current()
	case o.suspended:
		return nothing{} // the link is re-created when an admin confirms
	case o.idle < quiet:
		return linger{quiet - o.idle}
	}
	return remove{}
}

// current keeps what is in use as the host's is.
func (o observed) current() decision {
	if o.root == nil || o.root.DeletionTimestamp != nil {
		return nothing{} // on its way out: what runs there ends by the rules it began with
	}
	want := mirror.LeafNamespace(o.root, o.member)
	after := o.leaf.DeepCopy()
	for key, theirs := range o.unexpected() {
		switch {
		case o.applied.Has(key):
			delete(after.Labels, key) // the host had asked for it
		case mirror.KeepPodSecurity(key, theirs, o.root):
			delete(want.Labels, key)
		}
	}
	maps.Copy(after.Labels, want.Labels)
	maps.Copy(after.Annotations, want.Annotations)
	if maps.Equal(after.Labels, o.leaf.Labels) && maps.Equal(after.Annotations, o.leaf.Annotations) {
		return nothing{}
	}
	return relabel{after}
}

// unexpected are the Pod Security labels of the leaf that are not as Xylem wants
// them: what the host took off or changed, or what somebody in the member put on.
func (o observed) unexpected() map[string]string {
	labels := mirror.PodSecurityLabels(o.leaf)
	want := mirror.LeafNamespace(o.root, o.member).Labels
	maps.DeleteFunc(labels, func(key, value string) bool { return want[key] == value })
	return labels
}

// needsPod reports whether a Pod of the host is, or is about to be, the
// member's to run. What a DaemonSet makes is not pushed, and what has ended
// needs no namespace to be created; the leaf that it may still have keeps one.
func needsPod(pod *corev1.Pod, m mirror.Member) bool {
	switch {
	case podspec.IsDaemonSetPod(pod), pod.DeletionTimestamp != nil,
		podstatus.Finished(pod):
		return false
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName == m.NodeName
	}
	return pod.Status.NominatedNodeName == m.NodeName
}

// needsClaim reports whether a claim of the host has, or is about to have, its
// volume in the member.
func needsClaim(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	if placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" {
		return placed == m.ClusterID
	}
	return claim.Annotations[route.AnnSelectedNode] == m.NodeName && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == ""
}

// madeByKubernetes reports whether an object is one that Kubernetes itself puts
// into each namespace.
func madeByKubernetes(resource, name string) bool {
	switch resource {
	case "serviceaccounts":
		return name == "default"
	case "configmaps":
		return name == "kube-root-ca.crt"
	}
	return false
}

// passing reports whether a kind holds only notes of what has happened.
func passing(group, resource string) bool {
	return resource == "events" && (group == "" || group == "events.k8s.io")
}

// labelKeys are the keys of labels in a managed fields entry (FieldsV1).
func labelKeys(fields map[string]any) sets.Set[string] {
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
