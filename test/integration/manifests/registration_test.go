package manifests_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// registration returns a registration as a user would write it, with the given YAML in the spec.
func registration(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	object := map[string]any{}
	Expect(yaml.Unmarshal([]byte(spec), &object)).To(Succeed())
	if _, given := object["kubeconfigSecretRef"]; !given {
		object["kubeconfigSecretRef"] = map[string]any{"name": "some-kubeconfig"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterRegistration"))
	u.SetName(name)
	return u
}

func labels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d: x, ", i)
	}
	return "{node: {labels: {" + strings.TrimSuffix(b.String(), ", ") + "}}}"
}

var _ = Describe("A ClusterRegistration", func() {
	DescribeTable("is accepted", func(ctx SpecContext, name, spec string) {
		Expect(admin.Create(ctx, registration(name, spec), client.DryRunAll)).To(Succeed())
	},
		Entry("with only a Secret", "a", `{}`),
		Entry("with a name of 56 characters", strings.Repeat("a", 56), `{}`),
		Entry("with dots in the name", "eu.west.one", `{}`),
		Entry("with all fields", "a", `
kubeconfigSecretRef: {name: a.kubeconfig}
node:
  name: rack-7
  labels: {example.com/rack: "7", topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1}
  taints: [{key: example.com/far, value: "yes", effect: NoSchedule}, {key: example.com/far, effect: NoExecute}]
  capacity: {cpu: "100", memory: 400Gi, example.com/gpu: 4}
  podCIDRs: [10.8.0.0/16, "fd00:8::/56"]
storage:
  classes: [{host: virtual-disk-ssd, member: gp3}, {host: other, member: gp3}]
  reflect: {enabled: true, selector: {matchLabels: {tier: fast}}}
apiServer: {url: "https://10.0.0.1:6443", caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t}
deregistration: Drain`),
		Entry("with an API server at an IPv6 address", "a", `{apiServer: {url: "https://[fd00::1]:6443/"}}`),
		Entry("with a mapping of a class whose name begins with the prefix", "a", `{storage: {prefix: disk-, classes: [{host: disk-ssd, member: gp3}]}}`),
		Entry("with a mapping that has the same result as the prefix", "a", `{storage: {classes: [{host: virtual-disk-ssd, member: ssd}]}}`),
		Entry("with several host classes mapped to one member class", "a", `{storage: {classes: [{host: a, member: c}, {host: b, member: c}]}}`),
		Entry("with mappings that swap two classes", "a", `{storage: {classes: [{host: a, member: b}, {host: b, member: a}]}}`),
		Entry("without a prefix", "a", `{storage: {prefix: ""}}`),
		Entry("with a prefix that ends with a dot", "a", `{storage: {prefix: disks.example.}}`),
		Entry("with a prefix of 252 characters", "a", `{storage: {prefix: `+strings.Repeat("a", 252)+`}}`),
		Entry("with reflection of selected classes", "a", `{storage: {reflect: {enabled: true, max: 1, selector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: c, operator: DoesNotExist}]}}}}`),
		Entry("with reflection of 256 classes", "a", `{storage: {reflect: {enabled: true, max: 256}}}`),
		Entry("without any taint", "a", `{node: {taints: []}}`),
		Entry("with null taints, for which the default applies", "a", `{node: {taints: null}}`),
		Entry("with labels that only resemble those of Kubernetes and Xylem", "a", `{node: {labels: {mykubernetes.io/a: b, xylem.example/a: b}}}`),
		Entry("with 64 labels", "a", labels(64)),
		Entry("with rules for namespaces", "a", `{namespaces: {allow: ["team-*"], deny: [], matchLabels: {team: payments, "example.com/tier": "", a: b_c.D-1}}}`),
		Entry("with null denied namespaces, for which the default applies", "a", `{namespaces: {deny: null}}`),
	)

	DescribeTable("is rejected", func(ctx SpecContext, name, spec, reason string) {
		err := admin.Create(ctx, registration(name, spec), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring(reason)))
	},
		Entry("with a name of 57 characters", strings.Repeat("a", 57), `{}`, "no more than 56 characters"),
		Entry("with an invalid name", "A_b", `{}`, "lowercase RFC 1123"),
		Entry("without the Secret's name", "a", `{kubeconfigSecretRef: {}}`, "spec.kubeconfigSecretRef.name: Required"),
		Entry("with an empty Secret name", "a", `{kubeconfigSecretRef: {name: ""}}`, "at least 1 char"),
		Entry("with a path as the Secret name", "a", `{kubeconfigSecretRef: {name: ../x}}`, "should match"),
		Entry("with an empty node name", "a", `{node: {name: ""}}`, "should match"),
		Entry("with an invalid node name", "a", `{node: {name: Rack_7}}`, "should match"),
		Entry("with a node name of 64 characters", "a", `{node: {name: `+strings.Repeat("a", 64)+`}}`, "may not be more than 63"),
		Entry("with one of Xylem's labels", "a", `{node: {labels: {xylem.io/cluster: other}}}`, "reserved for Xylem"),
		Entry("with a label of Kubernetes", "a", `{node: {labels: {kubernetes.io/hostname: other}}}`, "reserved for Kubernetes"),
		Entry("with a label of a Kubernetes subdomain", "a", `{node: {labels: {node-role.kubernetes.io/control-plane: ""}}}`, "reserved for Kubernetes"),
		Entry("with a label of k8s.io", "a", `{node: {labels: {x.k8s.io/a: b}}}`, "reserved for Kubernetes"),
		Entry("with an invalid label key", "a", `{node: {labels: {"a b": c}}}`, "a label key must have the form"),
		Entry("with a label value of 64 characters", "a", `{node: {labels: {a: `+strings.Repeat("b", 64)+`}}}`, "no more than 63 characters"),
		Entry("with 65 labels", "a", labels(65), "must have at most 64 items"),
		Entry("with an invalid key of a namespace label", "a", `{namespaces: {matchLabels: {"a b": c}}}`, "a label key must have the form"),
		Entry("with a namespace label with a long value", "a", `{namespaces: {matchLabels: {a: `+strings.Repeat("b", 64)+`}}}`, "no more than 63 characters"),
		Entry("with 17 namespace labels", "a", strings.Replace(labels(17), "node: {labels", "namespaces: {matchLabels", 1), "must have at most 16 items"),
		Entry("with a taint of Kubernetes", "a", `{node: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}}`, "set by Kubernetes"),
		Entry("with a taint without effect", "a", `{node: {taints: [{key: a}]}}`, "effect: Required"),
		Entry("with a taint with an unknown effect", "a", `{node: {taints: [{key: a, effect: Never}]}}`, "Unsupported value"),
		Entry("with the same taint twice", "a", `{node: {taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}}`, "must not have the same key and effect"),
		Entry("with an invalid taint key", "a", `{node: {taints: [{key: "a b", effect: NoSchedule}]}}`, "a taint key must have the form"),
		Entry("with an invalid taint value", "a", `{node: {taints: [{key: a, value: "b c", effect: NoSchedule}]}}`, "a taint value must have no more than 63"),
		Entry("with an invalid capacity", "a", `{node: {capacity: {cpu: many}}}`, "capacity"),
		Entry("with a negative capacity", "a", `{node: {capacity: {cpu: "-1"}}}`, "not be negative"),
		Entry("with an invalid CIDR", "a", `{node: {podCIDRs: [10.8.0.0]}}`, "must be CIDRs"),
		Entry("with a CIDR with bits outside its mask", "a", `{node: {podCIDRs: [10.8.0.300/16]}}`, "must be CIDRs"),
		Entry("with \"all\" and a CIDR as the Pod CIDRs", "a", `{node: {podCIDRs: [all, 10.8.0.0/16]}}`, "must have no other entry"),
		Entry("with the same CIDR twice", "a", `{node: {podCIDRs: [10.8.0.0/16, 10.8.0.0/16]}}`, "Duplicate value"),
		Entry("with an API server over HTTP", "a", `{apiServer: {url: "http://10.0.0.1"}}`, "https://<host>[:<port>]"),
		Entry("with an API server without a scheme", "a", `{apiServer: {url: "10.0.0.1:6443"}}`, "https://<host>[:<port>]"),
		Entry("with an API server below a path", "a", `{apiServer: {url: "https://10.0.0.1/clusters/a"}}`, "https://<host>[:<port>]"),
		Entry("with credentials in the API server's address", "a", `{apiServer: {url: "https://a:b@10.0.0.1"}}`, "https://<host>[:<port>]"),
		Entry("with an API server's CA that is not in PEM form", "a", `{apiServer: {url: "https://10.0.0.1", caBundle: YWJj}}`, "PEM form"),
		Entry("with a class mapped twice", "a", `{storage: {classes: [{host: a, member: b}, {host: a, member: c}]}}`, "Duplicate value"),
		Entry("with a mapping to the empty name", "a", `{storage: {classes: [{host: a, member: ""}]}}`, "at least 1 char"),
		Entry("with a mapping from an invalid class name", "a", `{storage: {classes: [{host: "a/b", member: c}]}}`, "should match"),
		Entry("with a mapping to an invalid class name", "a", `{storage: {classes: [{host: a, member: "B c"}]}}`, "should match"),
		Entry("with an invalid prefix", "a", `{storage: {prefix: -disk}}`, "should match"),
		Entry("with a prefix of two dots", "a", `{storage: {prefix: a..}}`, "should match"),
		Entry("with a prefix with a slash", "a", `{storage: {prefix: a/}}`, "should match"),
		Entry("with a prefix of 253 characters", "a", `{storage: {prefix: `+strings.Repeat("a", 253)+`}}`, "may not be more than 252"),
		Entry("with reflection of zero classes", "a", `{storage: {reflect: {enabled: true, max: 0}}}`, "greater than or equal to 1"),
		Entry("with reflection of 257 classes", "a", `{storage: {reflect: {enabled: true, max: 257}}}`, "less than or equal to 256"),
		Entry("with a selector with an unknown operator", "a", `{storage: {reflect: {selector: {matchExpressions: [{key: a, operator: Is, values: [b]}]}}}}`, "In and NotIn require values"),
		Entry("with a selector without values", "a", `{storage: {reflect: {selector: {matchExpressions: [{key: a, operator: In}]}}}}`, "In and NotIn require values"),
		Entry("with a selector that has a value although its operator takes none", "a", `{storage: {reflect: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}}`, "In and NotIn require values"),
		Entry("with an unknown deregistration policy", "a", `{deregistration: Destroy}`, "Unsupported value"),
	)

	It("gets defaults", func(ctx SpecContext) {
		object := registration("defaults", `{}`)
		Expect(admin.Create(ctx, object, client.DryRunAll)).To(Succeed())
		Expect(object.Object["spec"]).To(Equal(map[string]any{
			"kubeconfigSecretRef": map[string]any{"name": "some-kubeconfig"},
			"deregistration":      "Retain",
			"namespaces":          map[string]any{},
			"node":                map[string]any{"whenAway": "Keep"},
			"pods":                map[string]any{},
			"services":            map[string]any{"reflect": "All"},
			"storage":             map[string]any{"prefix": "virtual-disk-", "reflect": map[string]any{"enabled": false, "max": int64(32)}},
		}))
	})

	It("distinguishes an empty list of taints from the default", func(ctx SpecContext) {
		for spec, want := range map[string]*[]v1alpha1.NodeTaint{
			`{}`:                     nil,
			`{node: {taints: null}}`: nil,
			`{node: {taints: []}}`:   {},
			`{node: {taints: [{key: a, effect: NoExecute}]}}`: {{Key: "a", Effect: corev1.TaintEffectNoExecute}},
		} {
			name := unique("taints")
			Expect(admin.Create(ctx, registration(name, spec))).To(Succeed())
			var got v1alpha1.ClusterRegistration
			Expect(admin.Get(ctx, client.ObjectKey{Name: name}, &got)).To(Succeed())
			Expect(got.Spec.Node.Taints).To(Equal(want), spec)
			Expect(admin.Delete(ctx, &got)).To(Succeed())
		}
	}, SpecTimeout(settle))

	DescribeTable("cannot change the name of its node", func(ctx SpecContext, before, after string, allowed bool) {
		name := unique("renamed")
		Expect(admin.Create(ctx, registration(name, before))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Delete(ctx, registration(name, before))).To(Succeed())
		}, NodeTimeout(settle))
		err := admin.Update(ctx, updateOf(ctx, name, after))
		if allowed {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring("name cannot be changed")))
	},
		Entry("changed", SpecTimeout(settle), `{node: {name: one}}`, `{node: {name: two}}`, false),
		Entry("added", SpecTimeout(settle), `{}`, `{node: {name: two}}`, false),
		Entry("removed", SpecTimeout(settle), `{node: {name: one}}`, `{}`, false),
		Entry("unchanged, with other changes", SpecTimeout(settle), `{node: {name: one}}`, `{node: {name: one, labels: {a: b}}, deregistration: Drain}`, true),
		Entry("still the default", SpecTimeout(settle), `{}`, `{deregistration: Drain}`, true),
	)

	It("has a status subresource, and printer columns that show its state", func(ctx SpecContext) {
		name := unique("status")
		Expect(admin.Create(ctx, registration(name, `{}`))).To(Succeed())
		var r v1alpha1.ClusterRegistration
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, &r)).To(Succeed())
		r.Status = v1alpha1.ClusterRegistrationStatus{
			ClusterID: "3f0c", KubernetesVersion: "v1.36.3", NodeName: r.NodeName(),
			Volumes: v1alpha1.VolumeCounts{Bound: 7},
		}
		for kind, status := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionConnected: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionFalse,
		} {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
				Type: kind, Status: status, Reason: "Because", LastTransitionTime: metav1.Now(),
			})
		}
		Expect(admin.Status().Update(ctx, &r)).To(Succeed())

		out := kubectl(ctx, fleet.Host, "get", "cr", name, "-o", "wide")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		Expect(lines).To(HaveLen(2))
		Expect(strings.Fields(lines[0])).To(Equal(strings.Fields("NAME CONNECTED READY REASON NODE VERSION VOLUMES MESSAGE AGE")))
		Expect(strings.Fields(lines[1])[:7]).To(Equal(
			[]string{name, "True", "False", "Because", "kosmos-" + name, "v1.36.3", "7"}))
		Expect(admin.Delete(ctx, &r)).To(Succeed())
	}, SpecTimeout(settle))
})

// updateOf returns the current registration with another spec.
func updateOf(ctx SpecContext, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	live := registration(name, `{}`)
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, live)).To(Succeed())
	next := registration(name, spec)
	next.SetResourceVersion(live.GetResourceVersion())
	return next
}
