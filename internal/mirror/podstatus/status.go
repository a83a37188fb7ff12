package podstatus

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// kubeletConditions are the condition types that a kubelet sets and that Xylem therefore mirrors.
var kubeletConditions = []corev1.PodConditionType{
	corev1.ContainersReady,
	corev1.PodInitialized,
	corev1.PodReady,
	corev1.PodReadyToStartContainers,
	corev1.PodResizePending,
	corev1.PodResizeInProgress,
	corev1.AllContainersRestarting,
}

// TranslatePodStatus returns the status that the root should have, according to FIELDS.md: only fields
// that Xylem owns.
func TranslatePodStatus(root, leaf *corev1.Pod, m mirror.Member) corev1.PodStatus {
	want := *leaf.Status.DeepCopy()
	fields.ApplyDecisions(podStatusDecisions, &want, PodStatusFieldTable.PathPrefix)
	want.Phase = mirroredPhase(want.Phase)
	want.PodIPs = mirroredPodIPs(leaf.Status, m.PodCIDRs)
	want.PodIP = ""
	if len(want.PodIPs) > 0 {
		want.PodIP = want.PodIPs[0].IP
	}
	want.HostIP, want.HostIPs = mirror.CanonicalAddress(want.HostIP), mirroredHostIPs(leaf.Status)
	if len(want.HostIPs) > 0 { // the API server compares the two
		want.HostIP = want.HostIPs[0].IP
	}
	want.InitContainerStatuses = mirroredContainerStatuses(root.Spec.InitContainers, root.Status.InitContainerStatuses, want.InitContainerStatuses)
	want.ContainerStatuses = mirroredContainerStatuses(root.Spec.Containers, root.Status.ContainerStatuses, want.ContainerStatuses)
	want.EphemeralContainerStatuses = mirroredContainerStatuses(podspec.EphemeralAsContainers(root.Spec.EphemeralContainers), nil, want.EphemeralContainerStatuses)
	whole := mirroredPodResources(root, leaf, m)
	want.AllocatedResources, want.Resources = whole.Allocated, whole.Actual
	want.ObservedGeneration = observedGeneration(root, leaf, m)
	want.Conditions = mirroredConditions(root, leaf, want.ObservedGeneration)
	mirror.MemberValue(&want)
	shortenStatus(&want)
	return want
}

// mirroredPhase returns a valid phase, because the host's controllers depend on it.
func mirroredPhase(phase corev1.PodPhase) corev1.PodPhase {
	switch phase {
	case "":
		return corev1.PodPending
	case corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown:
		return phase
	}
	return corev1.PodUnknown
}

// observedGeneration returns the root's generation that the leaf's status reflects. It is the current one if
// the leaf has all of the root's changes, including its deletion, and the kubelet has accepted the
// leaf and observed its generation. Kubelets before 1.33 report no observed generation, and are assumed to
// be current.
func observedGeneration(root, leaf *corev1.Pod, m mirror.Member) int64 {
	waits := leaf.Status.Phase == corev1.PodPending && leaf.Status.StartTime == nil
	deletionPending := root.DeletionTimestamp != nil && leaf.DeletionTimestamp == nil
	behind := leaf.Status.ObservedGeneration != 0 && leaf.Status.ObservedGeneration < leaf.Generation
	if waits || deletionPending || behind || podspec.PodDriftOf(root, leaf, m).ChangesSpec() ||
		len(podspec.MissingDebugContainers(root, leaf)) > 0 {
		return root.Status.ObservedGeneration
	}
	return root.Generation
}

// mirroredContainerStatuses returns the statuses of the root's containers. shown are those that the root has.
func mirroredContainerStatuses(containers []corev1.Container, shown, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	statuses = slices.DeleteFunc(statuses, func(s corev1.ContainerStatus) bool {
		return !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
	})
	statuses = mirror.FirstPerKey(statuses, func(s corev1.ContainerStatus) string { return s.Name })
	for i := range statuses {
		of := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == statuses[i].Name })
		capContainerStatus(&statuses[i], containers[of], containerStatusOf(shown, statuses[i].Name))
		statuses[i].VolumeMounts = mirror.FirstPerKey(statuses[i].VolumeMounts, func(m corev1.VolumeMountStatus) string { return m.MountPath })
	}
	return statuses
}

func mirroredConditions(root, leaf *corev1.Pod, generation int64) []corev1.PodCondition {
	var shown []corev1.PodCondition
	for _, c := range leaf.Status.Conditions {
		target := c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		if !target && !slices.Contains(kubeletConditions, c.Type) {
			continue
		}
		if c.Type == corev1.PodReady {
			c = applyDeletion(root, leaf, applyReadinessGates(root, c))
		}
		if c.ObservedGeneration != 0 {
			c.ObservedGeneration = conditionGeneration(root, leaf, c, generation)
		}
		c.LastProbeTime = metav1.Time{}
		shown = append(shown, c)
	}
	return mirror.FirstPerKey(shown, func(c corev1.PodCondition) corev1.PodConditionType { return c.Type })
}

