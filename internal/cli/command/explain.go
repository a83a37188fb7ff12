package command

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/wording"
)

// Explain adds a remedy to an error of a request to a cluster. who is "the host" or "the member".
func Explain(who string, config *rest.Config, err error) error {
	var (
		certificate *tls.CertificateVerificationError
		network     net.Error
		address     *url.Error
	)
	cluster := who + " at " + config.Host
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf(access.UnauthorizedFormat+" in the kubeconfig: %w. If the credentials have expired, log in again. Otherwise, specify another kubeconfig", cluster, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("a namespace in %s is being deleted: %w. Wait until the namespace is deleted, then run this command again", who, err)
	case wording.DeniedByAuthorizer(err):
		return fmt.Errorf(access.ForbiddenFormat+": %w. Specify a kubeconfig that belongs to a cluster admin", who, err)
	case apierrors.IsForbidden(err): // rejected by an admission policy or a quota, whose message explains why
		return fmt.Errorf("%s rejects the request: %w", cluster, err)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s presents a certificate that the CA in the kubeconfig did not sign, or that is for another name: %w", cluster, err)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s does not serve this kind of object: %w", who, err)
	case errors.As(err, &network), errors.As(err, &address):
		return fmt.Errorf(access.UnreachableFormat+": %w. Check the address and the network connection", cluster, err)
	}
	return fmt.Errorf("%s: %w", cluster, err)
}

// Refused reports whether a cluster rejected a request. If so, the cluster changed nothing, and a
// retry would not help. After any other error, the request may have succeeded, or a retry may help.
func Refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}
