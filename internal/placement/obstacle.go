package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/nodes"
)

// Obstacle is the reason why a member cannot take a claim or a Pod. Each obstacle is worded here, or in
// the rule's file, and nowhere else.
type Obstacle struct {
	// Reason is the condition's reason.
	Reason string
	// Cause follows the member's name: member "cluster38" is cordoned. If WholeSentence is set, it does not.
	Cause         string
	WholeSentence bool
	// Remedy is what the user or an admin can do. It may be empty.
	Remedy string
}

// describeObstacle returns the obstacle's cause, with the member's name.
func (m Member) describeObstacle(o *Obstacle) string {
	if o.WholeSentence {
		return o.Cause
	}
	return fmt.Sprintf("member %q %s", m.Registration, o.Cause)
}

// refusalFor returns the obstacle as a problem to report, or nil.
func (m Member) refusalFor(o *Obstacle) *mirror.Refusal {
	if o == nil {
		return nil
	}
	refusal := &mirror.Refusal{Reason: o.Reason, Message: m.describeObstacle(o)}
	if o.Remedy != "" {
		refusal.Message += ". " + o.Remedy
	}
	return refusal
}

// obstacleOf returns a refusal that does not depend on the member as an obstacle, or nil.
func obstacleOf(refusal *mirror.Refusal) *Obstacle {
	if refusal == nil {
		return nil
	}
	return &Obstacle{Reason: refusal.Reason, Cause: refusal.Message, WholeSentence: true}
}

// leavingObstacle is the obstacle of a member that is being deregistered.
func leavingObstacle(connected bool) *Obstacle {
	cause := "is being deregistered"
	if !connected {
		cause += ", and is not connected"
	}
	return &Obstacle{Reason: v1alpha1.ReasonMemberLeaving, Cause: cause,
		Remedy: "To use this member, register the member again. Otherwise, the scheduler chooses another member, if one is suitable"}
}

// nodeObstacle returns why a Pod cannot be scheduled to the member's virtual node, regardless of resource
// amounts, or nil.
func (c Candidate) nodeObstacle(pod *corev1.Pod) *Obstacle {
	const whenConnected = "The Pod is scheduled when a member is connected again"
	switch {
	case c.Node == nil:
		return &Obstacle{Reason: v1alpha1.ReasonMemberAway, Cause: "has no virtual node yet",
			Remedy: fmt.Sprintf("See `kubectl describe clusterregistration %s`", c.Registration)}
	case !PodSelectsNode(pod, c.Node):
		return &Obstacle{Reason: v1alpha1.ReasonNodeSelectorMismatch, Cause: "is excluded by the Pod's nodeSelector or node affinity", Remedy: c.selectorRemedy(pod)}
	case nodes.MemberAway(c.Node):
		away := nodes.FindCondition(c.Node, v1alpha1.NodeMemberAway)
		since := away.LastTransitionTime.UTC().Format(time.RFC3339)
		if away.Reason == v1alpha1.ReasonNoReadyNodes {
			return &Obstacle{Reason: v1alpha1.ReasonNoReadyNodes, Cause: "has had no Ready node since " + since,
				Remedy: "The Pod is scheduled when a node in a member is Ready again"}
		}
		return &Obstacle{Reason: v1alpha1.ReasonMemberAway, Cause: fmt.Sprintf("has been away since %s (%s)", since, away.Reason), Remedy: whenConnected}
	case !c.Connected:
		return &Obstacle{Reason: v1alpha1.ReasonMemberAway, Cause: "is not connected", Remedy: whenConnected}
	case c.Node.Spec.Unschedulable:
		remedy := fmt.Sprintf("To allow new Pods, run `kubectl uncordon %s`", c.Node.Name)
		if c.IsGroup() {
			remedy += ", or, if Xylem cordoned the node, uncordon a node of its group in the member"
		}
		return &Obstacle{Reason: v1alpha1.ReasonCordoned, Cause: "is cordoned", Remedy: remedy}
	}
	if taints := UntoleratedTaints(pod, c.Node); len(taints) > 0 {
		return taintObstacle(taints)
	}
	if missing := nodes.FindCondition(c.Node, v1alpha1.NodeCSINode); missing != nil {
		return &Obstacle{Reason: missing.Reason, Cause: "has no CSINode created by Xylem in the host",
			Remedy: fmt.Sprintf("See the condition %s of `kubectl describe node %s`", missing.Type, c.Node.Name)}
	}
	if nodes.AcceptsNoPods(c.Node) {
		return &Obstacle{Reason: v1alpha1.ReasonNoUsableNodes, Cause: "accepts no new Pods, because all of its Ready nodes are cordoned or tainted",
			Remedy: "Uncordon a node in the member, or remove its taint. For Pods that tolerate the taint, set spec.node.capacity in the ClusterRegistration"}
	}
	return nil
}

