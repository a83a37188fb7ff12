package nodeapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// certificateLife is how long a self-signed certificate is valid. It is replaced after
	// two thirds of this time.
	certificateLife = 90 * 24 * time.Hour
	// clockSkew is how far the clocks of host and manager may differ.
	clockSkew = 5 * time.Minute
)

// SelfSignedCertificate is a self-signed certificate that is kept in memory and replaced before it
// expires. API servers accept it unless --kubelet-certificate-authority is set.
type SelfSignedCertificate struct {
	// Name is the subject. Addresses are the IP addresses for which the certificate is valid.
	Name      string
	Addresses []net.IP
	Clock     clock.PassiveClock

	mu      sync.Mutex
	current *tls.Certificate
}

// GetCertificate implements GetCertificate of tls.Config.
func (s *SelfSignedCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if s.current != nil && now.Before(s.current.Leaf.NotAfter.Add(-certificateLife/3)) && now.After(s.current.Leaf.NotBefore) {
		return s.current, nil
	}
	made, err := s.createCertificate(now)
	if err != nil {
		return nil, fmt.Errorf("create a serving certificate: %w", err)
	}
	s.current = made
	return made, nil
}

func (s *SelfSignedCertificate) createCertificate(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.Name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{s.Name}, IPAddresses: s.Addresses, BasicConstraintsValid: true,
	}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(content)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key, Leaf: leaf}, nil
}
