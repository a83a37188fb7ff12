package wording

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grpcCodePattern matches the gRPC code in a printed error (google.golang.org/grpc/status: Error).
var grpcCodePattern = regexp.MustCompile(`code = ([A-Za-z]+)`)

// GRPCCodeOf returns the gRPC code of a CSI driver's response from an event's message, such as
// ResourceExhausted. It returns "" if the message contains no code because the provisioner did not
// call the driver.
func GRPCCodeOf(message string) string {
	if found := grpcCodePattern.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// classNotFoundPattern matches an API server's message about a missing StorageClass
// (k8s.io/apimachinery/pkg/api/errors: NewNotFound).
var classNotFoundPattern = regexp.MustCompile(`storageclass\.storage\.k8s\.io "[^"]*" not found`)

// ReportsClassNotFound reports whether a provisioner's event reports that the claim's StorageClass does
// not exist.
func ReportsClassNotFound(message string) bool { return classNotFoundPattern.MatchString(message) }

// BindingTimedOut reports whether the message of a Pod's condition PodScheduled reports that the
// scheduler timed out waiting for the Pod's volumes to be bound (volume_binding in kube-scheduler:
// PreBind).
func BindingTimedOut(message string) bool {
	return strings.HasSuffix(message, "binding volumes: context deadline exceeded")
}

// DeniedByPolicy reports whether the given ValidatingAdmissionPolicy denied a request. API
// servers name the policy only in a cause of the status
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating).
func DeniedByPolicy(err error, policy string) bool {
	return hasMatchingCause(err, func(c metav1.StatusCause) bool {
		return strings.HasPrefix(c.Message, "ValidatingAdmissionPolicy '"+policy+"' ")
	})
}

// RejectedBinding reports whether the message of a Pod's condition PodScheduled reports that the
// given ValidatingAdmissionPolicy denied the scheduler's choice
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating: dispatcher).
func RejectedBinding(message, policy string) bool {
	return strings.Contains(message, " is forbidden: ValidatingAdmissionPolicy '"+policy+"' ")
}

func hasMatchingCause(err error, match func(metav1.StatusCause) bool) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if match(cause) {
			return true
		}
	}
	return false
}

// DeniedByAuthorizer reports whether the authorizer or the RBAC registry denied a request
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters: Forbidden;
// k8s.io/kubernetes/pkg/registry/rbac). Admission and quotas return Forbidden as well.
func DeniedByAuthorizer(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	message := err.Error()
	return strings.Contains(message, ": User \"") && strings.Contains(message, "\" cannot ") ||
		strings.Contains(message, "attempting to grant RBAC permissions not currently held")
}

// QuotaExceeded reports whether a ResourceQuota denied a request (k8s.io/apiserver/pkg/admission/plugin/resourcequota:
// CheckRequest).
func QuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

// ImpersonationDenied reports whether the authorizer denied a request because its sender may not act as a node. If it
// denied the request to the node, the message names the node as the user.
func ImpersonationDenied(err error) bool {
	return DeniedByAuthorizer(err) && !strings.Contains(err.Error(), ": User \"system:node:")
}

// DeniedByWebhook reports whether an admission webhook denied a request. The webhook chooses the
// status, and API servers add the name of the webhook only to the message
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors: ToStatusErr).
func DeniedByWebhook(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return strings.HasPrefix(message, "admission webhook \"") && strings.Contains(message, "\" denied the request")
}

// WebhookFailed reports whether a request failed because an admission webhook did not respond, or
// responded with an error (k8s.io/apiserver/pkg/admission/plugin/webhook: ErrCallingWebhook).
func WebhookFailed(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook \"")
}
