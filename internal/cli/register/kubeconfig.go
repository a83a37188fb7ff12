package register

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// entry is the name of the cluster, user and context in the kubeconfigs that Way creates.
const entry = "member"

// memberWay describes how the manager connects to the member.
type memberWay struct {
	Server, serverName string
	ca                 []byte
}

// memberWayFrom returns the Way from an admin's kubeconfig, or from the flags if they are set. It is
// pure.
func memberWayFrom(admin *rest.Config, server, serverName string) (memberWay, error) {
	w := memberWay{Server: admin.Host, serverName: admin.ServerName, ca: admin.CAData}
	if server != "" {
		w.Server = server
	}
	if serverName != "" {
		w.serverName = serverName
	}
	if admin.Insecure {
		return w, errors.New("the member's kubeconfig sets insecure-skip-tls-verify, so anybody on the network path could read the token. Set certificate-authority-data in the kubeconfig to the cluster's CA. If the certificate is for another name, set --member-tls-server-name")
	}
	u, err := url.Parse(w.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return w, fmt.Errorf("the address %q of the member's API server is not a plain https URL. Specify such a URL with --member-server", w.Server)
	}
	return w, nil
}

// UsesLoopback reports whether the server's address is a loopback address.
func (w memberWay) UsesLoopback() bool {
	u, err := url.Parse(w.Server)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(u.Hostname())
	return err == nil && net.IP(address.AsSlice()).IsLoopback()
}

// Kubeconfig returns the kubeconfig for the manager. It is self-contained: it refers to no files or
// programs.
func (w memberWay) Kubeconfig(token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = entry
	config.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	config.Clusters[entry] = &clientcmdapi.Cluster{Server: w.Server, TLSServerName: w.serverName, CertificateAuthorityData: w.ca}
	config.AuthInfos[entry] = &clientcmdapi.AuthInfo{Token: token}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return content, nil
}

// configOfManager returns the client configuration of the manager's account.
func (w memberWay) configOfManager(token string) *rest.Config {
	return &rest.Config{
		Host: w.Server, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{ServerName: w.serverName, CAData: w.ca},
	}
}
