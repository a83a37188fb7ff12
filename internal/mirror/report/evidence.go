package report

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/wording"
)

// ReasonFailsClaim reports whether a reason of the Placed condition is evidence that the member fails
// the claim.
func ReasonFailsClaim(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonRefusedByMember, v1alpha1.ReasonNameTaken, v1alpha1.ReasonClassNotFound, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonPodRefused, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonProvisioningFailed, v1alpha1.ReasonOutOfSpace,
		v1alpha1.ReasonNamespaceConflict, v1alpha1.ReasonNamespaceTerminating, v1alpha1.ReasonNamespaceRefused, v1alpha1.ReasonNamespaceNotAdmitted,
	}, reason)
}

// ReasonFailsImmediately reports whether a reason of the Placed condition makes Xylem try another member
// immediately, without waiting for the class's timeout. The host's own rules reject the claim in
// the member, so waiting is useless.
func ReasonFailsImmediately(reason string) bool { return reason == v1alpha1.ReasonNamespaceNotAdmitted }

// ReasonDependsOnNode reports whether other nodes of the member may satisfy a claim that the member failed for this
// reason.
func ReasonDependsOnNode(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonProvisioningFailed, v1alpha1.ReasonOutOfSpace, v1alpha1.ReasonNotScheduled}, reason)
}

// ReasonQuotesMember reports whether a member can change the message of a reason of the Placed condition often,
// because the message quotes the member.
func ReasonQuotesMember(reason string) bool {
	return ReasonFailsClaim(reason) || reason == v1alpha1.ReasonProvisionerSilent || reason == v1alpha1.ReasonProvisioningSlow
}

// ClaimFailureIn returns why and since when a member fails a claim, or nil.
func ClaimFailureIn(claim *corev1.PersistentVolumeClaim, clusterID string) (*mirror.Refusal, time.Time) {
	c := findClaimCondition(claim, v1alpha1.ClaimPlaced)
	if c == nil || c.Status != corev1.ConditionFalse || !ReasonFailsClaim(c.Reason) || mirror.ReporterOfRoot(claim).ClusterID != clusterID {
		return nil, time.Time{}
	}
	return &mirror.Refusal{Reason: c.Reason, Message: c.Message}, c.LastTransitionTime.Time
}

// quotedMessageLimit is the maximum length, in bytes, of a message that is quoted from a member.
const quotedMessageLimit = 400

// eventProvisioningFailed is the reason of the events that provisioners and the PV controller emit
// if they cannot create a claim's volume.
const eventProvisioningFailed = "ProvisioningFailed"

// codeExhausted is the gRPC code that a driver without capacity returns.
const codeExhausted = "ResourceExhausted"

// slowCodes lists the gRPC codes after which an earlier call may still be creating the volume, as
// provisioners interpret them (checkError in external-provisioner's pkg/controller). The same is
// true without a code: the driver was not called this time, but an earlier call may still be
// running. Reassigning such a claim could leave a volume that no later call refers to.
var slowCodes = []string{"", "DeadlineExceeded", "Canceled", "Aborted", "Unavailable"}

// ReportsProvisioningFailure reports whether a member's event reports that a claim's volume could not
// be created.
func ReportsProvisioningFailure(event *corev1.Event) bool {
	return event.InvolvedObject.Kind == "PersistentVolumeClaim" && event.Reason == eventProvisioningFailed
}

// ProvisioningProblem returns the problem that the latest event of a leaf claim reports, or nil.
// Slow provisioning is not a problem.
func ProvisioningProblem(leaf *corev1.PersistentVolumeClaim, events []corev1.Event, m mirror.Member) *mirror.Refusal {
	last := lastProvisioningFailure(leaf, events)
	if last == nil {
		return nil
	}
	switch {
	case isSlowFailure(last.Message):
		return nil
	case wording.GRPCCodeOf(last.Message) == codeExhausted:
		return memberProblem(v1alpha1.ReasonOutOfSpace, m, "has no capacity for the volume", last.Message)
	}
	return memberProblem(v1alpha1.ReasonProvisioningFailed, m, "cannot provision the volume", last.Message)
}

// StillProvisioning reports whether, according to the latest failure, an abandoned call may still
// be creating a leaf claim's volume.
func StillProvisioning(leaf *corev1.PersistentVolumeClaim, events []corev1.Event) bool {
	last := lastProvisioningFailure(leaf, events)
	return last != nil && isSlowFailure(last.Message)
}

