package charts_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/internal/mirror"
)

// full sets all values, so that every line of the templates is used.
const full = `
image: {repository: registry.example:5000/team/xylem, digest: "sha256:` + digest + `", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
replicas: 3
members: {allowInsecure: true, allowLoopback: true, answerLimit: 64Mi, cacheLimit: 1Gi}
fence: {duration: 1m30s, probeInterval: 15s, epochInterval: 1h}
nodeGrace: 50s
orphanInterval: 1h
recheckInterval: 1m
claimsInProgress: 600
stuckAfter: 5m
silentAfter: 10m
nominatedNodeName: never
secrets: {access: Node}
log: {level: 5, encoder: console, timeEncoding: iso8601}
extraArgs: [--zap-devel=true]
extraEnv: [{name: GOMEMLIMIT, value: 900MiB}, {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]
extraVolumes: [{name: certificates, configMap: {name: certificates, optional: true}}]
extraVolumeMounts: [{name: certificates, mountPath: /etc/ssl/certs, readOnly: true}]
resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}
priorityClassName: ""
terminationGracePeriodSeconds: 60
nodeSelector: {pool: system}
tolerations: [{key: system, operator: Exists, effect: NoSchedule}]
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: zone, operator: In, values: [a]}]
      - matchFields: [{key: metadata.name, operator: In, values: [one]}]
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: fast, operator: Exists}]}}]
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app.kubernetes.io/name: xylem}}}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
podDisruptionBudget: {enabled: true, maxUnavailable: 50%}
podAnnotations: {a.example/b: c}
podLabels: {team: storage}
podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: 2000}
hostAliases: [{ip: 10.1.2.3, hostnames: [cluster38.example]}]
dnsPolicy: None
dnsConfig: {nameservers: [10.0.0.10], searches: [example], options: [{name: ndots, value: "1"}]}
commonLabels: {owner: platform}
serviceAccount: {name: its-own, annotations: {a.example/role: b}}
rbac: {secretNamespaces: [default, kube-public]}
metrics:
  port: 9443
  readers: [{namespace: monitoring, name: prometheus}]
  service: {annotations: {a.example/b: c}}
  serviceMonitor: {enabled: true, labels: {release: p}, annotations: {a: b}, interval: 1m, scrapeTimeout: 20s,
    relabelings: [{action: labeldrop, regex: pod}], metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: go_.*}]}
  prometheusRule: {enabled: true, labels: {release: p}, alertLabels: {team: storage, severity: page}, disabled: [XylemQueueBacklog]}
  dashboard: {enabled: true, annotations: {folder: Storage}}
healthPort: 9081
pprofPort: 6060
nodeAPI: {port: 10251, sessions: 500, memberSessions: 100, idleTimeout: 1h, certificate: {secretName: node-api}}
networkPolicy: {metricsFrom: [{podSelector: {}}], extraEgress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}
storageClasses:
- {name: fast, parameters: {xylem.io/member-class: gp3}, reclaimPolicy: Retain, mountOptions: [noatime], annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
- {name: promised, volumeBindingMode: Immediate, allowVolumeExpansion: false, labels: {tier: gold}, parameters: {xylem.io/provisioning: promise},
  allowedTopologies: [{matchLabelExpressions: [{key: xylem.io/cluster, values: [east]}]}]}
hooks: {podAnnotations: {sidecar.istio.io/inject: "false"}}
test: {timeout: 1m}
uninstall: {timeoutSeconds: 90}
`

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// least disables everything that can be disabled.
const least = `
rbac: {create: false}
crds: {enabled: false}
metrics: {enabled: false}
podDisruptionBudget: {enabled: false}
networkPolicy: {enabled: false}
uninstall: {guard: false}
`

// objects parses rendered objects and returns them by kind, namespace and name.
func objects(stream string) map[string]*unstructured.Unstructured {
	GinkgoHelper()
	out := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(stream, "\n---\n") {
		u := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &u.Object)).To(Succeed(), document)
		if len(u.Object) == 0 {
			continue
		}
		name := strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, " ")
		Expect(out).NotTo(HaveKey(name), "rendered twice")
		out[name] = u
	}
	return out
}

