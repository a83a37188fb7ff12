package controlplane

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Route is how a kubeconfig's clients reach an apiserver.
type Route int

const (
	// Direct connects directly to the apiserver.
	Direct Route = iota
	// ViaProxy connects to the cluster's Proxy.
	ViaProxy
)

const (
	// adminUser and adminGroup identify a cluster admin.
	adminUser  = "admin"
	adminGroup = "system:masters"
	// tokenLife is the lifetime of a service account's token.
	tokenLife = 24 * time.Hour
	// clientQPS is high enough not to slow tests down.
	clientQPS = 1000
)

// Server returns the apiserver's URL for the route.
func (c *Cluster) Server(r Route) string {
	if r == ViaProxy {
		return "https://" + c.proxy.Address()
	}
	return "https://" + c.apiAddress
}

// CA returns the certificate of the cluster's authority, in PEM.
func (c *Cluster) CA() []byte { return c.ca.pem }

// Kubeconfig returns a cluster admin's kubeconfig with embedded certificates.
func (c *Cluster) Kubeconfig(r Route) ([]byte, error) {
	return c.UserKubeconfig(r, adminUser, adminGroup)
}

// KubeconfigPath returns the path of a cluster admin's direct kubeconfig. The file exists as long
// as the cluster's data.
func (c *Cluster) KubeconfigPath() string { return c.path("admin.kubeconfig") }

// WriteKubeconfig writes a file with a cluster admin's direct kubeconfig for all clusters. Each cluster
// has a context with its name. The host's context is the current one.
func (f *Fleet) WriteKubeconfig(path string) error {
	all := clientcmdapi.NewConfig()
	for _, c := range f.Clusters() {
		content, err := c.Kubeconfig(Direct)
		if err != nil {
			return err
		}
		one, err := clientcmd.Load(content)
		if err != nil {
			return fmt.Errorf("read the kubeconfig of %s: %w", c.Name(), err)
		}
		current := one.Contexts[one.CurrentContext]
		all.Clusters[c.Name()], all.AuthInfos[c.Name()] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[c.Name()] = &clientcmdapi.Context{Cluster: c.Name(), AuthInfo: c.Name()}
	}
	all.CurrentContext = f.Host.Name()
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		return fmt.Errorf("write the kubeconfig of all clusters: %w", err)
	}
	return nil
}

// UserKubeconfig returns the kubeconfig of a user with a client certificate. It stays valid after
// Wipe, but the user's RBAC permissions do not.
func (c *Cluster) UserKubeconfig(r Route, user string, groups ...string) ([]byte, error) {
	cert, key, err := c.ca.client(user, groups)
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(r, user, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// ServiceAccountKubeconfig returns a kubeconfig with a token for an existing service account. The
// token is valid until the service account is deleted, for example by Wipe.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, r Route, namespace, name string) ([]byte, error) {
	token, err := c.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(r, name, &clientcmdapi.AuthInfo{Token: token})
}

// ServiceAccountToken returns a token for the service account.
func (c *Cluster) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for service account %s/%s in %s: %w", namespace, name, c.Name(), err)
	}
	return answer.Status.Token, nil
}

// RESTConfig returns a cluster admin's client configuration, with limits that do not slow tests
// down.
func (c *Cluster) RESTConfig(r Route) (*rest.Config, error) {
	kubeconfig, err := c.Kubeconfig(r)
	if err != nil {
		return nil, err
	}
	return restConfig(kubeconfig)
}

func restConfig(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the generated kubeconfig: %w", err)
	}
	config.QPS, config.Burst = clientQPS, clientQPS
	return config, nil
}

func (c *Cluster) kubeconfig(r Route, user string, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name()] = &clientcmdapi.Cluster{Server: c.Server(r), CertificateAuthorityData: c.ca.pem}
	config.AuthInfos[user] = auth
	context := user + "@" + c.Name()
	config.Contexts[context] = &clientcmdapi.Context{Cluster: c.Name(), AuthInfo: user}
	config.CurrentContext = context
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return content, nil
}

// writeKubeconfig writes a user's direct kubeconfig to a file in the cluster's directory.
func (c *Cluster) writeKubeconfig(file, user string, groups ...string) error {
	content, err := c.UserKubeconfig(Direct, user, groups...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path(file), content, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return nil
}
