package nodeapi_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// metricsPathKey is the annotation in which metrics-server finds a virtual node's metrics path.
const metricsPathKey = "metrics.k8s.io/resource-metrics-path"

// metricsAPI makes a member serve metrics.k8s.io, with a CRD instead of metrics-server.
func metricsAPI(ctx context.Context, member string) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "pods.metrics.k8s.io", "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"}},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "scope": "Namespaced",
			"names": map[string]any{"kind": "PodMetrics", "plural": "pods"},
			"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	Expect(x.Member(member).API.Create(ctx, crd)).To(Succeed())
	api := x.Member(member).API
	DeferCleanup(func(ctx context.Context) error { return api.Delete(ctx, crd) }, NodeTimeout(settle))
}

// reports sets the usage of a Pod in a member, as its metrics-server would.
func reports(ctx context.Context, member, namespace, name string, labels map[string]string, taken time.Time, cpu, memory string) {
	GinkgoHelper()
	usage := func(container string) any {
		return map[string]any{"name": container, "usage": map[string]any{"cpu": cpu, "memory": memory}}
	}
	content := map[string]any{
		"timestamp": taken.UTC().Format(time.RFC3339), "window": "15s", "containers": []any{usage("app"), usage("injected")},
	}
	Eventually(ctx, func() error { // repeat until the API server serves the CRD
		is := &unstructured.Unstructured{Object: content}
		is.SetGroupVersionKind(schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"})
		is.SetNamespace(namespace)
		is.SetName(name)
		is.SetLabels(labels)
		_ = x.Member(member).API.Delete(ctx, is.DeepCopy())
		return x.Member(member).API.Create(ctx, is)
	}).WithContext(ctx).Should(Succeed())
}

// used returns the endpoint's metrics by name and Pod.
func used(text string) map[string]map[string]*dto.Metric {
	GinkgoHelper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	all := map[string]map[string]*dto.Metric{}
	for name, family := range families {
		all[name] = map[string]*dto.Metric{}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			all[name][strings.Trim(labels["namespace"]+"/"+labels["pod"]+"/"+labels["container"], "/")] = m
		}
	}
	return all
}

var _ = Describe("resource metrics", Ordered, func() {
	var path string
	admin := func() *http.Client {
		return caller(func() ([]byte, error) {
			return x.Fleet.Host.UserKubeconfig(controlplane.Direct, "admin", "system:masters")
		})
	}

	BeforeAll(func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega) {
			var node corev1.Node
			g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: nodeOne}, &node)).To(Succeed())
			path = node.Annotations[metricsPathKey]
			g.Expect(path).To(ContainSubstring(nodeOne))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(settle))

	It("report which API or permission a member lacks", func(ctx SpecContext) {
		code, content := ask(ctx, admin(), path)
		Expect(code).To(Equal(http.StatusNotFound))
		Expect(content).To(And(ContainSubstring("no metrics API"), ContainSubstring(one), Not(ContainSubstring("\n"))))
		code, content = ask(ctx, admin(), strings.Replace(path, nodeOne, nodeTwo, 1))
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(content).To(And(ContainSubstring("--member-kubeconfig FILE --with-metrics"), Not(ContainSubstring("\n"))))
		code, content = ask(ctx, admin(), "/metrics/resource")
		Expect(code).To(Equal(http.StatusNotFound))
		Expect(content).To(ContainSubstring(metricsPathKey))
	}, SpecTimeout(settle))

	It("are served only to clients that a kubelet would also serve", func(ctx SpecContext) {
		host := func(user string) *http.Client {
			return caller(func() ([]byte, error) { return x.Fleet.Host.UserKubeconfig(controlplane.Direct, user) })
		}
		code, _ := ask(ctx, caller(nil), path)
		Expect(code).To(Equal(http.StatusUnauthorized))
		code, content := ask(ctx, host("nobody"), path)
		Expect(code).To(Equal(http.StatusForbidden))
		code, none := ask(ctx, host("nobody"), "/metrics/resource/none")
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(none).To(Equal(content))
		By("granting the permission of metrics-server")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "scraper"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes/metrics"}, Verbs: []string{"get"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "scraper"}},
		}
		Expect(x.Host.API.Create(ctx, role)).To(Succeed())
		Expect(x.Host.API.Create(ctx, binding)).To(Succeed())
		Eventually(ctx, func() int {
			code, _ := ask(ctx, host("scraper"), path)
			return code
		}).WithContext(ctx).Should(Equal(http.StatusNotFound), "the member has no metrics API")
		code, _ = ask(ctx, host("scraper"), logPath)
		Expect(code).To(Equal(http.StatusForbidden))
	}, SpecTimeout(settle))

	It("contain only Pods that Xylem pushed, and let metrics-server compute the same rates as in the member (I8)", suite.Core, func(ctx SpecContext) {
		host, err := x.Fleet.Host.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		ours := map[string]string{v1alpha1.LabelHost: host}
		metricsAPI(ctx, one)
		swapped := run(ctx, "measured", nodeOne)
		gone := run(ctx, "other-leaf", nodeOne)
		first := time.Now().Truncate(time.Second)
		report := func(at time.Time, cpu string) {
			reports(ctx, one, "shop", "measured", ours, at, cpu, "64Mi")
			reports(ctx, one, "shop", "other-leaf", ours, at, cpu, "64Mi")
			By("creating foreign Pods: without the host's label, without a root, and in a namespace of the member")
			reports(ctx, one, "shop", "unlabelled", nil, at, "3", "1Gi")
			reports(ctx, one, "shop", "invented", ours, at, "3", "1Gi")
			reports(ctx, one, "kube-system", "dns", ours, at, "3", "1Gi")
		}
		report(first, "250m")
		By("recording a different UID on a Pod, as if its leaf had been replaced")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"xylem.io/leaf-uid":"00000000-0000-0000-0000-000000000000"}}}`))
		Expect(asManager().Status().Patch(ctx, gone, patch)).To(Succeed())
		var before map[string]map[string]*dto.Metric
		Eventually(ctx, func(g Gomega) {
			code, content := ask(ctx, admin(), path)
			g.Expect(code).To(Equal(http.StatusOK))
			before = used(content)
			g.Expect(before["container_memory_working_set_bytes"]).To(HaveKey("shop/measured/app"))
			g.Expect(before["container_memory_working_set_bytes"]).NotTo(HaveKey("shop/other-leaf/app"))
		}).WithContext(ctx).Should(Succeed())
		Expect(before["container_cpu_usage_seconds_total"]).To(HaveLen(1))
		report(first.Add(15*time.Second), "250m")
		code, content := ask(ctx, admin(), path)
		Expect(code).To(Equal(http.StatusOK))
		after := used(content)
		const name = "shop/measured/app"
		for metric, key := range map[string]string{"container_cpu_usage_seconds_total": name, "node_cpu_usage_seconds_total": ""} {
			last, prev := after[metric][key], before[metric][key]
			Expect(last.GetTimestampMs() - prev.GetTimestampMs()).To(BeEquivalentTo(15_000))
			Expect((last.GetCounter().GetValue() - prev.GetCounter().GetValue()) / 15).To(BeNumerically("~", 0.25, 1e-6))
		}
		Expect(after["container_memory_working_set_bytes"][name].GetGauge().GetValue()).To(BeEquivalentTo(64 << 20))
		Expect(after["node_memory_working_set_bytes"][""].GetGauge().GetValue()).To(BeEquivalentTo(64 << 20))
		Expect(swapped.Spec.NodeName).To(Equal(nodeOne))
	}, SpecTimeout(3*settle))
})
