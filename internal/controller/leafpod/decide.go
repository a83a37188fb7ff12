package leafpod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	root   *corev1.Pod
	// leaf Pod of this very root.
	leaf *corev1.Pod
	// last is that leaf as it was when it had ended, if that was seen.
	last *corev1.Pod
	// node is the member's virtual node.
	node *corev1.Node
}

type decision interface{ decision() }

type (
	nothing struct{}
	// show the leaf's status.
	show struct{ status corev1.PodStatus }
	// fail the root. If leafGone, the leaf's absence is to be proven first.
	fail struct {
		status   corev1.PodStatus
		leafGone bool
	}
)

func (nothing) decision() {}
func (show) decision()    {}
func (fail) decision()    {}

// Reasons of Pods that Xylem fails, beside a kubelet's own (mirror.Admit).
const (
	reasonLeafVanished = "LeafPodVanished"
	reasonTerminated   = "Terminated"
)

func decide(o observed) decision {
	if o.root == nil || o.root.Spec.NodeName != o.member.NodeName {
		return nothing{} // not bound yet, or not here: the scheduler has the word
	}
	if o.leaf != nil {
		want := mirror.RootPodStatus(o.root, o.leaf, o.member)
		// What has ended has been counted: a leaf that a restored member brings back
		// does not make it run again.
		if ended(o.root) && want.Phase != o.root.Status.Phase || mirror.PodStatusCurrent(o.root, want) {
			return nothing{}
		}
		return show{want}
	}
	switch {
	case ended(o.root):
		return nothing{}
	case o.last != nil:
		return show{mirror.RootPodStatus(o.root, o.last, o.member)}
	case o.root.DeletionTimestamp != nil:
		return fail{mirror.FailedPodStatus(o.root, reasonTerminated, "the Pod was deleted"), true}
	case !pushed(o.root):
		return o.admission()
	}
	return fail{mirror.FailedPodStatus(o.root, reasonLeafVanished, fmt.Sprintf(
		"the Pod's counterpart in member %s is gone, evicted or deleted there; it is not run again under this name", o.member.Registration)), true}
}

// admission fails a Pod that was bound to the node without the scheduler and
// does not fit there, as a kubelet would.
func (o observed) admission() decision {
	if o.node == nil || mirror.IsDaemonSetPod(o.root) {
		return nothing{}
	}
	if refusal := mirror.Admit(o.root, o.node); refusal != nil {
		return fail{status: mirror.FailedPodStatus(o.root, refusal.Reason, refusal.Message)}
	}
	return nothing{}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func pushed(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1alpha1.PodPushed {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
