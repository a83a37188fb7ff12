package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/cli/tree"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/timeline"
	"github.com/xylem-io/xylem/internal/wording"
)

// noLeader identifies the cause that no manager is the leader.
const noLeader = "NoLeader"

// stage orders causes: problems of an earlier stage must be solved first.
type stage int

const (
	stageManager   stage = iota // no manager is the leader
	stageMissing                // an object in the host that the Pod or claim refers to
	stageMember                 // the member's connection
	stageClaim                  // Xylem's conditions on a claim
	stageVolume                 // the volume of a claim, in the host or in the member
	stagePlace                  // why no node fits the Pod
	stagePush                   // why the Pod cannot be pushed
	stageRelay                  // a condition that repeats another problem, but is truncated or covers only one member
	stageScheduler              // the host scheduler's own message
	stageHint                   // a claim's condition that may not be the reason why its Pod has no node
	stageLeafClaim              // the member's provisioner
	stageLeafPod                // the member's scheduler
	stageContainer              // containers
	stageEvent                  // Warnings that no condition repeats
	stageStale                  // a message of the host's scheduler about an earlier attempt
	stageAside                  // problems of a Pod's claims despite which the Pod can use them
)

// DiagnoseSubject returns the diagnosis for one Pod, claim or snapshot.
func DiagnoseSubject(facts *inspect.Facts) *Diagnosis {
	tree := tree.BuildTree(facts)
	d := &Diagnosis{
		TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Subject: describeSubject(&tree.Root),
		Missing: tree.Missing, Recorded: tree.Recorded, Times: timesOfClaim(facts),
	}
	w := walk{facts: facts, root: &tree.Root}
	if state, well := w.describeIfWell(); well {
		d.Verdict, d.Summary, d.Evidence = Well, d.Subject+" "+state, appendEvidence(&tree.Root, nil)
		return d
	}
	w.visitNode(&tree.Root)
	w.addMissingLeader()
	d.Causes = orderedCauses(w.causes)
	d.Evidence = appendEvidence(&tree.Root, nil)
	if len(d.Causes) > 0 && d.Causes[0].stage != stageStale && d.Causes[0].stage != stageAside {
		first := d.Causes[0]
		d.Verdict, d.Summary, d.ToDo = Problem, fmt.Sprintf("%s %s: %s", d.Subject, w.describeState(first.usable), first.What), first.ToDo
		return d
	}
	waits, toDo := w.describeWait()
	d.Verdict, d.Summary, d.ToDo = Waiting, fmt.Sprintf("%s %s: %s", d.Subject, w.describeState(false), waits), toDo
	return d
}

// timesOfClaim returns the steps of a claim that Xylem provisions, and of its first Pod.
func timesOfClaim(facts *inspect.Facts) []timeline.Step {
	if facts.Pod != nil || facts.Snapshot != nil || len(facts.Claims) == 0 || !facts.Claims[0].BelongsToXylem() {
		return nil
	}
	c := &facts.Claims[0]
	pods := make([]*corev1.Pod, 0, len(c.Pods))
	for i := range c.Pods {
		pods = append(pods, c.Pods[i].Pod)
	}
	return timeline.StepsOfClaim(timeline.Objects{Claim: c.Claim, Volume: c.Volume, Pod: timeline.OldestPod(pods), LeafClaim: c.Leaf, LeafVolume: c.LeafVolume})
}

func describeSubject(n *inspect.Node) string {
	if n.Kind == inspect.KindClaim {
		return fmt.Sprintf("Claim %q", n.Namespace+"/"+n.Name)
	}
	return fmt.Sprintf("%s %q", n.Kind, n.Namespace+"/"+n.Name)
}

// walk collects the causes in a tree.
type walk struct {
	facts  *inspect.Facts
	root   *inspect.Node
	causes []Cause
}

