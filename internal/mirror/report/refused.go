package report

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/wording"
)

// MemberWriteRefusal reports a write that a member's API server rejected, with the server's message.
// It returns nil for other errors. doing is the verb, and what describes the object, such as "the
// Pod".
func MemberWriteRefusal(registration, doing, what string, err error) *mirror.Refusal {
	switch {
	case !IsRejectedWrite(err):
		return nil
	case apierrors.IsInternalError(err):
		return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "member %q fails when Xylem tries to %s %s: %s. Xylem retries. If this continues, ask the member's admin to remove the cause, which is often a webhook that does not respond",
			registration, doing, what, serverMessage(err))
	}
	return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem %s %s: %s. %s",
		registration, doing, what, serverMessage(err), permissionAdviceOr(err, "Change "+what+", or ask the member's admin to change the quota or policy"))
}

// permissionAdviceOr returns what to do about a rejected write: if a permission is missing, nothing else helps.
func permissionAdviceOr(err error, otherwise string) string {
	if wording.DeniedByAuthorizer(err) {
		return "Ask the member's admin to grant the permission: apply config/member, or upgrade the chart xylem-member"
	}
	return otherwise
}

// NamespaceRefusal reports that a member's API server rejects the creation of a namespace. It returns
// nil for errors that a retry may resolve.
func NamespaceRefusal(m mirror.Member, namespace string, err error) *mirror.Refusal {
	if !IsRejectedWrite(err) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, "member %q rejects the creation of namespace %q: %s. Ask the member's admin to allow the namespace, or to create it and hand it over with `kubectl label namespace %s %s=%s`",
		m.Registration, namespace, serverMessage(err), namespace, v1alpha1.LabelHost, m.HostID)
}

// LeaseRefusalMessage returns the response of a member's API server that rejects a write of Xylem's own
// fence. It returns "" if the write failed for another reason, such as a missing permission.
func LeaseRefusalMessage(err error) string {
	if !IsRejectedWrite(err) || wording.DeniedByAuthorizer(err) {
		return ""
	}
	return serverMessage(err)
}

// PodUpdateRefusal reports that a member's API server rejects a change to a running leaf Pod. It
// returns nil for errors that a retry may resolve.
func PodUpdateRefusal(registration string, err error) *mirror.Refusal {
	if !IsRejectedWrite(err) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "the Pod runs in member %q without its latest change, because the member does not let Xylem update the Pod: %s. %s",
		registration, serverMessage(err), permissionAdviceOr(err, "Undo the change, or ask the member's admin to change the policy"))
}

// causeNodeCapacity is the cause of a rejected resize that a Pod's node could never hold (plugin/pkg/admission/podresize).
// API servers check that from Kubernetes 1.37 on. A kubelet reports it with the condition PodResizePending.
const causeNodeCapacity = "NodeCapacity"

// ResizeRefusal reports that a member's API server rejects a resize of a leaf Pod. It returns nil for errors that a
// retry may resolve.
func ResizeRefusal(registration string, err error) *mirror.Refusal {
	if !IsRejectedWrite(err) {
		return nil
	}
	advice := permissionAdviceOr(err, "Resize the Pod to what the member allows, or ask the member's admin to change the quota, LimitRange or policy")
	if apierrors.HasStatusCause(err, causeNodeCapacity) {
		advice = "Request less, or re-create the Pod, so that the member's scheduler chooses another node"
	}
	return mirror.NewRefusal(v1alpha1.ReasonNotResized, "the Pod runs in member %q with its earlier resources, because the member does not let Xylem resize the Pod: %s. %s",
		registration, serverMessage(err), advice)
}

// ResizeOutOfRange reports amounts that Xylem does not write to a member.
func ResizeOutOfRange(registration string, amounts []string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNotResized, "the Pod runs in member %q with its earlier resources: %s. Resize the Pod to usual amounts",
		registration, wording.FirstNames(amounts, wording.NamesListed, "; "))
}

// ResizeAltered reports amounts that the member's admission changed during a resize.
func ResizeAltered(registration string, amounts []string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNotResized, "member %q changed the resources during the resize (%s). Resize the Pod to what the member allows, or ask the member's admin about the LimitRange or webhook that changes them",
		registration, wording.FirstNames(amounts, wording.NamesListed, "; "))
}

// RepeatedMemberWriteRefusal reports a repeated problem of a write to a member, with the server's message. doing
// is the verb, and what describes the object.
func RepeatedMemberWriteRefusal(registration, doing, what string, err error) *mirror.Refusal {
	if IsUnansweredWrite(err) {
		return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "member %q does not respond when Xylem tries to %s %s, although it responds to other requests. Xylem retries. Ask the member's admin to check for a webhook that does not respond",
			registration, doing, what)
	}
	return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem %s %s: %s. Xylem retries. %s",
		registration, doing, what, serverMessage(err), permissionAdviceOr(err, "Ask the member's admin to exempt Xylem from the policy or webhook, or to repair the webhook"))
}

