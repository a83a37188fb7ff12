package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// waits returns what the subject waits for and what the user can do, if nothing reports a problem.
func (w *walk) waits() (waits, toDo string) {
	if w.terminating() {
		return "no object reports why the deletion is not complete", "See the finalizers in `kubectl xylem tree`. Xylem reports a deletion that takes longer than expected."
	}
	if w.facts.Snapshot != nil {
		return w.snapshotWaits(w.facts.Snapshot)
	}
	for i := range w.facts.Claims {
		c := &w.facts.Claims[i]
		if c.Claim != nil && c.Claim.Status.Phase != corev1.ClaimBound {
			if waits, toDo := w.claimWaits(c); waits != "" {
				return waits, toDo
			}
		}
	}
	if w.facts.Pod != nil {
		return w.podWaits(w.facts.Pod)
	}
	return "Kubernetes has not updated the claim's status yet", ""
}

// claimWaits returns what a claim waits for and what the user can do. It returns "" if the claim
// only waits for its Pod, which is the subject.
func (w *walk) claimWaits(c *inspect.ClaimFacts) (waits, toDo string) {
	pods := c.Pods
	if w.facts.Pod != nil {
		pods = []inspect.PodFacts{*w.facts.Pod}
	}
	id := w.facts.MemberOf(c)
	switch {
	case c.Class != nil && hostclass.Mirrors(c.Class) && len(pods) == 0:
		return "no Pod uses the claim yet, and its class waits for the first Pod", "Create a Pod that uses the claim."
	case id == "":
		return w.consumerWaits(c)
	case c.Leaf == nil && c.LeafKnown:
		return fmt.Sprintf("Xylem has not created claim %q%s yet", c.Key.Name, w.inMember(id)), ""
	case c.Leaf != nil && c.Leaf.Status.Phase == corev1.ClaimBound:
		return fmt.Sprintf("the volume of claim %q exists%s, but the host has not bound the claim yet", c.Key.Name, w.inMember(id)), ""
	}
	return fmt.Sprintf("the volume of claim %q has not been provisioned%s yet", c.Key.Name, w.inMember(id)), ""
}

// consumerWaits returns what the first consumer of a claim waits for, if the claim waits for the
// scheduler's choice of a node. It returns "" if that Pod is the subject.
func (w *walk) consumerWaits(c *inspect.ClaimFacts) (waits, toDo string) {
	if c.Class == nil || !hostclass.WaitsForConsumer(c.Class) {
		return "", ""
	}
	for _, p := range w.pods() {
		switch {
		case podstatus.Finished(p.Pod):
		case p.Pod.Spec.NodeName != "":
			waits = fmt.Sprintf("Pod %q already has node %q, so no scheduler selects a node for claim %q", p.Pod.Name, p.Pod.Spec.NodeName, c.Key.Name)
			toDo = "Delete the Pod, and create it again without spec.nodeName. If a controller owns the Pod, it creates another one."
		case w.facts.Pod != nil:
			return "", ""
		default:
			waits, toDo = w.podWaits(p)
			return fmt.Sprintf("the claim waits for Pod %q: %s", p.Pod.Name, waits), toDo
		}
	}
	return waits, toDo
}

func (w *walk) podWaits(p *inspect.PodFacts) (waits, toDo string) {
	id := w.facts.MemberOfPod(p)
	switch {
	case p.Pod.Spec.NodeName == "" && id == "" && p.Pod.Spec.SchedulerName != "" && p.Pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		return fmt.Sprintf("no scheduler with the name %q has handled the Pod yet (spec.schedulerName)", p.Pod.Spec.SchedulerName),
			"Check that such a scheduler runs in the host, or create the Pod again without spec.schedulerName."
	case p.Pod.Spec.NodeName == "" && id == "":
		return "the scheduler has not chosen a node yet", ""
	case p.Pod.Spec.NodeName == "":
		return fmt.Sprintf("the scheduler is about to bind the Pod to the virtual node%s", ofMember(w, id)), ""
	case id == "":
		return fmt.Sprintf("the kubelet of node %q has not started the Pod yet", p.Pod.Spec.NodeName), ""
	case podstatus.Pushed(p.Pod) != corev1.ConditionTrue:
		return "Xylem has not created the Pod" + w.inMember(id) + " yet", ""
	case p.Leaf != nil && p.Leaf.Spec.NodeName == "":
		return "the scheduler has not chosen a node" + w.inMember(id) + " yet", ""
	}
	return "the containers have not started" + w.inMember(id) + " yet", ""
}

func ofMember(w *walk, id string) string {
	return fmt.Sprintf(" of member %q", w.facts.NameOf(id, nil))
}
