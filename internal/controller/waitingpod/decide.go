package waitingpod

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index/registered"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/text"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	// patience is how long a Pod must be unschedulable before Xylem looks for the cause,
	// because the scheduler retries a Pod whose claim is about to be bound.
	patience = 5 * time.Second
	// refresh is the minimum time between two messages with the same reason.
	refresh = time.Minute
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	pod *corev1.Pod
	// onHost means that the Pod is on a host node.
	onHost  bool
	claims  []claimSeen
	members []registered.Member
	// has reports whether a member has a class.
	has func(registration, class string) bool
	// namespace is the Pod's namespace. It is read together with the members.
	namespace placement.Namespace
	now       time.Time
}

// claimSeen is a claim of the Pod that Xylem provisions.
type claimSeen struct {
	claim *corev1.PersistentVolumeClaim
	// class is the class that the member needs for an unbound claim. It is nil for a promise
	// and for a bound claim.
	class *storagev1.StorageClass
	// volume is the host PV to which the claim is bound.
	volume *corev1.PersistentVolume
	// source is the cluster ID of the member that has the claim's data source, and is therefore the
	// only one that can create the claim. It is empty if every member can, or if the member is not
	// recorded yet.
	source string
}

// decision is the problem to report on the Pod, if any, and when to check again.
type decision struct {
	problem *mirror.Refusal
	again   time.Duration // 0 means that an event enqueues the Pod
}

func decide(o observed) decision {
	if o.unreachable() {
		return decision{problem: o.onWrongNode()}
	}
	if !o.waits() {
		return decision{}
	}
	d := o.find()
	shown := lastShown(o.pod)
	if d.problem == nil || shown == nil || shown.Reason != d.problem.Reason || shown.Message == d.problem.Message {
		return d
	}
	if left := shown.LastProbeTime.Add(refresh).Sub(o.now); left > 0 {
		return decision{&mirror.Refusal{Reason: shown.Reason, Message: shown.Message}, left}
	}
	return d
}

// waits reports whether the Pod waits for the scheduler to select a node, perhaps because of virtual nodes.
func (o observed) waits() bool {
	return o.pod != nil && o.pod.Spec.NodeName == "" && o.pod.DeletionTimestamp == nil && !podstatus.Finished(o.pod) &&
		len(o.pod.Spec.SchedulingGates) == 0 && (len(o.claims) > 0 || len(excludingRules(o.pod)) > 0)
}

// excludingRules returns the rules because of which the host's scheduler excludes nodes.
func excludingRules(pod *corev1.Pod) []string {
	c := podstatus.Condition(pod.Status.Conditions, corev1.PodScheduled)
	// While a node is nominated, the message is about an earlier attempt.
	if _, unschedulable := unschedulableSince(pod); !unschedulable || pod.Status.NominatedNodeName != "" {
		return nil
	}
	return wording.ExcludingRules(c.Message)
}

// unreachable reports whether the Pod is on a host node and has a claim that Xylem provisions.
func (o observed) unreachable() bool {
	return o.pod != nil && o.onHost && o.pod.DeletionTimestamp == nil && !podstatus.Finished(o.pod) && len(o.claims) > 0
}