// describeIfWell reports whether the subject is in its final, healthy state, and describes the state.
func (w *walk) describeIfWell() (string, bool) {
	if w.root.Health != inspect.Good {
		return "", false
	}
	if s := w.facts.Snapshot; s != nil {
		return "is ready to use" + w.describeMember(memberOfSnapshot(s)), true
	}
	if w.facts.Pod == nil {
		if isBroken(w.root) {
			return "", false
		}
		return fmt.Sprintf("is bound to volume %q%s", w.facts.Claims[0].Claim.Spec.VolumeName, w.describeMember(w.facts.MemberOfClaim(&w.facts.Claims[0]))), true
	}
	pod := w.facts.Pod.Pod
	if pod.Status.Phase == corev1.PodSucceeded {
		return "has succeeded", true
	}
	lacksTokens := slices.ContainsFunc(w.root.Conditions, func(c inspect.Condition) bool { return c.Type == string(v1alpha1.PodAPIAccess) })
	return "runs" + w.describeMember(w.facts.MemberOfPod(w.facts.Pod)), podIsReady(pod) && !lacksTokens && !resizeFails(w.root, pod)
}

// isBroken reports whether a claim's volume, member or leaf is in a bad state. The Pods that use
// the claim do not count.
func isBroken(n *inspect.Node) bool {
	return n.Health == inspect.Bad || slices.ContainsFunc(n.Children, func(child inspect.Node) bool { return child.Kind != inspect.KindPod && isBroken(&child) })
}

func (w *walk) describeMember(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" in member %q", w.facts.NameOfMember(id, nil))
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// describeState describes a subject that is not well. usable means that Pods can use the claim despite its
// problem.
func (w *walk) describeState(usable bool) string {
	switch {
	case w.root.State == inspect.StateNotFound:
		return "does not exist"
	case w.isTerminating():
		return "is still being deleted"
	case w.facts.Pod != nil:
		return describePodState(w.facts.Pod.Pod)
	case w.facts.Snapshot != nil:
		return "is not ready to use"
	}
	switch claim := w.facts.Claims[0].Claim; {
	case claim == nil:
		return "could not be read"
	case claim.Status.Phase == corev1.ClaimBound && usable:
		return "is bound, but has a problem"
	case claim.Status.Phase == corev1.ClaimBound:
		return "is bound, but not usable"
	case claim.Status.Phase == corev1.ClaimLost:
		return "has lost its volume"
	}
	return "is not bound"
}

func describePodState(pod *corev1.Pod) string {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		if podIsReady(pod) {
			return "runs, but has a problem"
		}
		return "runs, but is not ready"
	case corev1.PodFailed:
		return "has failed"
	case corev1.PodSucceeded:
		return "has succeeded"
	default:
		return "does not run"
	}
}

func (w *walk) isTerminating() bool { return w.root.State == inspect.StateTerminating }

// addMissingLeader adds a cause if no manager is the leader and the subject needs one: the other causes may
// be outdated.
func (w *walk) addMissingLeader() {
	ours := len(w.facts.ClusterIDs()) > 0 || slices.ContainsFunc(w.facts.Claims, func(c inspect.ClaimFacts) bool { return c.Class != nil && c.BelongsToXylem() })
	if w.facts.Leaderless == "" || !ours {
		return
	}
	w.causes = append(w.causes, Cause{
		ObjectRef: ObjectRef{Kind: "Lease", Name: v1alpha1.LeaderLease}, Reason: noLeader, stage: stageManager,
		What: w.facts.Leaderless + ", so nothing places, pushes or mirrors objects, and other causes may be outdated",
		ToDo: "Run `kubectl xylem doctor`, or ask the host's admin to check Xylem's Deployment.",
	})
}

// visitNode adds the causes of a node and its children.
func (w *walk) visitNode(n *inspect.Node) {
	for i := range n.Conditions {
		w.addCondition(n, &n.Conditions[i])
	}
	w.addObjectState(n)
	for i := range n.Events {
		if e := &n.Events[i]; e.Type == corev1.EventTypeWarning {
			w.addCause(n, stageOfEvent(e), e.Reason, e.Message, e.Last)
		}
	}
	for i := range n.Children {
		w.visitNode(&n.Children[i])
	}
}

