package nodeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
)

// RequestedCertificate is a certificate from the signer kubernetes.io/kubelet-serving, which client-go
// requests and rotates. Until an admin approves the first request, RequestedCertificate serves a self-signed
// certificate.
type RequestedCertificate struct {
	manager  certificate.Manager
	fallback *SelfSignedCertificate
}

// nodeUser and nodeGroup form a kubelet's subject. The signer accepts no other subject.
const (
	nodeUser  = "system:node:xylem"
	nodeGroup = "system:nodes"
)

// NewRequestedCertificate requests a certificate for the addresses that the host's API server dials.
func NewRequestedCertificate(config *rest.Config, addresses []net.IP, until *SelfSignedCertificate) (*RequestedCertificate, error) {
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		GetTemplate: func() *x509.CertificateRequest {
			if len(addresses) == 0 {
				return nil // the signer requires an address
			}
			return &x509.CertificateRequest{
				Subject:     pkix.Name{CommonName: nodeUser, Organization: []string{nodeGroup}},
				IPAddresses: addresses,
			}
		},
		SignerName:       certificatesv1.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: &memoryStore{},
		Name:             "node-api",
	})
	if err != nil {
		return nil, fmt.Errorf("request a certificate from the host: %w", err)
	}
	return &RequestedCertificate{manager, until}, nil
}

// NeedLeaderElection returns false because every replica serves.
func (r *RequestedCertificate) NeedLeaderElection() bool { return false }

// Start requests and rotates the certificate until the context ends.
func (r *RequestedCertificate) Start(ctx context.Context) error {
	r.manager.Start()
	defer r.manager.Stop()
	<-ctx.Done()
	return nil
}

// GetCertificate implements GetCertificate of tls.Config.
func (r *RequestedCertificate) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := r.manager.Current(); current != nil {
		return current, nil
	}
	return r.fallback.GetCertificate(hello)
}

// memoryStore keeps the certificate in memory. A new process requests another one.
type memoryStore struct {
	mu      sync.Mutex
	current *tls.Certificate
}

// Current implements certificate.Store.
func (m *memoryStore) Current() (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		none := certificate.NoCertKeyError("no certificate has been issued yet")
		return nil, &none
	}
	return m.current, nil
}

// Update implements certificate.Store.
func (m *memoryStore) Update(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate that the host signed: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = &pair
	return m.current, nil
}
