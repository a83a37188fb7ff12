package leafpod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	root   *corev1.Pod
	// leaf is the leaf Pod of this root.
	leaf *corev1.Pod
	// endedLeaf is the final state of that leaf, if it was observed.
	endedLeaf *corev1.Pod
	// unhandled means that the cache has dropped the leaf, but its last events, which may
	// contain its final state, were not handled yet.
	unhandled bool
	// node is the root's node.
	node *corev1.Node
	// stranded is set if the Pod needs a promise whose disk was provisioned in another member.
	stranded *mirror.Refusal
	// unmet is a promise that this member cannot fulfill and that keeps the Pod waiting. It
	// is nil if no owner would re-create the Pod.
	unmet *unmetPromise
	now   time.Time
}

type decision interface{ isDecision() }

type (
	nothing struct{}
	// showStatus writes the leaf's status to the root.
	showStatus struct{ status corev1.PodStatus }
	// failPod sets the root to Failed. If leafPodGone is set, the leaf's absence must be proven
	// first. If unmet names a claim, it must be proven that the claim has no volume.
	failPod struct {
		status      corev1.PodStatus
		leafPodGone bool
		unmet       string
	}
)

func (nothing) isDecision()    {}
func (showStatus) isDecision() {}
func (failPod) isDecision()    {}

func decidePodStatus(o observed) decision {
	if o.root == nil || !placement.IsPodInMember(o.root, o.node, o.member) {
		return nothing{} // the Pod is not bound to this member's node, or to that of a group
	}
	if o.isUnmetOverdue() {
		return o.decideUnmetFailure()
	}
	if o.leaf != nil {
		want := o.wantedStatus(o.leaf)
		// A Job may have counted a finished root already. If a restored member brings its leaf
		// back, the root must not run again.
		if podstatus.IsPodFinished(o.root) && want.Phase != o.root.Status.Phase || podstatus.IsPodStatusCurrent(o.root, want) {
			return nothing{}
		}
		return showOrFail(want)
	}
	switch {
	case podstatus.IsPodFinished(o.root):
		return nothing{}
	case o.endedLeaf != nil:
		return showOrFail(o.wantedStatus(o.endedLeaf))
	case o.unhandled:
		return nothing{} // the event of the deletion enqueues the root
	case o.root.DeletionTimestamp != nil:
		return failPod{status: podstatus.FailedPodStatus(o.root, v1alpha1.ReasonTerminated, "the Pod was deleted"), leafPodGone: true}
	case !podstatus.HadLeafPod(o.root):
		return o.decideAdmission()
	}
	return failPod{status: podstatus.FailedPodStatus(o.root, v1alpha1.ReasonLeafVanished, o.removedMessage()), leafPodGone: true}
}

// showOrFail returns the decision to write a leaf's status. If the leaf was evicted, it returns fail,
// which also emits an event.
func showOrFail(want corev1.PodStatus) decision {
	if want.Reason == v1alpha1.ReasonLeafEvicted {
		return failPod{status: want}
	}
	return showStatus{want}
}

// wantedStatus returns the status of the root for a leaf. A leaf that succeeded only after it was evicted
// or deleted in the member counts as failed: it did not finish its work, and a Job would count it
// as done.
func (o observed) wantedStatus(leaf *corev1.Pod) corev1.PodStatus {
	want := podstatus.TranslatePodStatus(o.root, leaf, o.member)
	if want.Phase == corev1.PodSucceeded && o.root.DeletionTimestamp == nil && podstatus.EndedAfterDeletion(leaf) {
		want.Phase, want.Reason = corev1.PodFailed, v1alpha1.ReasonLeafEvicted
		want.Message = o.removedMessage()
	}
	return want
}

// removedMessage describes that the leaf was removed in the member before it finished.
func (o observed) removedMessage() string {
	return fmt.Sprintf("the Pod was evicted or deleted in member %q, and Xylem does not run it again. If the Pod has an owner, the owner replaces it; otherwise, create the Pod again",
		o.member.Registration)
}

// decideAdmission fails a Pod that was bound to the node without the scheduler and does not fit, as
// a kubelet does. It also fails a Pod whose member is being deregistered: a tenant's Pod may tolerate
// the cordon.
func (o observed) decideAdmission() decision {
	switch {
	case podspec.IsDaemonSetPod(o.root):
		return nothing{}
	case o.member.Leaving:
		return failPod{status: podstatus.FailedPodStatus(o.root, v1alpha1.ReasonMemberLeaving, fmt.Sprintf(
			"Pod was rejected: member %q is being deregistered. Let the scheduler choose another node", o.member.Registration)), leafPodGone: true}
	case o.node == nil:
		return nothing{}
	}
	if refusal := placement.KubeletRejection(o.root, o.node); refusal != nil {
		return failPod{status: podstatus.FailedPodStatus(o.root, refusal.Reason, refusal.Message), leafPodGone: true}
	}
	if o.stranded != nil {
		return failPod{status: podstatus.FailedPodStatus(o.root, o.stranded.Reason, o.stranded.Message), leafPodGone: true}
	}
	return nothing{}
}
