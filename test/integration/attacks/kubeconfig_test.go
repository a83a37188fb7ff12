package attacks_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// kubeconfigOf returns a kubeconfig for a server, with additional fields of its cluster and user.
func kubeconfigOf(server, cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q%s}}]
users: [{name: u, user: {%s}}]
`, server, cluster, user)
}

// certified returns the CA of a test server, as a field of a kubeconfig's cluster.
func certified(s *httptest.Server) string {
	return ", certificate-authority-data: " + base64.StdEncoding.EncodeToString(suite.CA(s))
}

// registered registers a kubeconfig, and deregisters it at the end of the spec.
func registered(ctx context.Context, name string, kubeconfig []byte) {
	GinkgoHelper()
	Expect(x.SetKubeconfig(ctx, name, kubeconfig)).To(Succeed())
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(name)
	Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
	DeferCleanup(deregistered, name, NodeTimeout(settle))
}

func deregistered(ctx SpecContext, name string) {
	Expect(x.Deregister(ctx, name)).To(Succeed())
	Expect(x.Host.API.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: harness.SecretName(name)}})).To(Succeed())
}

// says waits until a registration has Connected=False with a reason, and a message that contains
// the given parts.
func says(ctx context.Context, name, reason string, words ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		cr, err := get[v1alpha1.ClusterRegistration](ctx, x.Host, "", name)
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
		if c == nil || c.Status != metav1.ConditionFalse {
			return "", nil
		}
		return c.Reason + ": " + c.Message, nil
	}).Should(And(HavePrefix(reason+": "), allOf(words), WithTransform(length, BeNumerically("<", 4096))))
}

func serving(handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewTLSServer(handler)
	DeferCleanup(s.Close)
	return s
}

// identified responds like the API server of a cluster with the given ID.
func identified(id, version string, otherwise http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, id)
		case "/version":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"major": "1", "minor": "36", "gitVersion": version})
		default:
			otherwise(w, r)
		}
	}
}

var _ = Describe("The author of a kubeconfig tries to get", func() {
	It("the manager to run a program, read its files, or impersonate another user", func(ctx SpecContext) {
		ran := filepath.Join(GinkgoT().TempDir(), "ran")
		for i, tc := range []struct{ cluster, user, named string }{
			{"", "exec: {command: /usr/bin/touch, args: [" + ran + "], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "exec"},
			{"", "auth-provider: {name: oidc, config: {}}", "auth-provider"},
			{"", "tokenFile: /etc/hostname", "tokenFile"},
			{"", "client-certificate: /etc/hostname, client-key: /etc/hostname", "client-certificate"},
			{", certificate-authority: /etc/hostname", "token: t", "certificate-authority"},
			{", proxy-url: 'http://169.254.169.254'", "token: t", "proxy-url"},
			{", insecure-skip-tls-verify: true", "token: t", "insecure-skip-tls-verify"},
			{"", "token: t, as: system:admin", "impersonation"},
		} {
			name := fmt.Sprintf("hostile-%d", i)
			registered(ctx, name, kubeconfigOf("https://member.example.com:6443", tc.cluster, tc.user))
			says(ctx, name, v1alpha1.ReasonKubeconfigRefused, tc.named)
		}
		_, err := os.Stat(ran)
		Expect(err).To(MatchError(os.ErrNotExist))
	}, SpecTimeout(attackTime))

	It("the manager's cloud credentials: metadata, link-local and unspecified addresses", func(ctx SpecContext) {
		for i, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "[::ffff:169.254.169.254]", "0.0.0.0", "100.100.100.200", "[64:ff9b::a9fe:a9fe]"} {
			name := fmt.Sprintf("metadata-%d", i)
			registered(ctx, name, kubeconfigOf("https://"+host, "", "token: t"))
			says(ctx, name, v1alpha1.ReasonKubeconfigRefused, "to which the manager does not connect")
		}
	}, SpecTimeout(attackTime))

	It("the manager to send requests to targets that the attacker cannot reach: redirects", func(ctx SpecContext) {
		var asked atomic.Bool
		inside := serving(func(http.ResponseWriter, *http.Request) { asked.Store(true) })
		outside := serving(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL+"/latest/meta-data", http.StatusTemporaryRedirect)
		})
		registered(ctx, "redirecting", kubeconfigOf(outside.URL, certified(outside), "token: t"))
		says(ctx, "redirecting", v1alpha1.ReasonUnreachable)
		Expect(asked.Load()).To(BeFalse())
	}, SpecTimeout(attackTime))

	It("the victim's member: the attacker's server claims its identity", func(ctx SpecContext) {
		id, err := x.Member(one).ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		var written atomic.Bool
		server := serving(identified(id, "v1.36.3", func(w http.ResponseWriter, r *http.Request) {
			written.Store(written.Load() || r.Method != http.MethodGet)
			http.NotFound(w, r)
		}))
		registered(ctx, "pretender", kubeconfigOf(server.URL, certified(server), "token: t"))
		says(ctx, "pretender", v1alpha1.ReasonDuplicateCluster)
		Expect(written.Load()).To(BeFalse())
	}, SpecTimeout(attackTime))

	It("the identity of the host", func(ctx SpecContext) {
		server := serving(identified(hostID(ctx), "v1.36.3", http.NotFound))
		registered(ctx, "host-again", kubeconfigOf(server.URL, certified(server), "token: t"))
		says(ctx, "host-again", v1alpha1.ReasonIsHost)
	}, SpecTimeout(attackTime))
})

var _ = Describe("A compromised API server of a member tries to cause", func() {
	It("memory use and delays in the manager: endless responses", func(ctx SpecContext) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		server := serving(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		registered(ctx, "endless", kubeconfigOf(server.URL, certified(server), "token: t"))
		says(ctx, "endless", v1alpha1.ReasonAnswersRefused)
		barrier(ctx)
	}, SpecTimeout(attackTime))

	It("a registration that cannot report what is wrong: messages of a megabyte, invalid versions", func(ctx SpecContext) {
		server := serving(identified("0d6c2a35-1111-4000-8000-000000000001", "v1\x1b[2J"+strings.Repeat("9", 1<<20), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Warning", `299 - "canary-of-a-warning"`)
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"\u001b[2J%s"}`, strings.Repeat("x", 1<<20))
		}))
		registered(ctx, "shouting", kubeconfigOf(server.URL, certified(server), "token: t"))
		says(ctx, "shouting", v1alpha1.ReasonForbidden)
		cr := must[v1alpha1.ClusterRegistration](ctx, x.Host, "", "shouting")
		raw, err := json.Marshal(cr)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(raw)).To(BeNumerically("<", 16<<10))
		log, err := os.ReadFile(x.Manager.LogPath())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(ContainSubstring("canary-of-a-warning"))
		Expect(string(log)).NotTo(ContainSubstring("\x1b[2J"))
	}, SpecTimeout(attackTime))
})
