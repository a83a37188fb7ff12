package clusterregistration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
)

// PolicyEnforced returns the PolicyEnforced condition.
func PolicyEnforced(policy member.PolicyState) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionPolicyEnforced}
	switch {
	case policy.Enforced == nil:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonPolicyNotProven
		condition.Message = "Xylem could not check whether the member's admission policies limit the manager's account: " + policy.Detail
	case *policy.Enforced:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonPolicyInForce
		condition.Message = "the member's admission policies limit the manager's account"
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonPolicyNotInForce
		condition.Message = "the member's admission policies do not limit the manager's account: " + policy.Detail +
			". The policies are missing or outdated, or the kubeconfig is for a different account than the one that they limit. " +
			"Run `kubectl xylem register` for this member again, or install the chart xylem-member there and use a token of its account"
	}
	return condition
}
