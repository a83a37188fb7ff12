package leafpod

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

func (r *reconciler) emitPodFailed(root *corev1.Pod, reason, message string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, reason, "Fail", "%s", message)
}

// emitPodIPHidden reports, when the Pod starts to run, that the host does not show its address.
func (r *reconciler) emitPodIPHidden(o observed, shown corev1.PodStatus) {
	if o.leaf == nil || o.root.Status.Phase == corev1.PodRunning || shown.Phase != corev1.PodRunning {
		return
	}
	if hidden := podstatus.HiddenPodIP(o.leaf, r.Member); hidden != "" {
		r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, v1alpha1.ReasonPodIPHidden, "Show",
			"Xylem does not copy Pod IP %q of member %q to the host: the address is special, or outside spec.node.podCIDRs of the registration. If the host's network reaches the address, add its range to spec.node.podCIDRs", hidden, r.Registration)
	}
}

// emitContainersAdded reports, once the Pod's own containers have finished, the containers that programs in the
// member added to the Pod and that keep it from finishing. It returns when to report them again, or 0.
func (r *reconciler) emitContainersAdded(o observed) time.Duration {
	if o.root == nil || o.leaf == nil || o.root.DeletionTimestamp != nil || podstatus.IsPodFinished(o.leaf) || !haveOwnContainersFinished(o.root, o.leaf.Status) {
		return 0
	}
	added := mirror.QuotedMemberNames(addedUnfinishedContainers(o.root, o.leaf))
	if added == "" {
		return 0
	}
	due, again := r.news.EventDue(o.leaf.UID, added)
	if due {
		r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, v1alpha1.ReasonContainersAdded, "Finish",
			"the Pod's own containers have finished, but the Pod does not finish before containers that member %q added: %s. Exempt the Pod from the program that adds them, or ask the member's admin to add them as restartable init containers",
			r.Registration, added)
	}
	return again
}

// haveOwnContainersFinished reports whether all of the Pod's containers have finished and will not restart.
func haveOwnContainersFinished(root *corev1.Pod, status corev1.PodStatus) bool {
	if root.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return false
	}
	return !slices.ContainsFunc(root.Spec.Containers, func(c corev1.Container) bool {
		return !slices.ContainsFunc(status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			ended := s.State.Terminated
			return s.Name == c.Name && ended != nil && (ended.ExitCode == 0 || root.Spec.RestartPolicy == corev1.RestartPolicyNever)
		})
	})
}

// addedUnfinishedContainers returns the names of the leaf's containers that the root lacks and that have
// not finished.
func addedUnfinishedContainers(root, leaf *corev1.Pod) []string {
	var names []string
	for i := range leaf.Status.ContainerStatuses {
		s := &leaf.Status.ContainerStatuses[i]
		if s.State.Terminated == nil && !slices.ContainsFunc(root.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name }) {
			names = append(names, s.Name)
		}
	}
	return names
}