// installed returns all objects except hooks.
func installed(all map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(_ string, u *unstructured.Unstructured) bool { return u.GetAnnotations()["helm.sh/hook"] != "" })
	return out
}

// without returns all objects except those of a kind.
func without(all map[string]*unstructured.Unstructured, kind string) map[string]*unstructured.Unstructured {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(_ string, u *unstructured.Unstructured) bool { return u.GetKind() == kind })
	return out
}

// podsOf returns the Pods that controllers would create for the rendered objects. The tests need
// them because the API server enforces Pod Security only on Pods.
func podsOf(all map[string]*unstructured.Unstructured) []*unstructured.Unstructured {
	GinkgoHelper()
	var out []*unstructured.Unstructured
	for _, u := range all {
		fields := []string{"spec", "template", "spec"}
		if u.GetKind() == "Pod" {
			fields = []string{"spec"}
		}
		spec, ok, err := unstructured.NestedMap(u.Object, fields...)
		Expect(err).NotTo(HaveOccurred())
		if !ok || !slices.Contains([]string{"Pod", "Job", "Deployment"}, u.GetKind()) {
			continue
		}
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
		pod.SetNamespace(u.GetNamespace())
		pod.SetName(strings.ToLower(u.GetKind()) + "-" + u.GetName())
		// Admission requires an existing service account, and a dry run does not create the chart's
		// own account.
		Expect(unstructured.SetNestedField(pod.Object, "default", "spec", "serviceAccountName")).To(Succeed())
		out = append(out, pod)
	}
	return out
}

