package waitingpod

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	// unschedulableGrace is how long a Pod must be unschedulable before Xylem looks for the cause,
	// because the scheduler retries a Pod whose claim is about to be bound.
	unschedulableGrace = 5 * time.Second
	// minMessageInterval is the minimum time between two messages with the same reason.
	minMessageInterval = time.Minute
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	pod *corev1.Pod
	// onHostNode means that the Pod is on a host node.
	onHostNode bool
	claims     []observedClaim
	members    []placement.Candidate
	// memberHasClass reports whether a member has a class.
	memberHasClass func(registration, class string) bool
	// namespace is the Pod's namespace. It is read together with the members.
	namespace placement.Namespace
	now       time.Time
}

// observedClaim is a claim of the Pod that Xylem provisions.
type observedClaim struct {
	claim *corev1.PersistentVolumeClaim
	// class is the class that the member needs for an unbound claim. It is nil for a promise
	// and for a bound claim.
	class *storagev1.StorageClass
	// volume is the host PV to which the claim is bound.
	volume *corev1.PersistentVolume
	// sourceClusterID is the cluster ID of the member that has the claim's data source, and is therefore the
	// only one that can create the claim. It is empty if every member can, or if the member is not
	// recorded yet.
	sourceClusterID string
}

// decision is the problem to report on the Pod, if any, and when to check again.
type decision struct {
	problem *mirror.Refusal
	again   time.Duration // 0 means that an event enqueues the Pod
}

func decidePodProblem(o observed) decision {
	if o.volumesUnreachable() {
		return decision{problem: o.wrongNodeRefusal()}
	}
	if !o.podWaitsForNode() {
		return decision{}
	}
	d := o.findProblem()
	shown := lastShownCondition(o.pod)
	if d.problem == nil || shown == nil || shown.Reason != d.problem.Reason || shown.Message == d.problem.Message {
		return d
	}
	if left := shown.LastProbeTime.Add(minMessageInterval).Sub(o.now); left > 0 {
		return decision{&mirror.Refusal{Reason: shown.Reason, Message: shown.Message}, left}
	}
	return d
}

// podWaitsForNode reports whether the Pod waits for the scheduler to select a node, perhaps because of virtual nodes.
func (o observed) podWaitsForNode() bool {
	return o.pod != nil && o.pod.Spec.NodeName == "" && o.pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(o.pod) &&
		len(o.pod.Spec.SchedulingGates) == 0 && (len(o.claims) > 0 || len(excludingRules(o.pod)) > 0)
}

// excludingRules returns the rules because of which the host's scheduler excludes nodes.
func excludingRules(pod *corev1.Pod) []string {
	c := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodScheduled)
	// While a node is nominated, the message is about an earlier attempt.
	if _, unschedulable := unschedulableSince(pod); !unschedulable || pod.Status.NominatedNodeName != "" {
		return nil
	}
	return wording.ExcludingRules(c.Message)
}

// volumesUnreachable reports whether the Pod is on a host node and has a claim that Xylem provisions.
func (o observed) volumesUnreachable() bool {
	return o.pod != nil && o.onHostNode && o.pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(o.pod) && len(o.claims) > 0
}