// conditionGeneration returns the root's generation that a condition of the leaf refers to. generation is the one that the
// leaf's status reflects. A kubelet may keep a condition about an earlier generation, such as a resize in
// progress. Only the condition that the root already shows can then name the root's.
func conditionGeneration(root, leaf *corev1.Pod, c corev1.PodCondition, generation int64) int64 {
	if c.ObservedGeneration >= leaf.Status.ObservedGeneration {
		return generation
	}
	if shown := FindPodCondition(root.Status.Conditions, c.Type); shown != nil && shown.Status == c.Status {
		return min(shown.ObservedGeneration, generation)
	}
	return 0
}

// applyDeletion returns the Ready condition of a root whose leaf is being deleted. In the host, only the root's own
// deletion shows that a Pod ends. Without it, a PodDisruptionBudget would count the Pod until its containers end.
func applyDeletion(root, leaf *corev1.Pod, ready corev1.PodCondition) corev1.PodCondition {
	if leaf.DeletionTimestamp == nil || root.DeletionTimestamp != nil || ready.Status != corev1.ConditionTrue {
		return ready
	}
	ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, v1alpha1.ReasonLeafEvicted, "the Pod is being evicted or deleted in the member"
	ready.LastTransitionTime = metav1.NewTime(deletionRequestedAt(leaf))
	return ready
}

// deletionRequestedAt returns when the deletion of a Pod was requested.
func deletionRequestedAt(pod *corev1.Pod) time.Time {
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

// EndedAfterDeletion reports whether a container terminated after the deletion of its Pod was requested.
// Kubernetes records both times in whole seconds.
func EndedAfterDeletion(leaf *corev1.Pod) bool {
	if leaf.DeletionTimestamp == nil {
		return false
	}
	requested := deletionRequestedAt(leaf)
	return slices.ContainsFunc(leaf.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && !c.State.Terminated.FinishedAt.Time.Before(requested)
	})
}

// applyReadinessGates returns the leaf's Ready condition. If one of the root's readiness gates is not satisfied,
// the condition is False, with the message that a kubelet would set.
func applyReadinessGates(root *corev1.Pod, ready corev1.PodCondition) corev1.PodCondition {
	if ready.Status != corev1.ConditionTrue {
		return ready
	}
	var missing []string
	for _, gate := range root.Spec.ReadinessGates {
		c := FindPodCondition(root.Status.Conditions, gate.ConditionType)
		switch {
		case c == nil:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
			continue
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
		// Use the transition time of the last gate, if that is later.
		if ready.LastTransitionTime.Before(&c.LastTransitionTime) {
			ready.LastTransitionTime = c.LastTransitionTime
		}
	}
	if len(missing) > 0 {
		ready.Status = corev1.ConditionFalse
		ready.Reason = v1alpha1.ReasonReadinessGates
		ready.Message = strings.Join(missing, ", ")
	}
	return ready
}

// FindPodCondition returns the condition of a type, or nil.
func FindPodCondition(conditions []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// podAddressesOf returns the addresses in a status. Kubelets before dual stack report only podIP.
func podAddressesOf(status corev1.PodStatus) []corev1.PodIP {
	if len(status.PodIPs) == 0 && status.PodIP != "" {
		return []corev1.PodIP{{IP: status.PodIP}}
	}
	return status.PodIPs
}

// mirroredPodIPs returns the Pod addresses within the registration's podCIDRs.
func mirroredPodIPs(status corev1.PodStatus, cidrs []netip.Prefix) []corev1.PodIP {
	var shown []corev1.PodIP
	for _, ip := range podAddressesOf(status) {
		if usual := mirror.CanonicalAddress(ip.IP); usual != "" && mirror.IsAddressInPrefixes(netip.MustParseAddr(usual), cidrs) {
			shown = append(shown, corev1.PodIP{IP: usual})
		}
	}
	return mirror.FirstPerKey(shown, func(ip corev1.PodIP) bool { return mirror.IsIPv4Address(ip.IP) })
}

// mirroredHostIPs returns the addresses of the member's node.
func mirroredHostIPs(status corev1.PodStatus) []corev1.HostIP {
	var shown []corev1.HostIP
	for _, ip := range status.HostIPs {
		if usual := mirror.CanonicalAddress(ip.IP); usual != "" {
			shown = append(shown, corev1.HostIP{IP: usual})
		}
	}
	return mirror.FirstPerKey(shown, func(ip corev1.HostIP) bool { return mirror.IsIPv4Address(ip.IP) })
}

// HiddenPodIP returns the first Pod address of a leaf that the root does not show although the
// registration has podCIDRs, or "". Without podCIDRs, no address is expected.
func HiddenPodIP(leaf *corev1.Pod, m mirror.Member) string {
	if len(m.PodCIDRs) == 0 {
		return ""
	}
	for _, ip := range podAddressesOf(leaf.Status) {
		if usual := mirror.CanonicalAddress(ip.IP); usual == "" || !mirror.IsAddressInPrefixes(netip.MustParseAddr(usual), m.PodCIDRs) {
			return mirror.PlainText(ip.IP, addressLimit)
		}
	}
	return ""
}

// addressLimit is the maximum length, in bytes, of an address in a message.
const addressLimit = 64
