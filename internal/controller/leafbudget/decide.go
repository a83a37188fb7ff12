package leafbudget

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// allowNoEvictions is a minAvailable that a member's Pods never reach.
const allowNoEvictions = math.MaxInt32

// observed is the input of decideBudgetAction. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	host   *policyv1.PodDisruptionBudget
	// sameName is the member's budget with the host budget's name.
	sameName *policyv1.PodDisruptionBudget
	// ownBudget is the name of a budget of the member's own that selects one of the leaf Pods, or "".
	ownBudget string
	// leafPods is the number of unfinished leaf Pods that the host budget selects.
	leafPods int
	healthyCounts
	// countDueIn is when healthyElsewhere may be counted, or 0 if it was counted.
	countDueIn time.Duration
}

// healthyCounts are the numbers of healthy Pods on which a leaf budget depends.
type healthyCounts struct {
	// healthyElsewhere is the number of the host budget's Pods that are healthy outside the member.
	healthyElsewhere int32
	// countedOnlyInMember is the number of Ready leaf Pods that the member counts as healthy, and the host does not: those
	// whose roots are gone, end, or have unsatisfied readiness gates.
	countedOnlyInMember int32
}

type decision interface{ isDecision() }

type (
	doNothing    struct{}
	createBudget struct{ leaf *policyv1.PodDisruptionBudget }
	updateBudget struct{ leaf *policyv1.PodDisruptionBudget }
	// waitForCount waits until the Pods outside the member may be counted again.
	waitForCount struct{ rest time.Duration }
	// deleteBudget deletes the leaf budget. If rootGone is set, the root's absence must be proven first.
	deleteBudget struct{ rootGone bool }
	// reportNotEnforced reports on the host's budget why the member does not enforce it. It first deletes the leaf
	// budget if there is one.
	reportNotEnforced struct {
		problem    *mirror.Refusal
		deleteLeaf bool
	}
)

func (doNothing) isDecision()         {}
func (createBudget) isDecision()      {}
func (updateBudget) isDecision()      {}
func (waitForCount) isDecision()      {}
func (deleteBudget) isDecision()      {}
func (reportNotEnforced) isDecision() {}

func decideBudgetAction(o observed) decision {
	var leaf *policyv1.PodDisruptionBudget
	if o.sameName != nil {
		if _, ours := mirror.LeafOriginFromHost(o.member.HostID, o.sameName); ours {
			leaf = o.sameName
		}
	}
	switch {
	case leaf != nil && leaf.DeletionTimestamp != nil:
		return doNothing{} // its deletion enqueues the budget
	case o.host == nil || o.leafPods == 0:
		if leaf == nil {
			return doNothing{}
		}
		return deleteBudget{rootGone: o.host == nil}
	}
	if problem := o.notEnforcedProblem(leaf); problem != nil {
		return reportNotEnforced{problem, leaf != nil}
	}
	if o.countDueIn > 0 && leaf != nil {
		return waitForCount{o.countDueIn}
	}
	// A new budget does not wait: until the count, no Pod elsewhere counts as healthy, so the budget is stricter.
	want := mirror.TranslateBudget(o.host, o.member, requiredHealthy(o.host, o.healthyCounts))
	if leaf == nil {
		if o.host.Status.ObservedGeneration < o.host.Generation {
			return doNothing{} // the status of a new budget enqueues it
		}
		return createBudget{want}
	}
	if after := withSpecAndStampOf(leaf, want); !equality.Semantic.DeepEqual(leaf, after) {
		return updateBudget{after}
	}
	return doNothing{}
}

// countSource is where leaf_budget counts the healthy Pods outside a member.
type countSource int

const (
	noCountNeeded countSource = iota // the host counts no Pods outside the member
	countInCache
	countLive
)

// chooseCount returns where to count, given how many healthy Pods are in this member and elsewhere according to the cache,
// and how many the host counts. The cache lacks the Pods on the host's own nodes.
func chooseCount(here, elsewhere, counted int32) countSource {
	switch {
	case here >= counted:
		return noCountNeeded
	case here+elsewhere == counted:
		return countInCache
	}
	return countLive
}

// requiredHealthy returns the minAvailable of a leaf budget. See doc.go.
func requiredHealthy(host *policyv1.PodDisruptionBudget, counts healthyCounts) int32 {
	if !hostCountsDisruptions(host) {
		return allowNoEvictions
	}
	return max(0, host.Status.DesiredHealthy-counts.healthyElsewhere) + counts.countedOnlyInMember
}

// hostCountsDisruptions reports whether the status of a host budget says how many disruptions are allowed. If not, the
// host's eviction API allows none.
func hostCountsDisruptions(host *policyv1.PodDisruptionBudget) bool {
	allowed := meta.FindStatusCondition(host.Status.Conditions, policyv1.DisruptionAllowedCondition)
	return host.Status.ObservedGeneration >= host.Generation && host.Status.ExpectedPods > 0 && (allowed == nil || allowed.Reason != policyv1.SyncFailedReason)
}

// notEnforcedProblem returns why the member does not enforce the budget, or nil.
func (o observed) notEnforcedProblem(leaf *policyv1.PodDisruptionBudget) *mirror.Refusal {
	const consequence = "so a drain of nodes in member %q does not respect this budget"
	switch {
	case o.sameName != nil && leaf == nil:
		return mirror.NewRefusal(v1alpha1.ReasonBudgetNotEnforced, "the member has its own PodDisruptionBudget \"%s/%s\", "+consequence+". Use another name, or ask the member's admin to delete that budget",
			o.sameName.Namespace, o.sameName.Name, o.member.Registration)
	case o.ownBudget != "":
		return mirror.NewRefusal(v1alpha1.ReasonBudgetNotEnforced, "the member has its own PodDisruptionBudget %q for the same Pods, "+consequence+". Two budgets for one Pod would block its eviction forever. If the member should enforce this budget instead, ask the member's admin to delete that one",
			o.ownBudget, o.member.Registration)
	}
	if key := mirror.LabelNotOnLeaves(o.host.Spec.Selector); key != "" {
		return mirror.NewRefusal(v1alpha1.ReasonBudgetNotEnforced, "its selector uses the label %q, which Pods have only in the host, "+consequence+". Select the Pods by other labels", key, o.member.Registration)
	}
	return nil
}

// withSpecAndStampOf returns a leaf budget with the desired spec and stamp.
func withSpecAndStampOf(leaf, want *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	after := leaf.DeepCopy()
	after.Spec = want.Spec
	origin, _ := mirror.LeafOrigin(want)
	origin.StampLeaf(after)
	return after
}

// isHealthyPod reports whether a disruption controller counts a Pod as healthy.
func isHealthyPod(pod *corev1.Pod) bool {
	ready := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodReady)
	return pod.DeletionTimestamp == nil && ready != nil && ready.Status == corev1.ConditionTrue
}

// hasOpenReadinessGate reports whether a Pod has a readiness gate that is not satisfied.
func hasOpenReadinessGate(pod *corev1.Pod) bool {
	for _, required := range pod.Spec.ReadinessGates {
		if c := podstatus.FindPodCondition(pod.Status.Conditions, required.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// isBeingDisrupted reports whether the host has allowed the eviction of a Pod, but has not deleted it yet.
func isBeingDisrupted(host *policyv1.PodDisruptionBudget, pod metav1.Object) bool {
	_, disrupted := host.Status.DisruptedPods[pod.GetName()]
	return disrupted
}

func unknownDecisionError(d decision) error { return fmt.Errorf("unknown decision %T", d) }
