package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is the validity of certificates, which exceeds the duration of any test.
const certificateLife = 7 * 24 * time.Hour

// clockSkew is how long before its creation a certificate becomes valid.
const clockSkew = time.Hour

// authority is a cluster's certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// newAuthority creates a CA with a new key.
func newAuthority(cluster string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the CA of %s: %w", cluster, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: cluster + "-ca"},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(certificateLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create the CA of %s: %w", cluster, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("create the CA of %s: %w", cluster, err)
	}
	return &authority{cert: cert, key: key, pem: encodeCert(der)}, nil
}

// server issues a certificate for loopback and for the names that Pods would use.
func (a *authority) server() (cert, key []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.ParseIP(loopback), net.IPv6loopback, net.ParseIP("10.0.0.1")},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client issues a certificate for a user.
func (a *authority) client(user string, groups []string) (cert, key []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (cert, key []byte, err error) {
	fail := func(err error) ([]byte, []byte, error) {
		return nil, nil, fmt.Errorf("issue a certificate for %s: %w", template.Subject.CommonName, err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	template.SerialNumber = serial()
	template.NotBefore = time.Now().Add(-clockSkew)
	template.NotAfter = time.Now().Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return fail(err)
	}
	key, err = encodeKey(private)
	if err != nil {
		return fail(err)
	}
	return encodeCert(der), key, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail.
	}
	return n
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// writePKI writes the files that the processes of a cluster read: the CA, the serving certificate
// and the key pair for service account tokens.
func (a *authority) writePKI(dir string) error {
	cert, key, err := a.server()
	if err != nil {
		return err
	}
	kubeletCert, kubeletKey, err := a.client("kube-apiserver-kubelet-client", []string{adminGroup})
	if err != nil {
		return err
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("create the key for service account tokens: %w", err)
	}
	private, err := encodeKey(tokenKey)
	if err != nil {
		return fmt.Errorf("create the key for service account tokens: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(tokenKey.Public())
	if err != nil {
		return fmt.Errorf("create the key for service account tokens: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	for name, content := range map[string][]byte{
		caFile: a.pem, servingCertFile: cert, servingKeyFile: key, tokenKeyFile: private,
		kubeletCertFile: kubeletCert, kubeletKeyFile: kubeletKey,
		tokenPublicFile: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

// Files of a cluster's pki directory.
const (
	caFile          = "ca.crt"
	servingCertFile = "serving.crt"
	servingKeyFile  = "serving.key"
	kubeletCertFile = "kubelet-client.crt"
	kubeletKeyFile  = "kubelet-client.key"
	tokenKeyFile    = "service-account.key"
	tokenPublicFile = "service-account.pub"
)
