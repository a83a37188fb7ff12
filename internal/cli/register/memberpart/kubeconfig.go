package memberpart

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

// entry names the cluster, user and context of the kubeconfigs that are created here.
const entry = "member"

// Way is how the manager gets to the member.
type Way struct {
	Server, serverName string
	ca                 []byte
}

// WayFrom is the way that an admin's kubeconfig leads, or the one that the flags
// say. Pure.
func WayFrom(admin *rest.Config, server, serverName string) (Way, error) {
	w := Way{Server: admin.Host, serverName: admin.ServerName, ca: admin.CAData}
	if server != "" {
		w.Server = server
	}
	if serverName != "" {
		w.serverName = serverName
	}
	if admin.Insecure {
		return w, errors.New("the member's kubeconfig sets insecure-skip-tls-verify, with which anybody on the network path could read the token. Give the kubeconfig the cluster's CA (certificate-authority-data), and if the certificate is for another name, --member-tls-server-name")
	}
	u, err := url.Parse(w.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return w, fmt.Errorf("the member's server %q is not a plain https address. Give one with --member-server", w.Server)
	}
	return w, nil
}

// Loopback reports whether the way leads to the machine that one is on.
func (w Way) Loopback() bool {
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

// Kubeconfig that the manager reads: data alone, no files and no programs.
func (w Way) Kubeconfig(token string) ([]byte, error) {
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

// config of a client that is the manager's account.
func (w Way) config(token string) *rest.Config {
	return &rest.Config{
		Host: w.Server, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{ServerName: w.serverName, CAData: w.ca},
	}
}
