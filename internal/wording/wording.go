package wording

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// code is how an error of gRPC is printed (google.golang.org/grpc/status: Error).
var code = regexp.MustCompile(`code = ([A-Za-z]+)`)

// Code is the gRPC code of a CSI driver's answer in the message of an event, such as
// ResourceExhausted; empty if there is none, since the driver was not asked.
func Code(message string) string {
	if found := code.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// classNotFound is how an API server reports a missing StorageClass
// (k8s.io/apimachinery/pkg/api/errors: NewNotFound).
var classNotFound = regexp.MustCompile(`storageclass\.storage\.k8s\.io "[^"]*" not found`)

// ClassNotFound reports whether the message of a provisioner's event is that the claim's
// StorageClass does not exist.
func ClassNotFound(message string) bool { return classNotFound.MatchString(message) }

// BindingTimedOut reports whether the message of a Pod's condition PodScheduled is that the
// scheduler waited in vain for the Pod's volumes to be bound (volume_binding in
// kube-scheduler: PreBind).
func BindingTimedOut(message string) bool {
	return strings.HasSuffix(message, "binding volumes: context deadline exceeded")
}

// DeniedByPolicy reports whether a ValidatingAdmissionPolicy denied a request. API servers
// name the policy in a cause of the status, and nowhere else
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating).
func DeniedByPolicy(err error, policy string) bool {
	return causes(err, func(c metav1.StatusCause) bool {
		return strings.HasPrefix(c.Message, "ValidatingAdmissionPolicy '"+policy+"' ")
	})
}

func causes(err error, match func(metav1.StatusCause) bool) bool {
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

// DeniedByAuthorizer reports whether it was the authorizer that refused a request, or the
// registry of roles (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters: Forbidden;
// k8s.io/kubernetes/pkg/registry/rbac). Admission and quotas answer Forbidden as well.
func DeniedByAuthorizer(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	message := err.Error()
	return strings.Contains(message, ": User \"") && strings.Contains(message, "\" cannot ") ||
		strings.Contains(message, "attempting to grant RBAC permissions not currently held")
}