// RepeatedHostWriteRefusal reports a repeated problem of a write to the host, with the server's message. doing
// is the verb, and what describes the object.
func RepeatedHostWriteRefusal(doing, what string, err error) *mirror.Refusal {
	if IsUnansweredWrite(err) {
		return mirror.NewRefusal(v1alpha1.ReasonRefusedByHost, "the host does not respond when Xylem tries to %s %s, although it responds to other requests. Xylem retries. Ask an admin of the host to check for a webhook that does not respond",
			doing, what)
	}
	return mirror.NewRefusal(v1alpha1.ReasonRefusedByHost, "the host does not let Xylem %s %s: %s. Xylem retries. Ask an admin of the host to exempt Xylem from the policy or webhook, to repair the webhook, or to grant the permission",
		doing, what, serverMessage(err))
}

// IsRejectedWrite reports whether an API server rejected a write, so that a retry does not help before
// somebody changes something. An admission webhook may return any status; without one, the API
// server returns 400 (ToStatusErr in k8s.io/apiserver's webhook errors). If a webhook does not
// respond, the API server returns an InternalError. Rejected does not include statuses for which
// controllers have other reactions, such as conflicts and timeouts.
func IsRejectedWrite(err error) bool {
	status := apierrors.APIStatus(nil)
	switch {
	case wording.DeniedByWebhook(err):
		return true
	case !errors.As(err, &status):
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500 || apierrors.IsInternalError(err)
	}
}

// IsUnansweredWrite reports whether an API server did not respond to a write in time, for example because
// an admission webhook does not respond.
func IsUnansweredWrite(err error) bool {
	timeout := net.Error(nil)
	return apierrors.IsTimeout(err) || errors.As(err, &timeout) && timeout.Timeout()
}

// serverMessage returns the message of a member's API server.
func serverMessage(err error) string {
	words := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		words = status.Status().Message
	}
	return mirror.PlainText(words, serverMessageLimit)
}

// NodeIdentityRefusal reports that the manager may not act as a virtual node in the host, where it needs what for
// a Pod. flag lets the admin grant it. It returns nil for other errors.
func NodeIdentityRefusal(m mirror.Member, node, what, flag string, err error) *mirror.Refusal {
	if !wording.ImpersonationDenied(err) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonNodeIdentityMissing, "the host does not let the manager act as node %q to get %s: %s. Ask the host's admin to run `kubectl xylem register %s --member-kubeconfig FILE %s`. The host needs Kubernetes 1.36 or later",
		node, what, serverMessage(err), m.Registration, flag)
}

// authorizerLag is how long the host's node authorizer may take to learn that a Pod is bound. Until then, it refuses the
// Pod's tokens and Secrets.
const authorizerLag = 10 * time.Second

// AwaitsAuthorizer reports whether the host's node authorizer may not know yet that a Pod is bound.
func AwaitsAuthorizer(pod *corev1.Pod, now time.Time) bool {
	return now.Sub(BoundAt(pod)) < authorizerLag
}

// BoundAt returns when a bound Pod was bound, or was created if it does not record that.
func BoundAt(pod *corev1.Pod) time.Time {
	if bound := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodScheduled); bound != nil {
		return bound.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// SecretsRefusal reports that the host does not let a virtual node get the Secrets of a Pod. It returns nil for errors that a
// retry may resolve.
func SecretsRefusal(m mirror.Member, node string, err error) *mirror.Refusal {
	if refusal := NodeIdentityRefusal(m, node, "the Secrets of Pods", "--node-identity", err); refusal != nil || !IsRejectedWrite(err) {
		return refusal
	}
	return mirror.NewRefusal(v1alpha1.ReasonReferenceForbidden, "the host does not let node %q get a Secret of the Pod: %s. The host's API servers need --authorization-mode=Node,RBAC",
		node, serverMessage(err))
}

// TokenRefusal reports that the host does not issue a token for a Pod on a virtual node. It returns nil for errors that a retry
// may resolve.
func TokenRefusal(m mirror.Member, node, account string, err error) *mirror.Refusal {
	refusal := NodeIdentityRefusal(m, node, fmt.Sprintf("a token of ServiceAccount %q", account), "--api-server URL", err)
	if refusal != nil || !IsRejectedWrite(err) && !apierrors.IsNotFound(err) || apierrors.IsInternalError(err) {
		return refusal
	}
	return mirror.NewRefusal(v1alpha1.ReasonTokenRefused, "the host does not issue a token of ServiceAccount %q for the Pod in member %q: %s. Correct the ServiceAccount, or the token volumes of the Pod",
		account, m.Registration, serverMessage(err))
}

// VolumeCopyRefusal reports that a member's API server rejects a copy of a claim's shared volume. It
// returns nil for errors that a retry may resolve.
func VolumeCopyRefusal(registration, claim string, err error) *mirror.Refusal {
	if !IsRejectedWrite(err) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem create a copy of the shared volume of claim %q: %s. Ask the member's admin to allow copies for the backend's driver, or run the Pod in the member that has the volume",
		registration, claim, serverMessage(err))
}

// serverMessageLimit is the maximum length, in bytes, of a member's message, so that an event has space
// for the remedy.
const serverMessageLimit = 700