var _ = Describe("What the charts render", func() {
	DescribeTable("is accepted by the API server, with strict validation and without warnings", func(ctx SpecContext, chart, values string, pods int) {
		stream, err := render(ctx, chart, restricted, values)
		Expect(err).NotTo(HaveOccurred())
		all := objects(stream)
		// The API server rejects a Pod whose service account does not exist, and a dry run does not
		// create one. So podsOf switches the Pods to the default account, and they are checked
		// separately below.
		kubectl(ctx, marshal(without(all, "Pod")), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		Expect(podsOf(all)).To(HaveLen(pods))
		for _, pod := range podsOf(all) {
			content, err := yaml.Marshal(pod.Object)
			Expect(err).NotTo(HaveOccurred())
			kubectl(ctx, string(content), "create", "--dry-run=server", "--validate=strict", "-f", "-")
		}
	},
		Entry("by default", SpecTimeout(settle), "xylem", `{}`, 3),
		Entry("with all values set", SpecTimeout(settle), "xylem", full, 3),
		Entry("with everything disabled", SpecTimeout(settle), "xylem", least, 2),
		Entry("one replica that a drain cannot evict", SpecTimeout(settle), "xylem", `{replicas: 1, podDisruptionBudget: {maxUnavailable: 0}}`, 3),
		Entry("the member's chart, by default", SpecTimeout(settle), "xylem-member", `{}`, 0),
		Entry("the member's chart, with all values set", SpecTimeout(settle), "xylem-member",
			`{namespace: {create: true}, serviceAccount: {name: its-own, annotations: {a: b}}, commonLabels: {owner: platform},
			shared: {drivers: [a.example.com], secrets: [storage/node], namespaces: [default]}}`, 0),
	)

	It("is checked against Pod Security: the API server rejects an unrestricted Pod", func(ctx SpecContext) {
		stream, err := render(ctx, "xylem", restricted, `{securityContext: {allowPrivilegeEscalation: true}}`)
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range podsOf(objects(stream)) {
			content, err := yaml.Marshal(pod.Object)
			Expect(err).NotTo(HaveOccurred())
			_, err = run(ctx, string(content), fleet.Kubectl(), "create", "--dry-run=server", "-f", "-")
			Expect(err).To(MatchError(ContainSubstring("violates PodSecurity")))
		}
	}, SpecTimeout(settle))

	It("never runs on a virtual node, regardless of the affinity", func(ctx SpecContext) {
		for _, values := range []string{`{}`, full, `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}`} {
			stream, err := render(ctx, "xylem", restricted, values)
			Expect(err).NotTo(HaveOccurred())
			for _, pod := range podsOf(objects(stream)) {
				terms, _, err := unstructured.NestedSlice(pod.Object, "spec", "affinity", "nodeAffinity",
					"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
				Expect(err).NotTo(HaveOccurred())
				Expect(terms).NotTo(BeEmpty())
				for _, term := range terms {
					Expect(term).To(HaveKeyWithValue("matchExpressions", ContainElement(
						map[string]any{"key": "xylem.io/virtual-node", "operator": "DoesNotExist"})), pod.GetName())
				}
			}
		}
	}, SpecTimeout(settle))

	It("lets the manager read Secrets and ConfigMaps only in the listed namespaces, or in all by default", func(ctx SpecContext) {
		reads := func(u *unstructured.Unstructured) bool {
			rules, _, err := unstructured.NestedSlice(u.Object, "rules")
			Expect(err).NotTo(HaveOccurred())
			return slices.ContainsFunc(rules, func(rule any) bool {
				fields, ok := rule.(map[string]any)
				Expect(ok).To(BeTrue())
				resources, _, err := unstructured.NestedStringSlice(fields, "resources")
				Expect(err).NotTo(HaveOccurred())
				verbs, _, err := unstructured.NestedStringSlice(fields, "verbs")
				Expect(err).NotTo(HaveOccurred())
				return slices.Contains(resources, "secrets") && slices.Contains(verbs, "get")
			})
		}
		for values, want := range map[string][]string{
			`{}`: {"ClusterRole  xylem-manager-role"},
			`{rbac: {secretNamespaces: [shop, bank]}}`:                    {"Role bank xylem-manager-secrets", "Role shop xylem-manager-secrets"},
			`{rbac: {create: false, secretNamespaces: [shop]}}`:           nil,
			`{secrets: {access: Node}}`:                                   nil,
			`{secrets: {access: Node}, rbac: {secretNamespaces: [shop]}}`: nil,
		} {
			stream, err := render(ctx, "xylem", restricted, values)
			Expect(err).NotTo(HaveOccurred())
			all := installed(objects(stream))
			var got []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if kind := all[name].GetKind(); (kind == "ClusterRole" || kind == "Role") && reads(all[name]) {
					got = append(got, name)
					if kind == "Role" {
						Expect(all).To(HaveKey("RoleBinding " + all[name].GetNamespace() + " " + all[name].GetName()))
					}
				}
			}
			Expect(got).To(Equal(want), values)
		}
	}, SpecTimeout(settle))

	It("blocks the manager's access to metadata services, and allows API servers in Cilium", func(ctx SpecContext) {
		stream, err := render(ctx, "xylem", restricted, `{}`)
		Expect(err).NotTo(HaveOccurred())
		policy := objects(stream)["NetworkPolicy "+restricted+" xylem-controller-manager"]
		Expect(policy).NotTo(BeNil())
		Expect(stream).NotTo(ContainSubstring("CiliumNetworkPolicy"))
		var spec struct {
			Egress []struct {
				To []struct {
					IPBlock struct {
						CIDR   netip.Prefix
						Except []netip.Prefix
					}
				}
			}
		}
		content, err := yaml.Marshal(policy.Object["spec"])
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(content, &spec)).To(Succeed())
		reached := func(address string) bool {
			ip := netip.MustParseAddr(address)
			for _, rule := range spec.Egress {
				for _, to := range rule.To {
					if to.IPBlock.CIDR.Contains(ip) && !slices.ContainsFunc(to.IPBlock.Except, func(p netip.Prefix) bool { return p.Contains(ip) }) {
						return true
					}
				}
			}
			return false
		}
		for _, address := range []string{
			"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "fd00:ec2::23", "fe80::a9fe:a9fe", "fd20:ce::254",
			"100.100.100.200", "192.0.0.192", "168.63.129.16",
		} {
			Expect(reached(address)).To(BeFalse(), address)
		}
		for _, service := range mirror.MetadataServices {
			Expect(reached(service.Addr().String())).To(BeFalse(), service.String())
		}
		for _, address := range []string{"10.96.0.1", "203.0.113.7", "2001:db8::1", "fd00:10:96::1"} {
			Expect(reached(address)).To(BeTrue(), address)
		}

		stream, err = run(ctx, "", helmPath, "template", "xylem", path("charts", "xylem"), "--namespace", restricted, "--api-versions", "cilium.io/v2")
		Expect(err).NotTo(HaveOccurred())
		Expect(objects(stream)).To(HaveKey("CiliumNetworkPolicy " + restricted + " xylem-controller-manager"))
	}, SpecTimeout(settle))

	DescribeTable("contains the policies that are enabled and that the host supports", func(ctx SpecContext, values, version string, rejects, steers, keeps bool) {
		stream, err := run(ctx, values, helmPath, "template", "xylem", path("charts", "xylem"), "--namespace", restricted, "--kube-version", version, "--values", "-")
		Expect(err).NotTo(HaveOccurred())
		got := objects(stream)
		for policy, wanted := range map[string]bool{
			"ValidatingAdmissionPolicy  xylem-namespaces": rejects, "MutatingAdmissionPolicy  xylem-namespaces": steers, "MutatingAdmissionPolicy  xylem-reserved-keys": keeps,
		} {
			for _, key := range []string{policy, strings.Replace(policy, "Policy ", "PolicyBinding ", 1)} {
				if wanted {
					Expect(got).To(HaveKey(key))
				} else {
					Expect(got).NotTo(HaveKey(key))
				}
			}
		}
	},
		Entry("by default", SpecTimeout(settle), `{}`, "1.36.3", true, false, true),
		Entry("both", SpecTimeout(settle), `{namespaces: {steer: true}}`, "1.36.3", true, true, true),
		Entry("both, on a host that is too old", SpecTimeout(settle), `{namespaces: {steer: true}}`, "1.35.9", true, false, false),
		Entry("both, on a host whose version has a suffix", SpecTimeout(settle), `{namespaces: {steer: true}}`, "1.36.0-eks-1", true, true, true),
		Entry("none", SpecTimeout(settle), `{namespaces: {reject: false}}`, "1.37.2", false, false, true),
	)

	It("uses the release's namespace and the account's name, including in policies and rules", func(ctx SpecContext) {
		for chart, values := range map[string]string{"xylem": full, "xylem-member": `{serviceAccount: {name: its-own}}`} {
			stream, err := render(ctx, chart, "elsewhere", values)
			Expect(err).NotTo(HaveOccurred())
			Expect(stream).NotTo(ContainSubstring("xylem-system"))
			Expect(stream).To(ContainSubstring("system:serviceaccount:elsewhere:its-own"))
		}
	}, SpecTimeout(settle))
})

