package leafpod

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	root   *corev1.Pod
	// leaf Pod of this very root.
	leaf *corev1.Pod
	// last is that leaf as it was when it had ended, if that was seen.
	last *corev1.Pod
	// unhandled: the cache has dropped the leaf, and its last events, which show how it
	// ended, have not been handled yet.
	unhandled bool
	// node is the member's virtual node.
	node *corev1.Node
	// stranded reports that the disk of a promise, for which the Pod waits here, was created
	// in another member.
	stranded *mirror.Refusal
	// unmet is a promise that this member cannot keep, and that keeps the Pod waiting;
	// nil unless the Pod may be created again elsewhere.
	unmet *unmet
	now   time.Time
}

type decision interface{ decision() }

type (
	nothing struct{}
	// show the leaf's status.
	show struct{ status corev1.PodStatus }
	// fail the root. If leafPodGone, the leaf's absence is to be proven first; if a claim
	// is unmet, that it has no volume.
	fail struct {
		status      corev1.PodStatus
		leafPodGone bool
		unmet       string
	}
)

func (nothing) decision() {}
func (show) decision()    {}
func (fail) decision()    {}

func decide(o observed) decision {
	if o.root == nil || o.root.Spec.NodeName != o.member.NodeName {
		return nothing{} // not bound yet, or not here: the scheduler has the word
	}
	if o.overdue() {
		return o.giveUp()
	}
	if o.leaf != nil {
		want := o.want(o.leaf)
		// What has ended has been counted: a leaf that a restored member brings back
		// does not make it run again.
		if podstatus.Finished(o.root) && want.Phase != o.root.Status.Phase || podstatus.Current(o.root, want) {
			return nothing{}
		}
		return shows(want)
	}
	switch {
	case podstatus.Finished(o.root):
		return nothing{}
	case o.last != nil:
		return shows(o.want(o.last))
	case o.unhandled:
		return nothing{} // the event of the deletion enqueues the root
	case o.root.DeletionTimestamp != nil:
		return fail{status: podstatus.Failed(o.root, v1alpha1.ReasonTerminated, "the Pod was deleted"), leafPodGone: true}
	case podstatus.Pushed(o.root) != corev1.ConditionTrue:
		return o.admission()
	}
	return fail{status: podstatus.Failed(o.root, v1alpha1.ReasonLeafVanished, fmt.Sprintf(
		"the Pod's counterpart in member %q was evicted or deleted there, and Xylem does not run it again under this name", o.member.Registration)), leafPodGone: true}
}

// shows is the decision to show a leaf's status, with an event if that is the end
// of a Pod which did not end by itself.
func shows(want corev1.PodStatus) decision {
	if want.Reason == v1alpha1.ReasonLeafEvicted {
		return fail{status: want}
	}
	return show{want}
}

// want is what the root is to show of its leaf. One that was evicted or deleted
// in the member, and ended well for that reason, has failed anyway: its
// work was cut short, and Jobs count it.
func (o observed) want(leaf *corev1.Pod) corev1.PodStatus {
	want := podstatus.Translate(o.root, leaf, o.member)
	if want.Phase == corev1.PodSucceeded && o.root.DeletionTimestamp == nil && cutShort(leaf) {
		want.Phase, want.Reason = corev1.PodFailed, v1alpha1.ReasonLeafEvicted
		want.Message = fmt.Sprintf("the Pod's counterpart in member %q was evicted or deleted there, and Xylem does not run it again under this name", o.member.Registration)
	}
	return want
}

// cutShort reports whether a container of a Pod ended after somebody had asked
// for the Pod's deletion, to the second, which is all that Kubernetes records.
func cutShort(leaf *corev1.Pod) bool {
	if leaf.DeletionTimestamp == nil {
		return false
	}
	asked := leaf.DeletionTimestamp.Add(-time.Duration(ptr.Deref(leaf.DeletionGracePeriodSeconds, 0)) * time.Second)
	return slices.ContainsFunc(leaf.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && !c.State.Terminated.FinishedAt.Time.Before(asked)
	})
}

// admission fails a Pod that was bound to the node without the scheduler and
// does not fit there, as a kubelet would.
func (o observed) admission() decision {
	if o.node == nil || podspec.IsDaemonSetPod(o.root) {
		return nothing{}
	}
	if refusal := placement.Admit(o.root, o.node); refusal != nil {
		return fail{status: podstatus.Failed(o.root, refusal.Reason, refusal.Message), leafPodGone: true}
	}
	if o.stranded != nil {
		return fail{status: podstatus.Failed(o.root, o.stranded.Reason, o.stranded.Message), leafPodGone: true}
	}
	return nothing{}
}