// addCondition adds a cause if a condition reports a problem.
func (w *walk) addCondition(n *inspect.Node, c *inspect.Condition) {
	isFalse := c.Status == string(metav1.ConditionFalse)
	switch {
	case n.Kind == inspect.KindRegistration:
		w.addMemberCondition(n, c)
	case n.Kind == inspect.KindVolume: // an orphaned volume
		w.addCause(n, stageVolume, c.Reason, c.Message, c.Since)
	case n.Kind == inspect.KindClaim && inspect.ReportsProblem(*c):
		w.addClaimCondition(n, c)
	case n.Kind != inspect.KindPod:
	case c.Type == string(v1alpha1.PodPlaceable) && isFalse:
		w.addUnplaceable(n, c)
	case c.Type == string(v1alpha1.PodPushed) && isFalse && !isSolvedReason(c.Reason):
		w.addCause(n, stagePush, c.Reason, c.Message, c.Since)
	case c.Type == string(v1alpha1.PodAPIAccess) && isFalse:
		w.addCause(n, stageContainer, c.Reason, c.Message, c.Since)
	case c.Type == string(corev1.PodScheduled) && isFalse:
		w.addUnscheduled(n, c)
	case c.Type == string(corev1.PodReady) && isFalse:
		w.addCause(n, stageMember, c.Reason, c.Message, c.Since)
	case c.Type == string(corev1.DisruptionTarget), isFailingResize(c):
		w.addCause(n, stageContainer, c.Reason, c.Message, c.Since)
	}
}

// addClaimCondition adds the problem that a condition of a claim reports.
func (w *walk) addClaimCondition(n *inspect.Node, c *inspect.Condition) {
	usable := w.usableDespite(n, c)
	at := stageClaim
	switch {
	case n.Cluster != "":
		at = stageLeafClaim
	case usable && (w.facts.Pod != nil || w.facts.Snapshot != nil):
		at = stageAside
	case c.Reason == v1alpha1.ReasonPodRefused, c.Reason == v1alpha1.ReasonNamespaceNotAdmitted:
		at = stageRelay // the Pod's condition covers every member
	case c.Type == string(v1alpha1.ClaimPromise) && hasProblem(n, v1alpha1.ClaimPlaced) && n.State != string(corev1.ClaimLost):
		at = stageRelay // this condition repeats that one, unless the promise itself is lost
	case c.Reason == v1alpha1.ReasonNotOffered:
		at = stageHint // if no member has the class, the Pod's condition has this reason
	}
	w.addCause(n, at, c.Reason, c.Message, c.Since)
	w.causes[len(w.causes)-1].usable = usable
}

// hasProblem reports whether a condition of the given type reports a problem of a claim.
func hasProblem(claim *inspect.Node, kind corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(claim.Conditions, func(c inspect.Condition) bool { return c.Type == string(kind) && inspect.ReportsProblem(c) })
}

// usableDespite reports whether Pods can use a host claim despite the problem that its condition
// reports. They cannot if the claim's promise is broken, or if the member is known to have no leaf
// claim.
func (w *walk) usableDespite(n *inspect.Node, c *inspect.Condition) bool {
	if n.Cluster != "" || c.Type == string(v1alpha1.ClaimAttached) || hasProblem(n, v1alpha1.ClaimPromise) {
		return false
	}
	for i := range w.facts.Claims {
		if f := &w.facts.Claims[i]; f.Key.Name == n.Name && f.Claim != nil {
			return (f.Leaf != nil || !f.LeafKnown) && report.IsClaimUsableDespite(f.Claim, f.Volume, c.Reason)
		}
	}
	return false
}

// addUnplaceable adds the reason why no node was found for a Pod.
func (w *walk) addUnplaceable(n *inspect.Node, c *inspect.Condition) {
	at := stagePlace
	if c.Reason == v1alpha1.ReasonPodRefused {
		at = stageRelay // this condition repeats the claim's, which repeats the Pod's condition Pushed
	}
	w.addCause(n, at, c.Reason, c.Message, c.Since)
}

// isSolvedReason reports whether a reason of the condition Pushed means that an earlier problem is solved.
func isSolvedReason(reason string) bool {
	return reason == v1alpha1.ReasonVolumeAwaited || reason == v1alpha1.ReasonReferenceAwaited || reason == v1alpha1.ReasonWithdrawn
}