// wrongNodeRefusal returns the problem of a Pod on a host node. For a promise that is not limited to
// members, the scheduler may choose such a node. Otherwise, someone set spec.nodeName.
func (o observed) wrongNodeRefusal() *mirror.Refusal {
	c := o.claims[0]
	remedy := "Re-create the Pod without spec.nodeName"
	if c.volume != nil && hostpv.IsPromise(c.volume) {
		remedy = fmt.Sprintf("Re-create the Pod. If the host runs a Kubernetes version before 1.37, also set nodeSelector %s=true, or use a class with %s=%s or %s=%s", v1alpha1.LabelVirtualNode,
			v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
	}
	return mirror.NewRefusal(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %q cannot be mounted on node %q: only nodes of members can mount the volume, and this node belongs to the host. %s", c.claim.Name, o.pod.Spec.NodeName, remedy)
}

func lastShownCondition(pod *corev1.Pod) *corev1.PodCondition {
	return podstatus.FindPodCondition(pod.Status.Conditions, v1alpha1.PodPlaceable)
}

func (o observed) findProblem() decision {
	if problem := o.claimProblem(); problem != nil {
		if isRuleOfOneMember(problem) && len(o.members) > 0 {
			return decision{problem: cmp.Or(o.obstaclesOfMembers(), problem)}
		}
		return decision{problem: problem}
	}
	since, unschedulable := unschedulableSince(o.pod)
	// A Pod that was pushed has a suitable member.
	if !unschedulable || len(o.members) == 0 || podstatus.PushedStatus(o.pod) == corev1.ConditionTrue {
		return decision{}
	}
	if wait := since.Add(unschedulableGrace).Sub(o.now); wait > 0 {
		return decision{again: wait}
	}
	if len(o.claims) == 0 {
		return decision{problem: o.excludingRulesRefusal()}
	}
	return decision{problem: cmp.Or(o.obstaclesOfMembers(), o.strandedClaimRefusal(), o.excludingRulesRefusal())}
}

// excludingRulesRefusal reports that the scheduler excludes nodes because of rules whose effect on virtual nodes its
// message does not show. It returns nil if the Pod could run on no virtual node without these rules, because
// then the message is about other nodes.
func (o observed) excludingRulesRefusal() *mirror.Refusal {
	rules := excludingRules(o.pod)
	if len(rules) == 0 || !slices.ContainsFunc(o.members, func(m placement.Candidate) bool { return m.MayRunPods(*o.pod) }) {
		return nil
	}
	message := podstatus.FindPodCondition(o.pod.Status.Conditions, corev1.PodScheduled).Message
	return mirror.NewRefusal(v1alpha1.ReasonNoMemberFits, "no node fits the Pod: the host's scheduler excludes nodes because of %s. %s", strings.Join(rules, ", "), wording.RemediesFor(message, false))
}

// strandedClaimRefusal reports that a claim is selected for a member that cannot run the Pod, although another
// member can. The scheduler's message names the volumes of the other members as the cause. It returns
// nil if no such claim is known.
func (o observed) strandedClaimRefusal() *mirror.Refusal {
	for _, c := range o.claims {
		node := c.claim.Annotations[route.AnnSelectedNode]
		for _, m := range o.members {
			if c.class == nil || m.VirtualNodeName() != node || m.Connecting {
				continue
			}
			if obstacle := o.placementQuery().VerdictOn(m).Obstacle(); obstacle != nil {
				where := fmt.Sprintf("member %q", m.Registration)
				if m.IsGroup() {
					where = fmt.Sprintf("node %q of %s", node, where)
				}
				return mirror.NewRefusal(v1alpha1.ReasonNotScheduled, "claim %q is selected for %s, which cannot run the Pod because it %s. The scheduler considers no other member until the selection changes. Xylem selects another member after the class's %s, unless member %q may be provisioning the volume",
					c.claim.Name, where, obstacle.Cause, v1alpha1.ParameterPlacementTimeout, m.Registration)
			}
		}
	}
	return nil
}

// claimProblem returns the first problem of a claim that concerns the Pod. A problem despite which
// Pods can use the claim, such as a rejected expansion, does not keep the Pod from a node.
func (o observed) claimProblem() *mirror.Refusal {
	for _, c := range o.claims {
		for _, kind := range []corev1.PersistentVolumeClaimConditionType{v1alpha1.ClaimPlaceable, v1alpha1.ClaimPlaced} {
			if problem := report.ClaimConditionProblem(c.claim, kind); problem != nil && o.repeatedOnPod(problem.Reason) && !report.IsClaimUsableDespite(c.claim, c.volume, problem.Reason) {
				return mirror.NewRefusal(problem.Reason, "claim %q: %s", c.claim.Name, problem.Message)
			}
		}
	}
	return nil
}

// isRuleOfOneMember reports whether a claim's problem, if any, comes from the rules of a single member.
// The rules of the other members may also exclude the Pod, so the Pod's message names them, too.
func isRuleOfOneMember(problem *mirror.Refusal) bool {
	return problem != nil && problem.Reason == v1alpha1.ReasonNamespaceNotAdmitted
}

// repeatedOnPod reports whether a claim's problem is repeated on the Pod. NotOffered is not,
// because obstacles reports which members lack the class, together with other problems. The same
// applies to CapacityUnpublished.
func (observed) repeatedOnPod(reason string) bool {
	return reason != v1alpha1.ReasonNotOffered && reason != v1alpha1.ReasonCapacityUnpublished
}

// unschedulableSince returns when the Pod became unschedulable, or false if it is not.
func unschedulableSince(pod *corev1.Pod) (time.Time, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return time.Time{}, false
}

// placementQuery asks which members can run the Pod. It names no volumes, because only members that reach them are asked.
func (o observed) placementQuery() placement.Query {
	q := placement.Query{Namespace: o.namespace, Pods: []corev1.Pod{*o.pod}, HasClass: o.memberHasClass}
	for _, c := range o.claims {
		q.Claims = append(q.Claims, placement.ClaimNeed{Name: c.claim.Name, Class: c.class, Size: c.claim.Spec.Resources.Requests[corev1.ResourceStorage]})
	}
	return q
}

// obstaclesOfMembers reports why each member cannot run the Pod. It returns nil if, as far as Xylem
// knows, some member can. Then only the scheduler's message remains.
func (o observed) obstaclesOfMembers() *mirror.Refusal {
	members, pinned := o.reachableMembers()
	if len(members) == 0 {
		return volumesApartRefusal(pinned)
	}
	verdicts := placement.Survey(o.placementQuery(), members)
	if slices.ContainsFunc(verdicts, func(v placement.Verdict) bool { return v.Connecting || v.Obstacle() == nil }) {
		return nil
	}
	remedies := placement.Remedies(verdicts)
	what := "no member can run the Pod"
	if len(pinned) > 0 {
		what = fmt.Sprintf("the Pod cannot run where its claim %q is", pinned[0].claim.Name)
		if pinned[0].sourceClusterID != "" {
			what = fmt.Sprintf("the Pod cannot run where the data source of its claim %q is", pinned[0].claim.Name)
		} else if len(pinned) == 1 && o.dataMovable(members) {
			remedies = append(remedies, fmt.Sprintf("Or delete the Pod (scale down its owner), and move the claim to another member: `kubectl xylem move pvc %s -n %s --to MEMBER`",
				pinned[0].claim.Name, pinned[0].claim.Namespace))
		}
	}
	return mirror.NewRefusal(summaryReason(verdicts), "%s: %s. %s.", what, joinFirstNames(placement.Causes(verdicts)), strings.Join(remedies, ". "))
}

// dataMovable reports whether data in the given members can be moved: they are connected, and there is another member
// that is connected and not being deregistered.
func (o observed) dataMovable(from []placement.Candidate) bool {
	staying, _ := placement.SplitLeaving(o.members)
	return !slices.ContainsFunc(from, func(m placement.Candidate) bool { return !m.Connected }) && slices.ContainsFunc(staying, func(m placement.Candidate) bool {
		return m.Connected && !slices.ContainsFunc(from, func(f placement.Candidate) bool { return f.Registration == m.Registration })
	})
}

// reachableMembers returns the members that can reach the volumes of all bound claims, and the
// claims whose volumes are limited to certain members. It returns members that are leaving only if
// there are no others.
func (o observed) reachableMembers() (members []placement.Candidate, pinned []observedClaim) {
	for _, c := range o.claims {
		if c.volume != nil && c.volume.Spec.NodeAffinity != nil || c.sourceClusterID != "" {
			pinned = append(pinned, c)
		}
	}
	for _, m := range o.members {
		reaches := !slices.ContainsFunc(pinned, func(c observedClaim) bool {
			if c.sourceClusterID != "" {
				return c.sourceClusterID != m.ClusterID
			}
			return !m.Reaches(c.volume)
		})
		if reaches {
			members = append(members, m)
		}
	}
	if staying, _ := placement.SplitLeaving(members); len(staying) > 0 {
		return staying, pinned
	}
	return members, pinned
}

// volumesApartRefusal returns the problem of a Pod whose volumes no single member can reach.
func volumesApartRefusal(pinned []observedClaim) *mirror.Refusal {
	var where []string
	for _, c := range pinned {
		if c.sourceClusterID != "" {
			where = append(where, fmt.Sprintf("the data source of claim %q is in cluster %q", c.claim.Name, c.sourceClusterID))
			continue
		}
		in := c.volume.Labels[v1alpha1.LabelCluster]
		if id, _, asks := hostpv.RequestedImport(c.volume); asks {
			in = id
		}
		if in == "" {
			in = "unknown"
		}
		where = append(where, fmt.Sprintf("claim %q is in member %q", c.claim.Name, in))
	}
	return mirror.NewRefusal(v1alpha1.ReasonVolumesApart, "no registered member can reach all volumes of the Pod: %s. Use claims whose volumes are in one member (`kubectl xylem move` moves a claim), or register the member that has the volumes", joinFirstNames(where))
}

// summaryReason returns the most helpful reason.
func summaryReason(verdicts []placement.Verdict) string {
	var reasons []string
	for _, v := range verdicts {
		reason := v.Obstacle().Reason
		if reason != v1alpha1.ReasonNodeSelectorMismatch && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	switch len(reasons) {
	case 0:
		return v1alpha1.ReasonNodeSelectorMismatch
	case 1:
		return reasons[0]
	}
	return v1alpha1.ReasonNoMemberFits
}

func joinFirstNames(names []string) string {
	return wording.FirstNames(names, wording.NamesListed, "; ")
}
