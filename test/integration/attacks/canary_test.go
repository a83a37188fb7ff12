package attacks_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// tokenCanaries are the tokens in kubeconfigs that do not work.
var tokenCanaries = map[string]string{
	"wrong-token": "canary-token-that-is-wrong-51c2", "unreachable": "canary-token-for-nobody-88ab", "repeating": "canary-token-repeated-0f7e",
}

// canaries returns the values that must not occur in any log, event, metric or object, except in
// their own Secret.
func canaries(ctx context.Context) []string {
	GinkgoHelper()
	all := []string{secretCanary}
	for _, token := range tokenCanaries {
		all = append(all, token)
	}
	for _, name := range []string{one, two} {
		secret := must[corev1.Secret](ctx, x.Host, v1alpha1.DefaultNamespace, harness.SecretName(name))
		config, err := clientcmd.Load(secret.Data[v1alpha1.KubeconfigKey])
		Expect(err).NotTo(HaveOccurred())
		for _, user := range config.AuthInfos {
			Expect(user.Token).NotTo(BeEmpty())
			all = append(all, user.Token)
		}
	}
	for _, c := range slices.Clone(all) {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(c)))
	}
	return all
}

// objects returns all objects of a cluster except Secrets, as one JSON text each.
func objects(ctx context.Context, c *harness.Cluster, each func(kind, name, text string)) {
	GinkgoHelper()
	kinds, err := discovery.ServerPreferredResources(c.Client().Discovery())
	Expect(err).NotTo(HaveOccurred())
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range group.APIResources {
			if kind.Name == "secrets" || !slices.Contains(kind.Verbs, "list") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(kind.Kind + "List"))
			Expect(c.API.List(ctx, list)).To(Succeed(), kind.Name)
			for i := range list.Items {
				text, err := json.Marshal(list.Items[i].Object)
				Expect(err).NotTo(HaveOccurred())
				each(kind.Name, list.Items[i].GetNamespace()+"/"+list.Items[i].GetName(), string(text))
			}
		}
	}
}

// sing searches all logs, events, metrics and objects for canaries.
func sing(ctx context.Context) {
	GinkgoHelper()
	all := canaries(ctx)
	silent := func(where, text string) {
		GinkgoHelper()
		for _, canary := range all {
			Expect(strings.Contains(text, canary)).To(BeFalse(), "the canary %q must not be in %s", canary, where)
		}
	}
	log, err := os.ReadFile(x.Manager.LogPath())
	Expect(err).NotTo(HaveOccurred())
	Expect(log).NotTo(BeEmpty())
	silent("the manager's log", string(log))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, x.Manager.MetricsURL(), http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(response.Body.Close()).To(Succeed()) }()
	metrics, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(metrics)).To(ContainSubstring("xylem_"))
	silent("the metrics", string(metrics))
	for _, c := range x.Clusters() {
		seen := 0
		objects(ctx, c, func(kind, name, text string) {
			seen++
			silent(fmt.Sprintf("%s %s in %s", kind, name, c.Name()), text)
		})
		Expect(seen).To(BeNumerically(">", 50))
	}
}

var _ = Describe("A reader of logs, events, metrics and objects tries to get", func() {
	It("the members' tokens and the tenants' Secrets, in normal operation and on errors", func(ctx SpecContext) {
		server := serving(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Warning", `299 - "`+r.Header.Get("Authorization")+`"`)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"headers: %s"}`, r.Header.Get("Authorization"))
		})
		works := must[corev1.Secret](ctx, x.Host, v1alpha1.DefaultNamespace, harness.SecretName(two)).Data[v1alpha1.KubeconfigKey]
		config, err := clientcmd.Load(works)
		Expect(err).NotTo(HaveOccurred())
		for _, user := range config.AuthInfos {
			user.Token = tokenCanaries["wrong-token"]
		}
		wrong, err := clientcmd.Write(*config)
		Expect(err).NotTo(HaveOccurred())

		registered(ctx, "wrong-token", wrong)
		registered(ctx, "unreachable", kubeconfigOf("https://127.0.0.1:1", "", "token: "+tokenCanaries["unreachable"]))
		registered(ctx, "repeating", kubeconfigOf(server.URL, certified(server), "token: "+tokenCanaries["repeating"]))
		says(ctx, "wrong-token", v1alpha1.ReasonUnauthorized)
		says(ctx, "unreachable", v1alpha1.ReasonUnreachable)
		says(ctx, "repeating", v1alpha1.ReasonUnreachable, "headers: ", "****")
		By("changing the Secret of a running Pod, and of a rejected one")
		Expect(patched(ctx, victim.api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "password"}},
			`{"metadata":{"labels":{"changed":"yes"}}}`)).To(Succeed())
		barrier(ctx)
		sing(ctx)
	}, SpecTimeout(attackTime))
})
