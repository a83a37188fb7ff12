package clusterregistration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
)

func TestPolicyEnforced(t *testing.T) {
	for name, tc := range map[string]struct {
		policy member.PolicyState
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"proven":     {member.PolicyState{Enforced: new(true)}, metav1.ConditionTrue, v1alpha1.ReasonPolicyInForce, "policies limit the manager's account"},
		"refuted":    {member.PolicyState{Enforced: new(false), Detail: "it was created"}, metav1.ConditionFalse, v1alpha1.ReasonPolicyNotInForce, "it was created. The policies are missing or outdated"},
		"not proven": {member.PolicyState{Detail: "no answer"}, metav1.ConditionUnknown, v1alpha1.ReasonPolicyNotProven, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := PolicyEnforced(tc.policy)
			if got.Type != v1alpha1.ConditionPolicyEnforced || got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
