package nodeapi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// authority signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// request returns a request with a user's client certificate, which is valid for the given extended
// key usage.
func (a *authority) request(t *testing.T, user string, usage x509.ExtKeyUsage) *http.Request {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user, Organization: []string{"group"}},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	return r
}

// reviewer is a host API server that responds to reviews and serves the ConfigMap with the CA.
type reviewer struct {
	configMap corev1.ConfigMap
	changes   chan corev1.ConfigMap
	asked     chan authorizationv1.SubjectAccessReviewSpec
}

func (h *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(content any) { _ = json.NewEncoder(w).Encode(content) }
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Authenticated = review.Spec.Token == "good"
		review.Status.User.Username = "prometheus"
		answer(review)
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		h.asked <- review.Spec
		review.Status.Allowed = review.Spec.User == "kube-apiserver"
		answer(review)
	case r.URL.Query().Get("watch") != "":
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity) // makes the client fall back to a list
			answer(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
			return
		}
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case changed := <-h.changes:
				answer(map[string]any{"type": "MODIFIED", "object": changed})
				_ = http.NewResponseController(w).Flush()
			}
		}
	default:
		answer(corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{h.configMap}})
	}
}

func TestDelegated(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	configMap := func(version string, cas ...string) corev1.ConfigMap {
		return corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: authConfigMap, ResourceVersion: version},
			Data:       map[string]string{authCAKey: strings.Join(cas, "")},
		}
	}
	h := &reviewer{configMap: configMap("1", first.pem()), changes: make(chan corev1.ConfigMap), asked: make(chan authorizationv1.SubjectAccessReviewSpec, 8)}
	server := httptest.NewServer(h)
	defer server.Close()
	authenticates, authorizes, run, err := NewDelegatedAuth(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go run(ctx)

	known := func(a *authority) bool {
		response, ok, _ := authenticates.AuthenticateRequest(a.request(t, "kube-apiserver", x509.ExtKeyUsageClientAuth))
		return ok && response.User.GetName() == "kube-apiserver" && bytes.Contains([]byte(strings.Join(response.User.GetGroups(), ",")), []byte("group"))
	}
	await := func(what string, done func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done(), nil })
		if err != nil {
			t.Fatal(what)
		}
	}
	await("a certificate from the published CA is not accepted", func() bool { return known(first) })
	if known(second) {
		t.Error("a certificate from another CA is accepted")
	}
	if _, ok, _ := authenticates.AuthenticateRequest(first.request(t, "kube-apiserver", x509.ExtKeyUsageServerAuth)); ok {
		t.Error("a serving certificate is accepted as a client certificate")
	}
	h.changes <- configMap("2", second.pem())
	await("the new CA is not accepted", func() bool { return known(second) })
	if known(first) {
		t.Error("the removed CA is still accepted")
	}

	for token, want := range map[string]bool{"good": true, "bad": false, "": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, ok, _ := authenticates.AuthenticateRequest(r)
		if ok != want || ok && response.User.GetName() != "prometheus" {
			t.Errorf("token %q: %v", token, ok)
		}
		if ok && r.Header.Get("Authorization") != "" {
			t.Error("the token is still in the request")
		}
	}

	g := Guard{Authorizer: authorizes}
	response, _, err := authenticates.AuthenticateRequest(second.request(t, "kube-apiserver", x509.ExtKeyUsageClientAuth))
	if err != nil {
		t.Fatal(err)
	}
	if g.CheckNodeAccess(ctx, response.User, "create", "proxy", "kosmos-one", ErrUnauthorized) != nil {
		t.Error("a request that the host allows is refused")
	}
	asked := (<-h.asked).ResourceAttributes
	if asked.Verb != "create" || asked.Resource != "nodes" || asked.Subresource != "proxy" || asked.Name != "kosmos-one" {
		t.Errorf("the review was for %v, want create on nodes/proxy of kosmos-one", asked)
	}
	other, _, err := authenticates.AuthenticateRequest(second.request(t, "somebody", x509.ExtKeyUsageClientAuth))
	if err != nil {
		t.Fatal(err)
	}
	if g.CheckNodeAccess(ctx, other.User, "get", "proxy", "kosmos-one", ErrUnauthorized) != ErrUnauthorized {
		t.Error("a request that the host refuses is allowed")
	}
}