// addUnscheduled adds the reason why a scheduler has not bound a Pod.
func (w *walk) addUnscheduled(n *inspect.Node, c *inspect.Condition) {
	at, reason := stageScheduler, c.Reason
	switch {
	case n.Cluster != "":
		at = stageLeafPod
	case wording.RejectedBinding(c.Message, v1alpha1.NamespacePolicy):
		at, reason = stagePlace, v1alpha1.ReasonNamespaceNotAdmitted
	case wording.BindingTimedOut(c.Message), w.isNominatedSince(n.Name):
		at = stageStale
	}
	w.addCause(n, at, reason, c.Message, c.Since)
	if toDo := wording.RemediesFor(c.Message, n.Cluster != ""); reason == corev1.PodReasonUnschedulable && toDo != "" {
		w.causes[len(w.causes)-1].ToDo = toDo
	}
}

// isNominatedSince reports whether the scheduler has since chosen a virtual node for a Pod and a claim,
// and waits for the volume. It nominates a node also for preemption. The scheduler does not remove
// the message of an earlier attempt.
func (w *walk) isNominatedSince(pod string) bool {
	return slices.ContainsFunc(w.podsOfSubject(), func(p *inspect.PodFacts) bool {
		node := p.Pod.Status.NominatedNodeName
		return p.Pod.Name == pod && p.Pod.Spec.NodeName == "" && node != "" && w.facts.MemberOfPod(p) != "" &&
			slices.ContainsFunc(w.facts.Claims, func(c inspect.ClaimFacts) bool {
				return c.Claim != nil && c.Claim.Spec.VolumeName == "" && c.Claim.Annotations[route.AnnSelectedNode] == node
			})
	})
}

// addMemberCondition adds the problem that a condition of a registration reports, if it concerns the
// subject. Conditions of registrations may name claims and Pods of other tenants.
func (w *walk) addMemberCondition(n *inspect.Node, c *inspect.Condition) {
	message := c.Message
	switch {
	case c.Type == v1alpha1.ConditionDeletionsProgressing:
		return // it describes the member's oldest deletion; an event reports a deletion on the object itself
	case c.Type == v1alpha1.ConditionConnected && c.Status == string(metav1.ConditionTrue) && !w.isTerminating():
		return // only destruction is suspended
	case c.Type == v1alpha1.ConditionReady: // it lists what the deregistration waits for
		message = fmt.Sprintf("member %q is being deregistered. Use another member, or ask an admin of the host", n.Name)
	}
	w.addCause(n, stageMember, c.Reason, message, c.Since)
}

// addObjectState adds a cause for an object's state, or for its absence.
func (w *walk) addObjectState(n *inspect.Node) {
	switch {
	case n.State == inspect.StateNotFound && n.Health == inspect.Bad && n.Cluster == "":
		at := stageMissing
		if n.Kind == inspect.KindVolume {
			at = stageVolume // a claim can request a member's volume before Xylem creates the PersistentVolume
		}
		w.addCause(n, at, inspect.StateNotFound, w.describeAbsence(n), metav1.Time{})
	case n.State == inspect.StateNotFound && n.Health == inspect.Bad, n.State == inspect.StateForeign:
		w.addCause(n, stageVolume, n.State, describeMismatch(n), metav1.Time{})
	case n.Kind == inspect.KindSnapshot:
		w.snapshot(n)
	case n.Kind == inspect.KindClaim && n.Cluster == "":
		w.addClassProblems(n)
	case n.Kind == inspect.KindPod && n.Cluster == "":
		for _, p := range w.podsOfSubject() {
			if p.Pod.Name == n.Name {
				w.addContainerProblems(n, p.Pod)
			}
		}
	case n.Kind == inspect.KindPod:
		for _, p := range w.podsOfSubject() {
			if p.Leaf != nil && p.Leaf.Name == n.Name {
				w.addContainerProblems(n, p.Leaf)
			}
		}
	}
}

