package inspect

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// RegistrationProblems returns a registration's conditions that an admin must check.
func RegistrationProblems(r *v1alpha1.ClusterRegistration) []Condition {
	var problems []Condition
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if concernsAdmin(c, ready) {
			problems = append(problems, ConditionOf(c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime))
		}
	}
	return problems
}

// concernsAdmin reports whether an admin must check a condition. Ready repeats the message of
// another condition, except during deregistration. While destruction is suspended, Connected is
// True with a different reason, and so is Synced for a member with an earlier role.
func concernsAdmin(c, ready *metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionConnected:
		return c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonConnected
	case v1alpha1.ConditionReady:
		return c.Reason == v1alpha1.ReasonConfirmationNeeded || c.Reason == v1alpha1.ReasonDraining || c.Reason == v1alpha1.ReasonMemberUnreachable
	case v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced:
		return c.Reason == v1alpha1.ReasonBudgetNotEnforced || c.Reason == v1alpha1.ReasonServicesForbidden || c.Status == metav1.ConditionFalse && ready != nil && ready.Reason == c.Reason
	}
	return c.Status == metav1.ConditionFalse
}
