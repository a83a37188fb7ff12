package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// describeWait returns what the subject waits for and what the user can do, if nothing reports a problem.
func (w *walk) describeWait() (waits, toDo string) {
	if w.isTerminating() {
		return "no object reports why the deletion is not complete", "See the finalizers in `kubectl xylem tree`. Xylem reports a deletion that takes longer than expected."
	}
	if w.facts.Snapshot != nil {
		return w.describeSnapshotWait(w.facts.Snapshot)
	}
	for i := range w.facts.Claims {
		c := &w.facts.Claims[i]
		if c.Claim != nil && c.Claim.Status.Phase != corev1.ClaimBound {
			if waits, toDo := w.describeClaimWait(c); waits != "" {
				return waits, toDo
			}
		}
	}
	if w.facts.Pod != nil {
		return w.describePodWait(w.facts.Pod)
	}
	return "Kubernetes has not updated the claim's status yet", ""
}

// describeClaimWait returns what a claim waits for and what the user can do. It returns "" if the claim
// only waits for its Pod, which is the subject.
func (w *walk) describeClaimWait(c *inspect.ClaimFacts) (waits, toDo string) {
	pods := c.Pods
	if w.facts.Pod != nil {
		pods = []inspect.PodFacts{*w.facts.Pod}
	}
	id := w.facts.MemberOfClaim(c)
	switch {
	case c.Class != nil && hostpv.IsMirrorClass(c.Class) && len(pods) == 0:
		return "no Pod uses the claim yet, and its class waits for the first Pod", "Create a Pod that uses the claim."
	case id == "":
		return w.describeConsumerWait(c)
	case c.Leaf == nil && c.LeafKnown:
		return fmt.Sprintf("Xylem has not created claim %q%s yet", c.Key.Name, w.describeMember(id)), ""
	case c.Leaf != nil && c.Leaf.Status.Phase == corev1.ClaimBound:
		return fmt.Sprintf("the volume of claim %q exists%s, but the host has not bound the claim yet", c.Key.Name, w.describeMember(id)), ""
	}
	return fmt.Sprintf("the volume of claim %q has not been provisioned%s yet", c.Key.Name, w.describeMember(id)), ""
}

// describeConsumerWait returns what the first consumer of a claim waits for, if the claim waits for the
// scheduler's choice of a node. It returns "" if that Pod is the subject.
func (w *walk) describeConsumerWait(c *inspect.ClaimFacts) (waits, toDo string) {
	if c.Class == nil || !hostpv.WaitsForConsumer(c.Class) {
		return "", ""
	}
	for _, p := range w.podsOfSubject() {
		switch {
		case podstatus.IsPodFinished(p.Pod):
		case p.Pod.Spec.NodeName != "":
			waits = fmt.Sprintf("Pod %q already has node %q, so no scheduler selects a node for claim %q", p.Pod.Name, p.Pod.Spec.NodeName, c.Key.Name)
			toDo = "Delete the Pod, and create it again without spec.nodeName. If a controller owns the Pod, it creates another one."
		case w.facts.Pod != nil:
			return "", ""
		default:
			waits, toDo = w.describePodWait(p)
			return fmt.Sprintf("the claim waits for Pod %q: %s", p.Pod.Name, waits), toDo
		}
	}
	return waits, toDo
}

func (w *walk) describePodWait(p *inspect.PodFacts) (waits, toDo string) {
	id := w.facts.MemberOfPod(p)
	switch {
	case p.Pod.Spec.NodeName == "" && id == "" && p.Pod.Spec.SchedulerName != "" && p.Pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		return fmt.Sprintf("no scheduler with the name %q has handled the Pod yet (spec.schedulerName)", p.Pod.Spec.SchedulerName),
			"Check that such a scheduler runs in the host, or create the Pod again without spec.schedulerName."
	case p.Pod.Spec.NodeName == "" && id == "":
		return "the scheduler has not chosen a node yet", ""
	case p.Pod.Spec.NodeName == "":
		return fmt.Sprintf("the scheduler is about to bind the Pod to the virtual node%s", describeOwnerMember(w, id)), ""
	case id == "":
		return fmt.Sprintf("the kubelet of node %q has not started the Pod yet", p.Pod.Spec.NodeName), ""
	case podstatus.PushedStatus(p.Pod) != corev1.ConditionTrue:
		return "Xylem has not created the Pod" + w.describeMember(id) + " yet", ""
	case p.Leaf != nil && p.Leaf.Spec.NodeName == "":
		return "the scheduler has not chosen a node" + w.describeMember(id) + " yet", ""
	}
	return "the containers have not started" + w.describeMember(id) + " yet", ""
}

func describeOwnerMember(w *walk, id string) string {
	return fmt.Sprintf(" of member %q", w.facts.NameOfMember(id, nil))
}
