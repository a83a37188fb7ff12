package membertest

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// ConnectToServer creates a connection to a test server.
func ConnectToServer(t *testing.T, server *httptest.Server) *member.Connection {
	t.Helper()
	c, err := member.NewConnection(&rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}, "test", clientgoscheme.Scheme, member.CallTimeout, true, budget.DefaultMemoryLimits, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