// MayBeProvisioning reports whether the member may be creating a leaf claim's volume: its PV
// controller requested the volume from a provisioner, and no failure shows that the call has ended.
func MayBeProvisioning(leaf *corev1.PersistentVolumeClaim, events []corev1.Event) bool {
	_, requested := leaf.Annotations[volumehelpers.AnnStorageProvisioner]
	return requested && lastProvisioningFailure(leaf, events) == nil || StillProvisioning(leaf, events)
}

// isSlowFailure reports whether the volume may still be created after a failure. If the class was deleted,
// no provisioner retries, so the volume will not be created.
func isSlowFailure(message string) bool {
	return slices.Contains(slowCodes, wording.GRPCCodeOf(message)) && !wording.ReportsClassNotFound(message)
}

func lastProvisioningFailure(leaf *corev1.PersistentVolumeClaim, events []corev1.Event) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID == leaf.UID && ReportsProvisioningFailure(e) && (last == nil || eventLastSeen(e).After(eventLastSeen(last).Time)) {
			last = e
		}
	}
	return last
}

func eventLastSeen(e *corev1.Event) metav1.Time {
	seen := e.LastTimestamp
	if e.Series != nil && e.Series.LastObservedTime.After(seen.Time) {
		seen = metav1.Time{Time: e.Series.LastObservedTime.Time}
	}
	if e.EventTime.After(seen.Time) {
		seen = metav1.Time{Time: e.EventTime.Time}
	}
	return seen
}

// AdviceForReason returns what users can do about a problem, or "" if its message already contains it.
func AdviceForReason(reason string) string {
	switch reason {
	case v1alpha1.ReasonOutOfSpace:
		return "Request less storage, or ask the member's admin to add capacity"
	case v1alpha1.ReasonProvisioningFailed:
		return "Change the claim or its class, or ask the member's admin to check the driver"
	case v1alpha1.ReasonPodUnschedulable:
		return "Change the Pod's requirements, or ask the member's admin to add suitable nodes"
	}
	return ""
}

// ConsumerProblem returns why a claim's consumer does not run in the member, or nil if no
// reason is known. leaf is its leaf Pod, which may be nil.
func ConsumerProblem(root, leaf *corev1.Pod, m mirror.Member) *mirror.Refusal {
	if leaf == nil {
		return pushProblem(root, m)
	}
	scheduled := podstatus.FindPodCondition(leaf.Status.Conditions, corev1.PodScheduled)
	// A nominated or assigned node means that the scheduler has found one since it set the condition.
	if scheduled == nil || scheduled.Status != corev1.ConditionFalse || scheduled.Reason != corev1.PodReasonUnschedulable ||
		leaf.Status.NominatedNodeName != "" || leaf.Spec.NodeName != "" {
		return nil
	}
	return memberProblem(v1alpha1.ReasonPodUnschedulable, m, "has no node for Pod "+strconv.Quote(root.Name), scheduled.Message)
}

// pushProblem returns why Xylem does not push a claim's consumer to the member, or nil if the claim
// should wait for the push.
func pushProblem(root *corev1.Pod, m mirror.Member) *mirror.Refusal {
	pushed := podstatus.FindPodCondition(root.Status.Conditions, v1alpha1.PodPushed)
	if pushed == nil || pushed.Status != corev1.ConditionFalse || mirror.ReporterOfRoot(root) != (mirror.Reporter{ClusterID: m.ClusterID}) {
		return nil
	}
	reason := v1alpha1.ReasonPodRefused
	switch pushed.Reason {
	case v1alpha1.ReasonRefusedByMember, v1alpha1.ReasonNameTaken:
	case v1alpha1.ReasonNamespaceNotAdmitted: // the namespace was admitted when the leaf claim was created
		reason = pushed.Reason
	default:
		return nil
	}
	return mirror.NewRefusal(reason, "Pod %q: %s", root.Name, mirror.PlainText(pushed.Message, quotedMessageLimit))
}

// memberProblem returns a problem that quotes the member's own message after the member's name.
func memberProblem(reason string, m mirror.Member, what, words string) *mirror.Refusal {
	return mirror.NewRefusal(reason, "member %q %s: %s", m.Registration, what, mirror.PlainText(words, quotedMessageLimit))
}
