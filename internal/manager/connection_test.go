package manager

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// A renewal on the connection of the caches would wait behind their first lists.
func TestRenewalsHaveTheirOwnConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("From", r.RemoteAddr)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	connectionOf := func(config *rest.Config) string {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return response.Header.Get("From")
	}
	lists := connectionOf(config)
	if again := connectionOf(rest.CopyConfig(config)); again != lists {
		t.Fatalf("clients do not share a connection: %s and %s", lists, again)
	}
	if renewals := connectionOf(dedicatedConnectionConfig(config)); renewals == lists {
		t.Error("renewals share the connection of the lists")
	}
}
