package register

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/internal/member/access"
)

func TestWayFrom(t *testing.T) {
	admin := func(host string, tls rest.TLSClientConfig) *rest.Config {
		return &rest.Config{Host: host, BearerToken: "admin", TLSClientConfig: tls}
	}
	ca := []byte("ca")
	for name, tc := range map[string]struct {
		admin              *rest.Config
		server, serverName string
		want               memberWay
		says               string
	}{
		"the kubeconfig's address":      {admin: admin("https://a:6443", rest.TLSClientConfig{CAData: ca, ServerName: "kubernetes"}), want: memberWay{"https://a:6443", "kubernetes", ca}},
		"another address":               {admin: admin("https://127.0.0.1:1", rest.TLSClientConfig{CAData: ca}), server: "https://b:6443", want: memberWay{"https://b:6443", "", ca}},
		"another server name":           {admin: admin("https://a", rest.TLSClientConfig{CAData: ca, ServerName: "x"}), serverName: "y", want: memberWay{"https://a", "y", ca}},
		"an address with a path":        {admin: admin("https://a/k8s/clusters/c", rest.TLSClientConfig{}), want: memberWay{Server: "https://a/k8s/clusters/c"}},
		"a server that is not verified": {admin: admin("https://a", rest.TLSClientConfig{Insecure: true}), says: "insecure-skip-tls-verify"},
		"an unencrypted connection":     {admin: admin("http://a", rest.TLSClientConfig{}), says: "not a plain https URL"},
		"an address without a scheme":   {admin: admin("https://a", rest.TLSClientConfig{}), server: "b:6443", says: "not a plain https URL"},
		"an address with a password":    {admin: admin("https://a", rest.TLSClientConfig{}), server: "https://u:p@b", says: "not a plain https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := memberWayFrom(tc.admin, tc.server, tc.serverName)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error is %v, want %q", err, tc.says)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(memberWay{})); err != nil || diff != "" {
				t.Errorf("got error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// TestKubeconfig checks that the manager accepts the kubeconfig, and that it contains only the
// server's address, name and CA from the admin's kubeconfig.
func TestKubeconfig(t *testing.T) {
	raw, err := memberWay{Server: "https://a:6443", serverName: "kubernetes"}.Kubeconfig("token")
	if err != nil {
		t.Fatal(err)
	}
	got, err := access.ParseKubeconfig(raw, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != "https://a:6443" || got.BearerToken != "token" || got.ServerName != "kubernetes" {
		t.Errorf("got kubeconfig %s, want the given server, server name and token", got)
	}
}

func TestLoopback(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.8.8.8": true, "https://[::1]:6443": true, "https://localhost:6443": true,
		"https://10.0.0.1": false, "https://example.org": false, "https://127.example.org": false,
	} {
		if got := (memberWay{Server: server}).UsesLoopback(); got != want {
			t.Errorf("%s: got %v, want %v", server, got, want)
		}
	}
}
