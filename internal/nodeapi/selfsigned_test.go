package nodeapi

import (
	"net"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSelfSigned(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	s := &SelfSignedCertificate{Name: "manager-0", Addresses: []net.IP{net.ParseIP("10.0.0.7")}, Clock: clock}
	get := func() string {
		t.Helper()
		c, err := s.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Leaf.VerifyHostname("10.0.0.7"); err != nil {
			t.Error(err)
		}
		if now := clock.Now(); now.Before(c.Leaf.NotBefore) || !now.Before(c.Leaf.NotAfter) {
			t.Error("the certificate is not valid now")
		}
		return c.Leaf.SerialNumber.String()
	}
	first := get()
	clock.SetTime(clock.Now().Add(certificateLife / 2))
	if get() != first {
		t.Error("the certificate was replaced too early")
	}
	clock.SetTime(clock.Now().Add(certificateLife / 4))
	if get() == first {
		t.Error("the certificate was not replaced in time")
	}
}