func describeNode(n *inspect.Node) string {
	if n.Namespace != "" {
		return fmt.Sprintf("%s %q", n.Kind, n.Namespace+"/"+n.Name)
	}
	return fmt.Sprintf("%s %q", n.Kind, n.Name)
}

// describeMismatch returns a message about a missing or foreign object in a member. The last of a foreign
// object's details describes why it is foreign.
func describeMismatch(n *inspect.Node) string {
	if n.State == inspect.StateNotFound {
		return fmt.Sprintf("%s does not exist in member %q", describeNode(n), n.Cluster)
	}
	return fmt.Sprintf("%s in member %q was %s", describeNode(n), n.Cluster, n.Details[len(n.Details)-1])
}

// describeAbsence returns a message about a missing object in the host, with a remedy.
func (w *walk) describeAbsence(n *inspect.Node) string {
	switch n.Kind {
	case inspect.KindClaim:
		return fmt.Sprintf("claim %q does not exist in the host. Create the claim", n.Namespace+"/"+n.Name)
	case inspect.KindVolume:
		what := fmt.Sprintf("PersistentVolume %q, which the claim refers to, does not exist in the host. ", n.Name)
		if away := w.disconnected(); len(away) > 0 {
			return what + fmt.Sprintf("If the volume is in a member that is not connected (%s), make that member reachable. Otherwise, restore the PersistentVolume, or delete the claim", strings.Join(away, ", "))
		}
		return what + "Restore the PersistentVolume, or delete the claim"
	case inspect.KindRegistration:
		return fmt.Sprintf("member %q has no ClusterRegistration. Register the cluster again with `kubectl xylem register`", n.Name)
	}
	return fmt.Sprintf("the host has no %[1]s %[2]q. Create the %[1]s, or use another one", n.Kind, n.Name)
}

// disconnected returns the names of the members that are not connected.
func (w *walk) disconnected() []string {
	var names []string
	for i := range w.facts.Registrations {
		if r := &w.facts.Registrations[i]; !inspect.IsConnected(r) {
			names = append(names, r.Name)
		}
	}
	return names
}

// addClassProblems adds problems that Xylem does not report: a claim that has no class, or a class with
// another provisioner.
func (w *walk) addClassProblems(n *inspect.Node) {
	for i := range w.facts.Claims {
		c := &w.facts.Claims[i]
		if c.Key.Name != n.Name || c.Claim == nil || c.Claim.Spec.VolumeName != "" {
			continue
		}
		name := hostpv.ClassNameOf(c.Claim)
		switch {
		case name == "":
			w.addCause(n, stageMissing, inspect.StateNotFound, "the claim has no StorageClass, and the host has no default one. Set spec.storageClassName to a class with provisioner "+v1alpha1.ProvisionerName, metav1.Time{})
		case c.Class != nil && !c.BelongsToXylem():
			w.addCause(n, stageMissing, inspect.StateForeign, fmt.Sprintf("the claim's class %q has provisioner %q, so Xylem does not provision the claim. Check that provisioner, or use a class with provisioner %s",
				name, c.Class.Provisioner, v1alpha1.ProvisionerName), metav1.Time{})
		}
	}
}

func (w *walk) podsOfSubject() []*inspect.PodFacts {
	if w.facts.Pod != nil {
		return []*inspect.PodFacts{w.facts.Pod}
	}
	var pods []*inspect.PodFacts
	for i := range w.facts.Claims {
		for j := range w.facts.Claims[i].Pods {
			pods = append(pods, &w.facts.Claims[i].Pods[j])
		}
	}
	return pods
}

