package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// pair returns a certificate and its key, PEM-encoded.
func pair(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// kubeconfig returns a kubeconfig with the given cluster and user lines.
func kubeconfig(cluster, user string) string {
	indent := func(lines string) string { return "    " + strings.ReplaceAll(lines, "\n", "\n    ") }
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n" +
		"clusters:\n- name: c\n  cluster:\n" + indent(cluster) + "\nusers:\n- name: u\n  user:\n" + indent(user) + "\n"
}

const (
	server = "server: https://member.example.com:6443"
	token  = "token: abc"
)

func TestParseKubeconfig(t *testing.T) {
	certificate, key := pair(t)
	_, otherKey := pair(t)
	b64 := base64.StdEncoding.EncodeToString
	ca := "\ncertificate-authority-data: " + b64(certificate)
	for name, tc := range map[string]struct {
		kubeconfig string
		insecure   bool
		want       *rest.Config
		// the ConnectionProblem's reason, and text that its message contains
		reason string
		says   []string
	}{
		"a token": {kubeconfig: kubeconfig(server+ca, token), want: &rest.Config{
			Host: "https://member.example.com:6443", BearerToken: "abc", TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}},
		"a token with surrounding white space": {kubeconfig: kubeconfig(server, `token: " abc\n"`), want: &rest.Config{
			Host: "https://member.example.com:6443", BearerToken: "abc"}},
		"a client certificate": {kubeconfig: kubeconfig(server+ca, "client-certificate-data: "+b64(certificate)+"\nclient-key-data: "+b64(key)), want: &rest.Config{
			Host: "https://member.example.com:6443", TLSClientConfig: rest.TLSClientConfig{CAData: certificate, CertData: certificate, KeyData: key}}},
		"a TLS server name and a server with a path": {kubeconfig: kubeconfig("server: https://10.0.0.1/k8s/c-1\ntls-server-name: member", token), want: &rest.Config{
			Host: "https://10.0.0.1/k8s/c-1", BearerToken: "abc", TLSClientConfig: rest.TLSClientConfig{ServerName: "member"}}},
		"insecure-skip-tls-verify, allowed by the flag": {kubeconfig: kubeconfig(server+"\ninsecure-skip-tls-verify: true", token), insecure: true, want: &rest.Config{
			Host: "https://member.example.com:6443", BearerToken: "abc", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}},
		"a forbidden field of another context's user": {
			kubeconfig: kubeconfig(server, token) + "- name: other\n  user: {exec: {command: rm, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}\n",
			want:       &rest.Config{Host: "https://member.example.com:6443", BearerToken: "abc"}},

		"exec":                      {kubeconfig: kubeconfig(server, "exec: {command: /bin/evil, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"uses exec,"}},
		"exec and a token":          {kubeconfig: kubeconfig(server, token+"\nexec: {command: /bin/evil, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"exec"}},
		"an auth provider":          {kubeconfig: kubeconfig(server, "auth-provider: {name: gcp}"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"auth-provider"}},
		"a token file":              {kubeconfig: kubeconfig(server, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"tokenFile"}},
		"a client certificate file": {kubeconfig: kubeconfig(server, token+"\nclient-certificate: /etc/passwd"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"client-certificate,"}},
		"a client key file":         {kubeconfig: kubeconfig(server, token+"\nclient-key: /etc/passwd"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"client-key,"}},
		"a user name":               {kubeconfig: kubeconfig(server, "username: admin"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"username and password"}},
		"a password":                {kubeconfig: kubeconfig(server, "password: secret"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"username and password"}},
		"impersonation of a user":   {kubeconfig: kubeconfig(server, token+"\nas: admin"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"impersonation"}},
		"impersonation of a UID":    {kubeconfig: kubeconfig(server, token+"\nas-uid: x"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"impersonation"}},
		"impersonation of groups":   {kubeconfig: kubeconfig(server, token+"\nas-groups: [system:masters]"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"impersonation"}},
		"impersonation with extras": {kubeconfig: kubeconfig(server, token+"\nas-user-extra: {a: [b]}"), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"impersonation"}},
		"a CA file":                 {kubeconfig: kubeconfig(server+"\ncertificate-authority: /etc/passwd", token), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"certificate-authority,"}},
		"a proxy":                   {kubeconfig: kubeconfig(server+"\nproxy-url: http://evil.example.com", token), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"proxy-url"}},
		"insecure-skip-tls-verify":  {kubeconfig: kubeconfig(server+"\ninsecure-skip-tls-verify: true", token), reason: v1alpha1.ReasonKubeconfigRefused, says: []string{"insecure-skip-tls-verify"}},
		"several forbidden fields: the message names all": {kubeconfig: kubeconfig(server+"\nproxy-url: http://evil.example.com", "tokenFile: /x\nas: admin"), reason: v1alpha1.ReasonKubeconfigRefused,
			says: []string{"impersonation", "proxy-url", "tokenFile"}},

		"empty":                    {kubeconfig: "", reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"no current-context"}},
		"not YAML":                 {kubeconfig: "\x00{", reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"cannot be parsed"}},
		"a kind other than Config": {kubeconfig: "apiVersion: v1\nkind: Pod\n", reason: v1alpha1.ReasonKubeconfigInvalid},
		"current-context names a missing context":   {kubeconfig: "current-context: c", reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{`current-context "c", but no context`}},
		"the context names a missing cluster":       {kubeconfig: "current-context: c\ncontexts: [{name: c, context: {cluster: x, user: u}}]", reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{`no cluster "x"`}},
		"the context names a missing user":          {kubeconfig: "current-context: c\ncontexts: [{name: c, context: {cluster: x, user: u}}]\nclusters: [{name: x, cluster: {}}]", reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{`no user "u"`}},
		"no server":                                 {kubeconfig: kubeconfig("tls-server-name: x", token), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"server"}},
		"a plain http server":                       {kubeconfig: kubeconfig("server: http://member.example.com", token), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"http://member.example.com"}},
		"a server without scheme":                   {kubeconfig: kubeconfig("server: member.example.com:6443", token), reason: v1alpha1.ReasonKubeconfigInvalid},
		"a server on a unix socket":                 {kubeconfig: kubeconfig("server: unix:///var/run/docker.sock", token), reason: v1alpha1.ReasonKubeconfigInvalid},
		"a server with a query":                     {kubeconfig: kubeconfig("server: https://member.example.com?a=b", token), reason: v1alpha1.ReasonKubeconfigInvalid},
		"a server with a bad port":                  {kubeconfig: kubeconfig("server: https://member.example.com:x", token), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"(unreadable)"}},
		"an invalid CA":                             {kubeconfig: kubeconfig(server+"\ncertificate-authority-data: "+b64([]byte("x")), token), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"certificate-authority-data"}},
		"a CA and insecure-skip-tls-verify":         {kubeconfig: kubeconfig(server+ca+"\ninsecure-skip-tls-verify: true", token), insecure: true, reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"are mutually exclusive"}},
		"no credentials":                            {kubeconfig: kubeconfig(server, "token: ''"), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"no credentials"}},
		"a certificate without a key":               {kubeconfig: kubeconfig(server, "client-certificate-data: "+b64(certificate)), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"do not match"}},
		"a key that belongs to another certificate": {kubeconfig: kubeconfig(server, "client-certificate-data: "+b64(certificate)+"\nclient-key-data: "+b64(otherKey)), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"do not match"}},
		"a token with a line break":                 {kubeconfig: kubeconfig(server, `token: "a\nX-Evil: b"`), reason: v1alpha1.ReasonKubeconfigInvalid, says: []string{"characters"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKubeconfig([]byte(tc.kubeconfig), tc.insecure)
			if tc.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b *rest.Config) bool {
					return a.Host == b.Host && a.BearerToken == b.BearerToken && cmp.Equal(a.TLSClientConfig, b.TLSClientConfig)
				})); diff != "" {
					t.Errorf("config (-want +got):\n%s", diff)
				}
				return
			}
			p := &ConnectionProblem{}
			if !errors.As(err, &p) || p.Reason != tc.reason {
				t.Fatalf("error is %v, want a Problem with reason %s", err, tc.reason)
			}
			for _, word := range tc.says {
				if !strings.Contains(p.Message, word) {
					t.Errorf("message %q does not contain %q", p.Message, word)
				}
			}
		})
	}
}

