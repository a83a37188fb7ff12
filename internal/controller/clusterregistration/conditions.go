package clusterregistration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/mirror"
)

// ReadyOverride replaces the reason and message of the Ready condition, and makes it False. The zero
// value changes nothing.
type ReadyOverride struct{ Reason, Message string }

// maxMessageBytes is the maximum size of a condition's message in bytes. The API server rejects
// a status with a message over 32 KiB, and some messages contain text from a member.
const maxMessageBytes = 4 << 10

// SetOnRegistration sets the registration's conditions. It sanitizes and shortens their messages, so that the API
// server accepts them and terminals can show them safely.
func SetOnRegistration(cr *v1alpha1.ClusterRegistration, all []metav1.Condition) {
	for _, condition := range all {
		condition.ObservedGeneration = cr.Generation
		condition.Message = mirror.PlainText(condition.Message, maxMessageBytes)
		// The error differs on each attempt to reach a member. Keep the first one, so that the
		// status does not change every time.
		if was := meta.FindStatusCondition(cr.Status.Conditions, condition.Type); was != nil && was.Status == condition.Status &&
			was.Reason == condition.Reason && condition.Reason == v1alpha1.ReasonUnreachable {
			condition.Message = was.Message
		}
		meta.SetStatusCondition(&cr.Status.Conditions, condition)
	}
}

// TokenFresh returns the TokenFresh condition. It returns none if the manager does not renew the
// token.
func TokenFresh(state fleet.State, status *v1alpha1.ClusterRegistrationStatus) []metav1.Condition {
	switch {
	case state.TokenRenewal == nil:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionTokenFresh)
		return nil
	case state.TokenRenewal.FailureCause != "":
		return []metav1.Condition{{Type: v1alpha1.ConditionTokenFresh, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonTokenNotRenewed, Message: state.TokenRenewal.FailureCause}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionTokenFresh, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonTokenRenewed, Message: "the manager renews its token in the member well before it expires"}}
}

// ConnectionAndReady returns the main conditions of a registration.
func ConnectionAndReady(state fleet.State, nodeReady metav1.Condition, ready ReadyOverride) []metav1.Condition {
	connected := metav1.Condition{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected,
		Message: fmt.Sprintf("cluster %s, Kubernetes %s", state.Identity.ClusterID, state.Identity.Version)}
	switch {
	case state.Connected && state.Problem != nil: // deletions are suspended
		connected.Reason, connected.Message = state.Problem.Reason, state.Problem.Message
	case !state.Connected && state.Problem != nil:
		connected.Status, connected.Reason, connected.Message = metav1.ConditionFalse, state.Problem.Reason, state.Problem.Message
	case !state.Connected:
		connected.Status, connected.Reason, connected.Message = metav1.ConditionFalse, v1alpha1.ReasonConnecting, "Xylem is connecting to the member"
	}

	synced := metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSynced,
		Message: "the member's objects are cached, and Xylem's controllers for the member are running"}
	switch {
	case !state.Connected:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, v1alpha1.ReasonNotConnected, "the member is not connected. See the Connected condition"
	case !state.Synced:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, v1alpha1.ReasonSyncing, "Xylem is reading the member's objects"
	case state.BudgetsProblem != nil:
		synced.Reason, synced.Message = state.BudgetsProblem.Reason, state.BudgetsProblem.Message
	case state.ServicesProblem != nil:
		synced.Reason, synced.Message = state.ServicesProblem.Reason, state.ServicesProblem.Message
	}

	sum := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "the member accepts the host's Pods and claims"}
	for _, part := range []metav1.Condition{connected, synced, nodeReady} {
		if part.Status != metav1.ConditionTrue {
			sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, part.Reason, part.Message
			break
		}
	}
	if ready.Reason != "" {
		sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, ready.Reason, ready.Message
	}
	return []metav1.Condition{connected, nodeReady, synced, sum}
}
