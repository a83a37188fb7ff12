package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/wording"
)

// ConnectionProblem is an error that explains why the manager cannot connect to a member. It contains the
// reason and the message for the Connected condition.
type ConnectionProblem struct {
	Reason  string
	Message string
}

func (p *ConnectionProblem) Error() string { return p.Reason + ": " + p.Message }

// MaxMessageBytes is the maximum length, in bytes, of a message from a member. The API server limits a
// condition's message to 32 KiB.
const MaxMessageBytes = 2 << 10

// ConnectionProblemf creates a ConnectionProblem with a sanitized, bounded message.
func ConnectionProblemf(reason, format string, args ...any) *ConnectionProblem {
	return &ConnectionProblem{Reason: reason, Message: mirror.PlainText(fmt.Sprintf(format, args...), MaxMessageBytes)}
}

// ParseKubeconfig builds a client configuration from the allowed fields of a kubeconfig: the
// server, CA data, client certificate and key data, token, and TLS server name of the current
// context. It rejects, by name, every field that could make this process run a program, read a file
// or impersonate a user, and insecure-skip-tls-verify unless allowInsecure is set. Errors are
// Problems.
func ParseKubeconfig(raw []byte, allowInsecure bool) (*rest.Config, error) {
	config, err := loadKubeconfig(raw)
	if err != nil {
		return nil, err
	}
	cluster, user, err := currentContextOf(config)
	if err != nil {
		return nil, err
	}
	if refused := refusedFields(cluster, user, allowInsecure); len(refused) > 0 {
		return nil, ConnectionProblemf(v1alpha1.ReasonKubeconfigRefused,
			"the kubeconfig uses %s, which the manager does not allow. Specify the server, certificate-authority-data, and either a token, or client-certificate-data and client-key-data",
			strings.Join(refused, ", "))
	}
	return buildClientConfig(cluster, user)
}

func loadKubeconfig(raw []byte) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the kubeconfig cannot be parsed: %v. Put a valid kubeconfig into the Secret", err)
	}
	return config, nil
}

func encodeKubeconfig(config *clientcmdapi.Config) ([]byte, error) {
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return raw, nil
}

func currentContextOf(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	invalid := func(format string, args ...any) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
		return nil, nil, ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, format, args...)
	}
	if config.CurrentContext == "" {
		return invalid("the kubeconfig has no current-context. Set it to the member's context")
	}
	chosen := config.Contexts[config.CurrentContext]
	if chosen == nil {
		return invalid("the kubeconfig has current-context %q, but no context with this name. Correct current-context, or add the context", config.CurrentContext)
	}
	cluster := config.Clusters[chosen.Cluster]
	if cluster == nil {
		return invalid("the kubeconfig has no cluster %q, to which context %q refers. Add the cluster, or correct the context", chosen.Cluster, config.CurrentContext)
	}
	user := config.AuthInfos[chosen.AuthInfo]
	if user == nil {
		return invalid("the kubeconfig has no user %q, to which context %q refers. Add the user, or correct the context", chosen.AuthInfo, config.CurrentContext)
	}
	return cluster, user, nil
}