// onWrongNode returns the problem of a Pod on a host node. For a promise that is not limited to
// members, the scheduler may choose such a node. Otherwise, someone set spec.nodeName.
func (o observed) onWrongNode() *mirror.Refusal {
	c := o.claims[0]
	remedy := "Re-create the Pod without spec.nodeName"
	if c.volume != nil && hostpv.IsPromise(c.volume) {
		remedy = fmt.Sprintf("Re-create the Pod. If the host runs a Kubernetes version before 1.37, also set nodeSelector %s=true, or use a class with %s=%s or %s=%s", v1alpha1.LabelVirtualNode,
			v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
	}
	return mirror.Refuse(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %q cannot be mounted on node %q: only nodes of members can mount the volume, and this node belongs to the host. %s", c.claim.Name, o.pod.Spec.NodeName, remedy)
}

func lastShown(pod *corev1.Pod) *corev1.PodCondition {
	return podstatus.Condition(pod.Status.Conditions, v1alpha1.PodPlaceable)
}

func (o observed) find() decision {
	if problem := o.claimProblem(); problem != nil {
		if ofOneMember(problem) && len(o.members) > 0 {
			return decision{problem: cmp.Or(o.obstacles(), problem)}
		}
		return decision{problem: problem}
	}
	since, unschedulable := unschedulableSince(o.pod)
	// A Pod that was pushed has a suitable member.
	if !unschedulable || len(o.members) == 0 || podstatus.Pushed(o.pod) == corev1.ConditionTrue {
		return decision{}
	}
	if wait := since.Add(patience).Sub(o.now); wait > 0 {
		return decision{again: wait}
	}
	if len(o.claims) == 0 {
		return decision{problem: o.excluded()}
	}
	return decision{problem: cmp.Or(o.obstacles(), o.stranded(), o.excluded())}
}

// excluded reports that the scheduler excludes nodes because of rules whose effect on virtual nodes its
// message does not show. It returns nil if the Pod could run on no virtual node without these rules, because
// then the message is about other nodes.
func (o observed) excluded() *mirror.Refusal {
	rules := excludingRules(o.pod)
	if len(rules) == 0 || !slices.ContainsFunc(o.members, func(m registered.Member) bool { return m.MayRun(*o.pod) }) {
		return nil
	}
	message := podstatus.Condition(o.pod.Status.Conditions, corev1.PodScheduled).Message
	return mirror.Refuse(v1alpha1.ReasonNoMemberFits, "no node fits the Pod: the host's scheduler excludes nodes because of %s. %s", strings.Join(rules, ", "), wording.Remedies(message, false))
}

// stranded reports that a claim is selected for a member that cannot run the Pod, although another
// member can. The scheduler's message names the volumes of the other members as the cause. It returns
// nil if no such claim is known.
func (o observed) stranded() *mirror.Refusal {
	for _, c := range o.claims {
		node := c.claim.Annotations[route.AnnSelectedNode]
		for _, m := range o.members {
			if c.class == nil || m.NodeName != node || m.Connecting {
				continue
			}
			if ob := o.obstacle(m); ob != nil {
				return mirror.Refuse(v1alpha1.ReasonNotScheduled, "claim %q is selected for member %q, which cannot run the Pod because it %s. The scheduler considers no other member until the selection changes. Xylem selects another member after the class's %s, unless member %[2]q may be provisioning the volume",
					c.claim.Name, m.Registration, ob.why, v1alpha1.ParameterPlacementTimeout)
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
			if problem := report.ClaimProblem(c.claim, kind); problem != nil && o.concernsPod(problem.Reason) && !report.UsableDespite(c.claim, c.volume, problem.Reason) {
				return mirror.Refuse(problem.Reason, "claim %q: %s", c.claim.Name, problem.Message)
			}
		}
	}
	return nil
}

// ofOneMember reports whether a claim's problem, if any, comes from the rules of a single member.
// The rules of the other members may also exclude the Pod, so the Pod's message names them, too.
func ofOneMember(problem *mirror.Refusal) bool {
	return problem != nil && problem.Reason == v1alpha1.ReasonNamespaceNotAdmitted
}

// concernsPod reports whether a claim's problem is repeated on the Pod. NotOffered is not,
// because obstacles reports which members lack the class, together with other problems. The same
// applies to CapacityUnpublished.
func (observed) concernsPod(reason string) bool {
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

// obstacle is the reason why a member cannot run the Pod.
type obstacle struct {
	reason string
	// why follows the member's name in the message. remedy is what the user can do.
	why, remedy string
}

// obstacles reports why each member cannot run the Pod. It returns nil if, as far as Xylem
// knows, some member can. Then only the scheduler's message remains.
func (o observed) obstacles() *mirror.Refusal {
	members, pinned := o.candidates()
	if len(members) == 0 {
		return apart(pinned)
	}
	var found []obstacle
	var named []string
	for _, m := range members {
		if m.Connecting {
			return nil
		}
		ob := o.obstacle(m)
		if ob == nil {
			return nil
		}
		found = append(found, *ob)
		named = append(named, fmt.Sprintf("member %q %s", m.Registration, ob.why))
	}
	reason, remedies := summary(found)
	what := "no member can run the Pod"
	if len(pinned) > 0 {
		what = fmt.Sprintf("the Pod cannot run where its claim %q is", pinned[0].claim.Name)
		if pinned[0].source != "" {
			what = fmt.Sprintf("the Pod cannot run where the data source of its claim %q is", pinned[0].claim.Name)
		} else if len(pinned) == 1 && o.movable(members) {
			remedies = append(remedies, fmt.Sprintf("Or delete the Pod (scale down its owner), and move the claim to another member: `kubectl xylem move pvc %s -n %s --to MEMBER`.",
				pinned[0].claim.Name, pinned[0].claim.Namespace))
		}
	}
	return mirror.Refuse(reason, "%s: %s. %s", what, some(named), strings.Join(remedies, " "))
}

// movable reports whether data in the given members can be moved: they are connected, and there is another member
// that is connected and not being deregistered.
func (o observed) movable(from []registered.Member) bool {
	staying, _ := registered.Split(o.members)
	return !slices.ContainsFunc(from, func(m registered.Member) bool { return !m.Connected }) && slices.ContainsFunc(staying, func(m registered.Member) bool {
		return m.Connected && !slices.ContainsFunc(from, func(f registered.Member) bool { return f.Registration == m.Registration })
	})
}

// candidates returns the members that can reach the volumes of all bound claims, and the
// claims whose volumes are limited to certain members. It returns members that are leaving only if
// there are no others.
func (o observed) candidates() (members []registered.Member, pinned []claimSeen) {
	for _, c := range o.claims {
		if c.volume != nil && c.volume.Spec.NodeAffinity != nil || c.source != "" {
			pinned = append(pinned, c)
		}
	}
	for _, m := range o.members {
		reaches := !slices.ContainsFunc(pinned, func(c claimSeen) bool {
			if c.source != "" {
				return c.source != m.ClusterID
			}
			answer := m.Answer(placement.Request{Namespace: o.namespace, Volume: c.volume})
			return answer.Refusal != nil && answer.Refusal.Reason == v1alpha1.ReasonVolumeElsewhere
		})
		if reaches {
			members = append(members, m)
		}
	}
	if staying, _ := registered.Split(members); len(staying) > 0 {
		return staying, pinned
	}
	return members, pinned
}

// apart returns the problem of a Pod whose volumes no single member can reach.
func apart(pinned []claimSeen) *mirror.Refusal {
	var where []string
	for _, c := range pinned {
		if c.source != "" {
			where = append(where, fmt.Sprintf("the data source of claim %q is in cluster %q", c.claim.Name, c.source))
			continue
		}
		in := c.volume.Labels[v1alpha1.LabelCluster]
		if id, _, asks := hostpv.ImportOf(c.volume); asks {
			in = id
		}
		if in == "" {
			in = "unknown"
		}
		where = append(where, fmt.Sprintf("claim %q is in member %q", c.claim.Name, in))
	}
	return mirror.Refuse(v1alpha1.ReasonVolumesApart, "no registered member can reach all volumes of the Pod: %s. Use claims whose volumes are in one member (`kubectl xylem move` moves a claim), or register the member that has the volumes", some(where))
}

// summary returns the most helpful reason, and the remedies without duplicates.
func summary(found []obstacle) (reason string, remedies []string) {
	reasons := map[string]bool{}
	for _, ob := range found {
		if ob.reason != v1alpha1.ReasonNodeSelectorMismatch || len(found) == 1 {
			reasons[ob.reason], reason = true, ob.reason
		}
		if ob.remedy != "" && !slices.Contains(remedies, ob.remedy) {
			remedies = append(remedies, ob.remedy)
		}
	}
	switch len(reasons) {
	case 0:
		return v1alpha1.ReasonNodeSelectorMismatch, remedies
	case 1:
		return reason, remedies
	}
	return v1alpha1.ReasonNoMemberFits, remedies
}

// obstacle returns the reason why one member cannot run the Pod, or nil.
func (o observed) obstacle(m registered.Member) *obstacle {
	if m.Leaving {
		why := "is being deregistered"
		if !m.Connected {
			why += ", and is not connected"
		}
		return &obstacle{v1alpha1.ReasonMemberLeaving, why, "To run the Pod there, register the member again."}
	}
	if ob := o.refused(m); ob != nil {
		return ob
	}
	if m.Node == nil {
		return &obstacle{v1alpha1.ReasonMemberAway, "has no virtual node yet", "See `kubectl describe clusterregistration " + m.Registration + "`."}
	}
	switch {
	case !placement.Selects(o.pod, m.Node):
		return &obstacle{v1alpha1.ReasonNodeSelectorMismatch, "is excluded by the Pod's nodeSelector or node affinity",
			o.change(m)}
	case nodes.Away(m.Node):
		away := nodes.Condition(m.Node, v1alpha1.NodeMemberAway)
		if away.Reason == v1alpha1.ReasonNoReadyNodes {
			return &obstacle{v1alpha1.ReasonNoReadyNodes, "has had no Ready node since " + away.LastTransitionTime.UTC().Format(time.RFC3339),
				"The Pod is scheduled when a node in a member is Ready again."}
		}
		return &obstacle{v1alpha1.ReasonMemberAway, fmt.Sprintf("has been away since %s (%s)", away.LastTransitionTime.UTC().Format(time.RFC3339), away.Reason),
			"The Pod is scheduled when a member is connected again."}
	case !m.Connected:
		return &obstacle{v1alpha1.ReasonMemberAway, "is not connected", "The Pod is scheduled when a member is connected again."}
	case m.Node.Spec.Unschedulable:
		return &obstacle{v1alpha1.ReasonCordoned, "is cordoned", fmt.Sprintf("To allow new Pods, run `kubectl uncordon %s`.", m.NodeName)}
	}
	if taints := placement.Untolerated(o.pod, m.Node); len(taints) > 0 {
		return untolerated(taints)
	}
	if c := nodes.Condition(m.Node, v1alpha1.NodeCSINode); c != nil {
		return &obstacle{c.Reason, "has no CSINode created by Xylem in the host", fmt.Sprintf("See the condition %s of `kubectl describe node %s`.", c.Type, m.NodeName)}
	}
	if nodes.AcceptsNone(m.Node) {
		return &obstacle{v1alpha1.ReasonNoUsableNodes, "accepts no new Pods, because all of its Ready nodes are cordoned or tainted",
			"Uncordon a node in the member, or remove its taint. For Pods that tolerate the taint, set spec.node.capacity in the ClusterRegistration."}
	}
	return o.noCapacity(m)
}

// change returns what to do about a Pod whose own requirements exclude a member. The admission
// policy in config/steering may have added such a requirement.
func (o observed) change(m registered.Member) string {
	for _, term := range nodeTerms(o.pod) {
		for _, e := range term.MatchExpressions {
			if e.Key == v1alpha1.LabelCluster && e.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(e.Values, m.Registration) {
				return fmt.Sprintf("If the affinity %s NotIn %s was added when a member did not admit the namespace, re-create the Pod.", e.Key, m.Registration)
			}
		}
	}
	return "Change the Pod's nodeSelector or affinity if the Pod should run in another member."
}

// nodeTerms returns the terms of the Pod's required node affinity.
func nodeTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

// refused returns an obstacle if the rules of the registration or of a class exclude the Pod.
func (o observed) refused(m registered.Member) *obstacle {
	requests := []placement.Request{{Namespace: o.namespace}}
	for _, c := range o.claims {
		requests = append(requests, placement.Request{Namespace: o.namespace, Class: c.class})
	}
	for _, request := range requests {
		switch answer := m.Answer(request); {
		case answer.Refusal == nil:
		case answer.Refusal.Reason == v1alpha1.ReasonClassKeepsOff:
			return &obstacle{v1alpha1.ReasonClassKeepsOff, fmt.Sprintf("is excluded by the allowedTopologies of StorageClass %q", request.Class.Name),
				"Use another class, or change the allowedTopologies of the class."}
		default:
			return &obstacle{answer.Refusal.Reason, o.notAdmitted(m), "Use another namespace, or change spec.namespaces of a ClusterRegistration."}
		}
	}
	return nil
}

// notAdmitted names the member's rule that excludes the Pod's namespace.
func (o observed) notAdmitted(m registered.Member) string {
	what := fmt.Sprintf("does not admit namespace %q", o.pod.Namespace)
	if rule := m.Excludes(o.namespace); rule != "" {
		what += ": " + rule
	}
	return what
}

// untolerated returns an obstacle that names the taints and the tolerations to add.
func untolerated(taints []corev1.Taint) *obstacle {
	var names, lines []string
	for _, t := range taints {
		names = append(names, t.ToString())
		lines = append(lines, placement.Toleration(t))
	}
	return &obstacle{v1alpha1.ReasonTolerationMissing,
		fmt.Sprintf("has a taint that the Pod does not tolerate (%s)", strings.Join(names, ", ")),
		fmt.Sprintf("Add to the Pod's spec: tolerations: [%s].", strings.Join(lines, ", "))}
}

// noCapacity returns an obstacle if the member lacks a class of the Pod's claims, or the
// capacity for one of them.
func (o observed) noCapacity(m registered.Member) *obstacle {
	for _, c := range o.claims {
		if c.class == nil {
			continue
		}
		largest, offered := m.Largest[c.class.Name]
		if !offered {
			class, rule := m.ClassFor(c.class)
			if o.has(m.Registration, class) {
				return &obstacle{v1alpha1.ReasonCapacityUnpublished, fmt.Sprintf("has no CSIStorageCapacity in the host for class %q of claim %q", c.class.Name, c.claim.Name),
					fmt.Sprintf("If this does not change soon, see the events of `kubectl describe clusterregistration %s`.", m.Registration)}
			}
			return &obstacle{v1alpha1.ReasonNotOffered, fmt.Sprintf("has no StorageClass %q (for class %q of claim %q, by %s)", class, c.class.Name, c.claim.Name, rule),
				"Create the class in a member, or map the class of the claim to another one in the ClusterRegistration (spec.storage.classes)."}
		}
		if requested := c.claim.Spec.Resources.Requests[corev1.ResourceStorage]; requested.Cmp(largest) > 0 {
			return &obstacle{v1alpha1.ReasonNoCapacity, fmt.Sprintf("has %s of the %s that claim %q requests", amount(largest), requested.String(), c.claim.Name),
				"Request less, or add capacity in a member."}
		}
	}
	return nil
}

func amount(q resource.Quantity) string {
	if q.Value() == math.MaxInt64 {
		return "unlimited capacity"
	}
	return q.String()
}

// some joins the first few names, and appends the number of the rest.
func some(names []string) string {
	return text.FirstNames(names, text.NamesListed, "; ")
}