var _ = Describe("The part shared of the member's chart", func() {
	rules := func(u *unstructured.Unstructured) []rbacv1.PolicyRule {
		GinkgoHelper()
		var role rbacv1.Role // a ClusterRole has the same rules
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role)).To(Succeed())
		return role.Rules
	}
	volumes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"create", "delete"}}
	drivers := rbacv1.PolicyRule{APIGroups: []string{"xylem.io"}, Resources: []string{"drivers"}, ResourceNames: []string{"a.example.com", "b.example.com"}, Verbs: []string{"share"}}
	secrets := rbacv1.PolicyRule{APIGroups: []string{"xylem.io"}, Resources: []string{"secrets"}, ResourceNames: []string{"storage/node"}, Verbs: []string{"use"}}

	// A rule without resourceNames would apply to all drivers or Secrets.
	DescribeTable("allows only the listed drivers and Secrets", func(ctx SpecContext, values string, want map[string][]rbacv1.PolicyRule) {
		stream, err := render(ctx, "xylem-member", restricted, values)
		Expect(err).NotTo(HaveOccurred())
		got := map[string][]rbacv1.PolicyRule{}
		all := objects(stream)
		for key, u := range all {
			if u.GetName() == "xylem-member-shared" && strings.HasSuffix(u.GetKind(), "Role") {
				got[key] = rules(u)
				Expect(all).To(HaveKey(strings.Replace(key, "Role ", "RoleBinding ", 1)))
			}
		}
		Expect(got).To(Equal(want))
	},
		Entry("none by default", SpecTimeout(settle), `{shared: {secrets: [storage/node], namespaces: [shop]}}`, map[string][]rbacv1.PolicyRule{}),
		Entry("drivers", SpecTimeout(settle), `{shared: {drivers: [a.example.com, b.example.com]}}`, map[string][]rbacv1.PolicyRule{
			"ClusterRole  xylem-member-shared": {volumes, drivers},
		}),
		Entry("drivers and Secrets", SpecTimeout(settle), `{shared: {drivers: [a.example.com, b.example.com], secrets: [storage/node]}}`, map[string][]rbacv1.PolicyRule{
			"ClusterRole  xylem-member-shared": {volumes, drivers, secrets},
		}),
		Entry("in some namespaces", SpecTimeout(settle), `{shared: {drivers: [a.example.com, b.example.com], secrets: [storage/node], namespaces: [shop, bank]}}`, map[string][]rbacv1.PolicyRule{
			"ClusterRole  xylem-member-shared": {volumes, secrets},
			"Role shop xylem-member-shared":    {drivers},
			"Role bank xylem-member-shared":    {drivers},
		}),
	)

	It("grants the same permissions as config/member/shared", func(ctx SpecContext) {
		stream, err := render(ctx, "xylem-member", restricted, `{shared: {drivers: [driver.example.com], secrets: [namespace/name]}}`)
		Expect(err).NotTo(HaveOccurred())
		built, err := run(ctx, "", fleet.Kubectl(), "kustomize", path("config", "member", "shared"))
		Expect(err).NotTo(HaveOccurred())
		const role = "ClusterRole  xylem-member-shared"
		want := rules(objects(built)[role])
		Expect(want).To(HaveLen(3))
		want[2].ResourceNames = []string{"namespace/name"} // the placeholder is not a valid name
		Expect(rules(objects(stream)[role])).To(Equal(want))
	}, SpecTimeout(settle))
})