// selectorRemedy returns what to do about a Pod whose own requirements exclude a member. The admission
// policy in config/steering may have added such a requirement.
func (m Member) selectorRemedy(pod *corev1.Pod) string {
	for _, term := range requiredNodeTerms(pod) {
		for _, e := range term.MatchExpressions {
			if e.Key == v1alpha1.LabelCluster && e.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(e.Values, m.Registration) {
				return fmt.Sprintf("If the affinity %s NotIn %s was added when a member did not admit the namespace, re-create the Pod", e.Key, m.Registration)
			}
		}
	}
	return "Change the Pod's nodeSelector or affinity if the Pod should run in another member"
}

// requiredNodeTerms returns the terms of the Pod's required node affinity.
func requiredNodeTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

// taintObstacle names the taints and the tolerations to add.
func taintObstacle(taints []corev1.Taint) *Obstacle {
	var names, tolerations []string
	for _, t := range taints {
		names = append(names, t.ToString())
		tolerations = append(tolerations, TolerationYAML(t))
	}
	return &Obstacle{Reason: v1alpha1.ReasonTolerationMissing,
		Cause:  fmt.Sprintf("has a taint that the Pod does not tolerate (%s)", strings.Join(names, ", ")),
		Remedy: fmt.Sprintf("Add to the Pod's spec: tolerations: [%s]", strings.Join(tolerations, ", "))}
}

// storageObstacle returns why the host's CSIStorageCapacities keep a claim with a class out of the member, or nil.
func (c Candidate) storageObstacle(claim ClaimNeed, hasClass func(registration, class string) bool) *Obstacle {
	largest, offered := c.Largest[claim.Class.Name]
	class, rule := c.StorageClassFor(claim.Class)
	switch {
	case offered && claim.Size.Cmp(largest) > 0:
		return &Obstacle{Reason: v1alpha1.ReasonNoCapacity, Cause: fmt.Sprintf("has %s of the %s that claim %q requests", capacityText(largest), claim.Size.String(), claim.Name),
			Remedy: "Request less, or add capacity in a member"}
	case offered:
		return nil
	case hasClass == nil:
		return &Obstacle{Reason: v1alpha1.ReasonNotOffered, Cause: fmt.Sprintf("has no capacity for StorageClass %q of the host: the member lacks StorageClass %q (by %s), or has not reported capacity for that class yet",
			claim.Class.Name, class, rule), Remedy: "Create the class in the member, change spec.storage.classes of the member's registration, or choose another member"}
	case hasClass(c.Registration, class):
		return &Obstacle{Reason: v1alpha1.ReasonCapacityUnpublished, Cause: fmt.Sprintf("has no CSIStorageCapacity in the host for class %q%s", claim.Class.Name, claim.ofClaim()),
			Remedy: fmt.Sprintf("If this does not change soon, see the events of `kubectl describe clusterregistration %s`", c.Registration)}
	}
	by := "by " + rule
	if claim.Name != "" {
		by = fmt.Sprintf("for class %q%s, %s", claim.Class.Name, claim.ofClaim(), by)
	}
	return &Obstacle{Reason: v1alpha1.ReasonNotOffered, Cause: fmt.Sprintf("has no StorageClass %q (%s)", class, by),
		Remedy: "Create the class in a member, or map the class of the claim to another one in the ClusterRegistration (spec.storage.classes)"}
}

func capacityText(q resource.Quantity) string {
	if q.Value() == math.MaxInt64 {
		return "unlimited capacity"
	}
	return q.String()
}
