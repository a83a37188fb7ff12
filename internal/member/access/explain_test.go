package access

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Admission's answer to a write is neither a missing permission nor a problem of the network.
func TestExplainWrite(t *testing.T) {
	lease := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"a policy":                        {apierrors.NewForbidden(lease, "h1", errors.New("ValidatingAdmissionPolicy 'x' denied request: no")), v1alpha1.ReasonLeaseRejected},
		"Xylem's own policy":              {byPolicy(apierrors.NewForbidden(lease, "h1", errors.New("no")), AccountPolicy), v1alpha1.ReasonForbidden},
		"a webhook without a status":      {apierrors.NewBadRequest(`admission webhook "x" denied the request: no`), v1alpha1.ReasonLeaseRejected},
		"a webhook that does not respond": {apierrors.NewInternalError(errors.New(`failed calling webhook "x": no`)), v1alpha1.ReasonLeaseRejected},
		"the authorizer":                  {apierrors.NewForbidden(lease, "h1", errors.New(`User "x" cannot patch resource "leases": no`)), v1alpha1.ReasonForbidden},
		"an expired token":                {apierrors.NewUnauthorized("no"), v1alpha1.ReasonUnauthorized},
		"no response":                     {errors.New("connection refused: no"), v1alpha1.ReasonUnreachable},
		"a timeout":                       {apierrors.NewServerTimeout(lease, "patch", 1), v1alpha1.ReasonUnreachable},
		"a conflict":                      {apierrors.NewConflict(lease, "h1", errors.New("no")), v1alpha1.ReasonUnreachable},
		"a problem":                       {ConnectionProblemf(v1alpha1.ReasonHostCloned, "no"), v1alpha1.ReasonHostCloned},
	} {
		t.Run(name, func(t *testing.T) {
			p := AsConnectionProblem(ExplainWriteError("renew the fence", `Lease "ns/h1"`, "ns", tc.err))
			if p == nil || p.Reason != tc.reason {
				t.Fatalf("got %v, want reason %s", p, tc.reason)
			}
			if tc.reason != v1alpha1.ReasonLeaseRejected {
				return
			}
			for _, part := range []string{"the member answers, but rejects the write of Lease \"ns/h1\": ", "no. Ask the member's admin to exempt namespace \"ns\" from"} {
				if !strings.Contains(p.Message, part) {
					t.Errorf("message %q does not contain %q", p.Message, part)
				}
			}
		})
	}
}

// A write that fails for another reason than admission has another remedy.
func TestExplainWriteRemedies(t *testing.T) {
	lease := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	terminating := apierrors.NewForbidden(lease, "h1", errors.New("unable to create new content in namespace ns because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	for want, err := range map[string]error{
		`while namespace "ns" is being deleted`:                    terminating,
		"etcd: no. Ask the member's admin to check the API server": apierrors.NewInternalError(errors.New("etcd: no")),
	} {
		if p := AsConnectionProblem(ExplainWriteError("renew the fence", `Lease "ns/h1"`, "ns", err)); p == nil || p.Reason != v1alpha1.ReasonLeaseRejected || !strings.Contains(p.Message, want) {
			t.Errorf("got %v, want %q", p, want)
		}
	}
}

// byPolicy adds the cause with which API servers name the policy that denied a request.
func byPolicy(err *apierrors.StatusError, policy string) error {
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy '" + policy + "' with binding 'x' denied request: no"}}
	return err
}