var _ = Describe("The charts contain the same objects as config/", func() {
	DescribeTable("object by object", func(ctx SpecContext, chart string, kustomizations ...string) {
		stream, err := render(ctx, chart, restricted, `{namespace: {create: true}}`)
		Expect(err).NotTo(HaveOccurred())
		got := installed(objects(stream))
		want := map[string]*unstructured.Unstructured{}
		for _, kustomization := range kustomizations {
			built, err := run(ctx, "", fleet.Kubectl(), "kustomize", path("config", kustomization))
			Expect(err).NotTo(HaveOccurred())
			maps.Copy(want, objects(built))
		}
		Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))))
		for name, w := range want {
			g := got[name]
			forgetMetadata(g)
			forgetMetadata(w)
			if w.GetKind() == "Deployment" {
				Expect(forgetSettings(g)).To(ContainElements(forgetSettings(w)))
			}
			Expect(cmp.Diff(w.Object, g.Object)).To(BeEmpty(), name)
		}
	},
		Entry("in the host", SpecTimeout(settle), "xylem", "default", "keys"),
		Entry("in a member", SpecTimeout(settle), "xylem-member", "member"),
	)
})

// forgetMetadata removes labels and annotations that depend on the installer.
func forgetMetadata(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	for _, key := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "app.kubernetes.io/name"} {
		delete(labels, key)
	}
	if u.SetLabels(labels); len(labels) == 0 {
		u.SetLabels(nil)
	}
	annotations := u.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	if u.SetAnnotations(annotations); len(annotations) == 0 {
		u.SetAnnotations(nil)
	}
}

// forgetSettings removes the fields of a Deployment that the chart's values set, and returns the
// manager's arguments.
func forgetSettings(u *unstructured.Unstructured) any {
	GinkgoHelper()
	unstructured.RemoveNestedField(u.Object, "spec", "template", "spec", "dnsPolicy")
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	Expect(containers).To(HaveLen(1))
	manager, ok := containers[0].(map[string]any)
	Expect(ok).To(BeTrue())
	args := manager["args"]
	for _, key := range []string{"args", "image", "imagePullPolicy"} {
		delete(manager, key)
	}
	Expect(unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")).To(Succeed())
	return args
}

var _ = Describe("helm lint --strict", func() {
	DescribeTable("finds no problems", func(ctx context.Context, chart, values string) {
		_, err := run(ctx, values, helmPath, "lint", "--strict", "--values", "-", path("charts", chart))
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("by default", "xylem", `{}`),
		Entry("with all values set", "xylem", full),
		Entry("with everything disabled", "xylem", least),
		Entry("in the member's chart", "xylem-member", `{namespace: {create: true}}`),
	)
})
