package nodeapi

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/utils/clock"
)

// Until a request is approved, the manager serves its self-signed certificate.
func TestRequested(t *testing.T) {
	own := &SelfSignedCertificate{Name: "manager-0", Addresses: []net.IP{net.ParseIP("10.0.0.7")}, Clock: clock.RealClock{}}
	r, err := NewRequestedCertificate(&rest.Config{Host: "https://127.0.0.1:1"}, own.Addresses, own)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := own.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.GetCertificate(nil); err != nil || got != mine {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMemory(t *testing.T) {
	m := &memoryStore{}
	var none *certificate.NoCertKeyError
	if _, err := m.Current(); !errors.As(err, &none) {
		t.Errorf("without a certificate, error is %v, want a NoCertKeyError", err)
	}
	own := &SelfSignedCertificate{Name: "manager-0", Clock: clock.RealClock{}}
	pair, err := own.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	if _, err := m.Update(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Current(); err != nil || got.Leaf.SerialNumber.Cmp(pair.Leaf.SerialNumber) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := m.Update(cert, []byte("no key")); err == nil {
		t.Error("a certificate without its key was accepted")
	}
}
