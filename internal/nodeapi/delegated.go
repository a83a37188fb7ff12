package nodeapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// authConfigMap in kube-system contains the CA of the client certificates that the host's
	// API server presents to kubelets.
	authConfigMap = "extension-apiserver-authentication"
	authCAKey     = "client-ca-file"
	// reviewCache is how long a TokenReview or SubjectAccessReview is cached. A revoked permission
	// stops working within this time.
	reviewCache = 10 * time.Second
	// reviewTimeout bounds a TokenReview.
	reviewTimeout = 5 * time.Second
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,namespace=kube-system,resourceNames=extension-apiserver-authentication,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// NewDelegatedAuth returns an authenticator and an authorizer that delegate to the host, as in a kubelet.
// The returned function watches the CA for client certificates, and must run for both to work.
func NewDelegatedAuth(config *rest.Config) (authenticator.Request, authorizer.Authorizer, func(context.Context), error) {
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("create a client for authentication against the host: %w", err)
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("node-api", metav1.NamespaceSystem, authConfigMap, authCAKey, host)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("watch the CA for client certificates: %w", err)
	}
	// Retry a failed review only once, because a user is waiting.
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 2}
	authentication := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                          &apiserver.AnonymousAuthConfig{Enabled: false},
		TokenAccessReviewClient:            host.AuthenticationV1(),
		TokenAccessReviewTimeout:           reviewTimeout,
		WebhookRetryBackoff:                backoff,
		CacheTTL:                           reviewCache,
		ClientCertificateCAContentProvider: ca,
	}
	authenticates, _, err := authentication.New()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("create the authenticator: %w", err)
	}
	authorization := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: host.AuthorizationV1(),
		AllowCacheTTL:             reviewCache,
		DenyCacheTTL:              reviewCache,
		WebhookRetryBackoff:       backoff,
	}
	authorizes, err := authorization.New()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("create the authorizer: %w", err)
	}
	return authenticates, authorizes, func(ctx context.Context) { ca.Run(ctx, 1) }, nil
}