// addContainerProblems adds the reasons why containers do not run.
func (w *walk) addContainerProblems(n *inspect.Node, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodFailed {
		w.addCause(n, stageContainer, cmp.Or(inspect.Plain(pod.Status.Reason), "Error"), cmp.Or(inspect.Plain(pod.Status.Message), "the Pod has failed"), metav1.Time{})
	}
	found := false
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch waiting := s.State.Waiting; {
		case waiting == nil, waiting.Reason == "", waiting.Reason == "ContainerCreating", waiting.Reason == "PodInitializing":
		default:
			found = true
			what := fmt.Sprintf("container %q is waiting with reason %s", s.Name, inspect.Plain(waiting.Reason))
			if waiting.Message != "" {
				what += ": " + inspect.Plain(waiting.Message)
			}
			w.addCause(n, stageContainer, inspect.Plain(waiting.Reason), what, metav1.Time{})
		}
	}
	for _, c := range pod.Status.Conditions {
		if found || pod.Status.Phase != corev1.PodRunning || c.Type != corev1.PodReady || c.Status == corev1.ConditionTrue || c.Reason == v1alpha1.ReasonMemberAway {
			continue
		}
		reason, message := inspect.Plain(c.Reason), inspect.Plain(c.Message)
		if reason == "" {
			reason, message = v1alpha1.ReasonNodeNotReady, w.nodeNotReady(pod)
		}
		w.addCause(n, stageContainer, reason, message, c.LastTransitionTime)
	}
}

// nodeNotReady returns a message for a running Pod whose Ready condition has no reason. Only the
// node lifecycle controller writes such a condition, when the Pod's node is not Ready.
func (w *walk) nodeNotReady(pod *corev1.Pod) string {
	for _, p := range w.podsOfSubject() {
		id := w.facts.MemberOfPod(p)
		if id == "" || p.Pod.Name != pod.Name {
			continue
		}
		node := "the Pod's node"
		if p.Leaf != nil && p.Leaf.Spec.NodeName != "" {
			node = fmt.Sprintf("the Pod's node %q", inspect.Plain(p.Leaf.Spec.NodeName))
		}
		return node + w.describeMember(id) + " is not Ready. Ask the member's admin to check the node's kubelet"
	}
	return fmt.Sprintf("the Pod's node %q is not Ready. Check the node's kubelet", pod.Spec.NodeName)
}

func (w *walk) addCause(n *inspect.Node, at stage, reason, message string, since metav1.Time) {
	what, toDo := inspect.ExplainReason(reason, message)
	w.causes = append(w.causes, Cause{ObjectRef: refOfNode(n), Reason: reason, What: what, ToDo: toDo, Since: since, stage: at})
}

func refOfNode(n *inspect.Node) ObjectRef { return ObjectRef{n.Kind, n.Namespace, n.Name, n.Cluster} }

// orderedCauses sorts the causes by stage, and removes duplicates, because Pods repeat their claims'
// problems, and events repeat conditions, sometimes with another reason. The latest event comes first,
// because earlier ones may report problems that have been solved.
func orderedCauses(causes []Cause) []Cause {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if a.stage == stageEvent && b.stage == stageEvent {
			return b.Since.Compare(a.Since.Time)
		}
		return cmp.Compare(a.stage, b.stage)
	})
	var kept []Cause
	for _, c := range causes {
		relays := c.stage == stageRelay || c.stage == stageEvent
		if !slices.ContainsFunc(kept, func(k Cause) bool {
			return k.Reason == c.Reason || k.What == c.What || relays && repeatsMessage(c.What, k.What)
		}) {
			kept = append(kept, c)
		}
	}
	return kept
}

// leastQuote is the length of a quotation, in bytes. Shorter texts occur in others by chance.
const leastQuote = 20

// repeatsMessage reports whether a message quotes another one, and may have truncated it.
func repeatsMessage(message, other string) bool {
	quoted, truncated := strings.CutSuffix(message, "…")
	for more := truncated; more; {
		if _, quoted, more = strings.Cut(quoted, ": "); more && len(quoted) >= leastQuote && strings.HasPrefix(other, quoted) {
			return true
		}
	}
	return message == other || len(other) >= leastQuote && strings.Contains(message, other)
}

// appendEvidence appends the node and every object below it, except those that were not read.
func appendEvidence(n *inspect.Node, to []Evidence) []Evidence {
	if n.State != inspect.StateNotRead {
		to = append(to, Evidence{refOfNode(n), n.State, n.Created, n.Conditions, n.Events})
	}
	for i := range n.Children {
		to = appendEvidence(&n.Children[i], to)
	}
	return to
}