// Many users can read condition messages, so they must not contain credentials.
func TestMessagesHideCredentials(t *testing.T) {
	for name, line := range map[string]string{
		"a password in the address":  "server: https://admin:hunter2@member.example.com",
		"a token as the user's name": "server: https://hunter2@member.example.com",
		"a token in the query":       "server: https://member.example.com?token=hunter2",
		"a token in the fragment":    "server: https://member.example.com#hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseKubeconfig([]byte(kubeconfig(line, token)), false)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error is %v, want one without the credentials", err)
			}
		})
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	certificate, key := pair(f)
	b64 := base64.StdEncoding.EncodeToString
	for _, seed := range []string{
		"", "{}", "current-context: c", "contexts: [{name: c}]\ncurrent-context: c", "users: [{name: u, user: null}]",
		kubeconfig(server, token), kubeconfig(server, "tokenFile: /x"), kubeconfig("server: 'https://[::1'", token),
		kubeconfig(server+"\ncertificate-authority-data: "+b64(certificate), "client-certificate-data: "+b64(certificate)+"\nclient-key-data: "+b64(key)),
		kubeconfig(server, "exec: {command: x}"), kubeconfig(server, "auth-provider: {name: x}"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := ParseKubeconfig(raw, false)
		if err != nil {
			p := &ConnectionProblem{}
			if !errors.As(err, &p) || p.Message == "" || config != nil {
				t.Errorf("error is %#v, config %v; want a Problem with a message, and no config", err, config)
			}
			return
		}
		// An accepted configuration runs no program, reads no file, impersonates no user and
		// verifies the server.
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CertFile != "" || config.KeyFile != "" ||
			config.CAFile != "" || config.Insecure || config.Proxy != nil || config.Username != "" || config.Impersonate.UserName != "" {
			t.Errorf("the accepted config has a field that is not allowed: %+v", config)
		}
		if !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
			t.Errorf("the config was accepted with host %q, want an https URL", config.Host)
		}
		if _, err := rest.TLSConfigFor(config); err != nil {
			t.Errorf("the config was accepted, but creating a client with it failed: %v", err)
		}
	})
}