// refusedFields returns the sorted names of fields that are set but not allowed.
func refusedFields(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, allowInsecure bool) []string {
	set := map[string]bool{
		"exec":                  user.Exec != nil,
		"auth-provider":         user.AuthProvider != nil,
		"tokenFile":             user.TokenFile != "",
		"client-certificate":    user.ClientCertificate != "",
		"client-key":            user.ClientKey != "",
		"username and password": user.Username != "" || user.Password != "",
		"impersonation (as, as-uid, as-groups, as-user-extra)": user.Impersonate != "" || user.ImpersonateUID != "" ||
			len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0,
		"certificate-authority": cluster.CertificateAuthority != "",
		"proxy-url":             cluster.ProxyURL != "",
		"insecure-skip-tls-verify (a manager flag can allow it)": cluster.InsecureSkipTLSVerify && !allowInsecure,
	}
	var named []string
	for name, is := range set {
		if is {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return named
}

func buildClientConfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (*rest.Config, error) {
	invalid := func(format string, args ...any) (*rest.Config, error) {
		return nil, ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, format, args...)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return invalid("the server %q in the kubeconfig is not a plain https URL", redactURL(cluster.Server))
	}
	if len(cluster.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		return invalid("certificate-authority-data contains no PEM certificate. Put the CA's certificate there")
	}
	if cluster.InsecureSkipTLSVerify && len(cluster.CertificateAuthorityData) > 0 {
		return invalid("certificate-authority-data and insecure-skip-tls-verify are mutually exclusive. Remove one of them")
	}
	hasCertificate := len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0
	if hasCertificate {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return invalid("client-certificate-data and client-key-data do not match: %v. Use the key of that certificate", err)
		}
	}
	token := strings.TrimSpace(user.Token)
	if !hasCertificate && token == "" {
		return invalid("the kubeconfig has no credentials. Specify a token, or client-certificate-data and client-key-data")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid("the token contains invalid characters")
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure:   cluster.InsecureSkipTLSVerify,
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
	}, nil
}

// redactURL removes credentials and the query from a URL, so that messages do not leak them.
func redactURL(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return "(unreadable)"
}

// ExplainRequestError converts the error of a request to a member into a ConnectionProblem.
func ExplainRequestError(doing string, err error) error {
	const theMember = "the member"
	switch {
	case AsConnectionProblem(err) != nil:
		return AsConnectionProblem(err)
	case apierrors.IsUnauthorized(err):
		return ConnectionProblemf(v1alpha1.ReasonUnauthorized, UnauthorizedFormat+" (%s). Run `kubectl xylem register` for this registration again, or put a kubeconfig with a valid token into its Secret", theMember, doing)
	case apierrors.IsForbidden(err):
		return ConnectionProblemf(v1alpha1.ReasonForbidden, ForbiddenFormat+" (%s): %v. Run `kubectl xylem register` for this registration again, or upgrade the chart xylem-member in the member", theMember, doing, err)
	}
	return ConnectionProblemf(v1alpha1.ReasonUnreachable, UnreachableFormat+" (%s): %v. Check the server in the kubeconfig, and the network between the manager and the member. Xylem retries", theMember, doing, err)
}

// AccountPolicy is the admission policy of config/member that limits Xylem's accounts.
const AccountPolicy = "xylem-account"

// ExplainWriteError converts the error of a write of the fence into a ConnectionProblem. what names the written
// object, and namespace is the fence's. Unlike a read, a webhook or policy of the member may reject a
// write, which is not the credentials' fault. Xylem's own policy rejects another host's credentials.
func ExplainWriteError(doing, what, namespace string, err error) error {
	rejected := report.LeaseRefusalMessage(err)
	if rejected == "" || AsConnectionProblem(err) != nil || wording.DeniedByPolicy(err, AccountPolicy) {
		return ExplainRequestError(doing, err)
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ConnectionProblemf(v1alpha1.ReasonLeaseRejected, "the member cannot store %s while namespace %q is being deleted. Ask the member's admin why the namespace was deleted, and to create it again. Xylem retries", what, namespace)
	case apierrors.IsInternalError(err) && !wording.WebhookFailed(err):
		return ConnectionProblemf(v1alpha1.ReasonLeaseRejected, "the member answers, but fails to store %s: %s. Ask the member's admin to check the API server, and policies that change this object. Xylem retries", what, rejected)
	}
	return ConnectionProblemf(v1alpha1.ReasonLeaseRejected, "the member answers, but rejects the write of %s: %s. Ask the member's admin to exempt namespace %q from the webhook or policy, or to repair the webhook. Xylem retries",
		what, rejected, namespace)
}

// AsConnectionProblem returns the ConnectionProblem in err's chain, or nil.
func AsConnectionProblem(err error) *ConnectionProblem {
	var p *ConnectionProblem
	if errors.As(err, &p) {
		return p
	}
	return nil
}
