package manifests_test

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
)

// The namespaces and the members of these stories.
const (
	payments, search = "ns-payments", "ns-search"
	picky, plain     = "picky", "plain"
)

// virtualTaint is the default taint of virtual nodes.
var virtualTaint = corev1.Toleration{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}

// admitting creates namespaces and two registrations: "picky" has rules for namespaces, and "plain"
// has none.
func admitting(ctx context.Context, rules v1alpha1.NamespacesSpec, change ...func(*v1alpha1.ClusterRegistration)) {
	GinkgoHelper()
	for name, labels := range map[string]map[string]string{payments: {"team": "payments", "tier": "gold"}, search: {"team": "search"}} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, ns))).To(Succeed())
	}
	for name, spec := range map[string]v1alpha1.NamespacesSpec{picky: rules, plain: {}} {
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cr.Spec.KubeconfigSecretRef.Name = "none"
		cr.Spec.Namespaces = spec
		for _, c := range change {
			c(cr)
		}
		Expect(admin.Create(ctx, cr)).To(Succeed())
		DeferCleanup(unregister, cr, NodeTimeout(settle))
	}
	publishRules(ctx)
}

func unregister(ctx SpecContext, cr *v1alpha1.ClusterRegistration) {
	Expect(admin.Delete(ctx, cr)).To(Succeed())
	publishRules(ctx)
}

// publishRules does what csi_driver does after a change of a registration.
func publishRules(ctx context.Context) {
	GinkgoHelper()
	var all v1alpha1.ClusterRegistrationList
	Expect(admin.List(ctx, &all)).To(Succeed())
	publishRulesOf(ctx, all.Items)
}

// publishRulesOf publishes the rules of these registrations, which need not exist.
func publishRulesOf(ctx context.Context, all []v1alpha1.ClusterRegistration) {
	GinkgoHelper()
	rules, complete := placement.PublishedNamespaceRules(all)
	Expect(complete).To(BeTrue())
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProvisionerName}}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(driver), driver)).To(Succeed())
	before := driver.DeepCopy()
	metav1.SetMetaDataAnnotation(&driver.ObjectMeta, v1alpha1.AnnotationNamespaceRules, rules)
	Expect(as(managerAccount).Patch(ctx, driver, client.MergeFrom(before))).To(Succeed())
}

// registrations returns registrations that allow different namespaces: none of them payments or search.
func registrations(number int) []v1alpha1.ClusterRegistration {
	all := make([]v1alpha1.ClusterRegistration, number)
	for i := range all {
		all[i].Name = fmt.Sprintf("member-%03d", i)
		all[i].Spec.Namespaces = v1alpha1.NamespacesSpec{Allow: []string{all[i].Name + "-*"}, MatchLabels: map[string]string{"member": all[i].Name}}
	}
	return all
}

// bind binds a new Pod in a namespace to a node, and returns the API server's error.
func bind(ctx context.Context, namespace, node string) error {
	GinkgoHelper()
	p := pod(namespace)
	p.Name = unique("bound")
	p.Spec.SchedulerName = "nobody"
	Expect(admin.Create(ctx, p)).To(Succeed())
	defer func() { Expect(admin.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed()) }()
	return admin.SubResource("binding").Create(ctx, p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
}

var _ = Describe("The policy on bindings", Ordered, func() {
	matchLabels := v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "payments", "tier": "gold"}}

	DescribeTable("rejects a node if its member does not admit the Pod's namespace", func(ctx SpecContext, rules v1alpha1.NamespacesSpec, says string) {
		admitting(ctx, rules)
		Eventually(ctx, func() error { return bind(ctx, search, "kosmos-"+picky) }).Should(MatchError(SatisfyAll(
			ContainSubstring(`member "picky" does not admit namespace "ns-search"`), ContainSubstring(says))))
		Expect(bind(ctx, payments, "kosmos-"+picky)).To(Succeed())
		Expect(bind(ctx, search, "kosmos-"+plain)).To(Succeed())
		Expect(bind(ctx, search, "worker-1")).To(Succeed())
	},
		Entry("by labels", SpecTimeout(settle), matchLabels, "requires the labels team=payments, tier=gold"),
		Entry("by allowed names", SpecTimeout(settle), v1alpha1.NamespacesSpec{Allow: []string{"other", "*-pay*"}}, "excludes the name"),
		Entry("by denied names", SpecTimeout(settle), v1alpha1.NamespacesSpec{Deny: &[]string{"ns-s*"}}, "excludes the name"),
		Entry("by labels, with an empty list of denied names", SpecTimeout(settle), v1alpha1.NamespacesSpec{Deny: &[]string{}, MatchLabels: matchLabels.MatchLabels}, "requires the labels team=payments, tier=gold"),
	)

	It("uses the node name of the registration, and the current labels of the namespace", func(ctx SpecContext) {
		admitting(ctx, matchLabels, func(cr *v1alpha1.ClusterRegistration) { cr.Spec.Node.Name = "node-" + cr.Name })
		Eventually(ctx, func() error { return bind(ctx, search, "node-"+picky) }).Should(MatchError(ContainSubstring("does not admit")))
		Expect(bind(ctx, search, "kosmos-"+picky)).To(Succeed(), "no registration has this node name")

		relabel := func(ctx context.Context, labels map[string]string) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: search}}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(ns), ns)).To(Succeed())
			before := ns.DeepCopy()
			ns.Labels = with(with(ns.Labels, "team", labels["team"]), "tier", labels["tier"])
			Expect(admin.Patch(ctx, ns, client.MergeFrom(before))).To(Succeed())
		}
		DeferCleanup(relabel, map[string]string{"team": "search"}, NodeTimeout(settle))
		relabel(ctx, matchLabels.MatchLabels)
		Eventually(ctx, func() error { return bind(ctx, search, "node-"+picky) }).Should(Succeed())
	}, SpecTimeout(settle))

	It("applies the rules of two registrations that claim the same node", func(ctx SpecContext) {
		admitting(ctx, matchLabels)
		both := registrations(2)
		for i := range both {
			both[i].Spec.Node.Name, both[i].Spec.Namespaces = "claimed", matchLabels
		}
		publishRulesOf(ctx, both)
		DeferCleanup(func(ctx SpecContext) { publishRules(ctx) }, NodeTimeout(settle))
		Eventually(ctx, func() error { return bind(ctx, search, "claimed") }).Should(MatchError(ContainSubstring("requires the labels team=payments, tier=gold")))
		Expect(bind(ctx, payments, "claimed")).To(Succeed())
	}, SpecTimeout(settle))

	It("ignores namespaces that are denied by default, because Xylem reports their Pods", func(ctx SpecContext) {
		admitting(ctx, matchLabels)
		Eventually(ctx, func() error { return bind(ctx, search, "kosmos-"+picky) }).ShouldNot(Succeed())
		Expect(bind(ctx, "kube-system", "kosmos-"+plain)).To(Succeed())
	}, SpecTimeout(settle))
})

var _ = Describe("config/steering", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		kubectl(ctx, fleet.Host, "apply", "--server-side", "-k", path("config", "steering"))
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, fleet.Host, "delete", "-k", path("config", "steering")) })
	}, NodeTimeout(settle))

	exclusion := corev1.NodeSelectorRequirement{Key: v1alpha1.LabelCluster, Operator: corev1.NodeSelectorOpNotIn, Values: []string{picky}}
	zone := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	named := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-1"}}
	alone := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{exclusion}}}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	preferred := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
		{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}}}}
	expressions := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	// created returns the node selector terms of a Pod that a dry run creates in a namespace.
	created := func(ctx context.Context, namespace string, change func(*corev1.Pod)) []corev1.NodeSelectorTerm {
		GinkgoHelper()
		p := pod(namespace)
		p.Name, p.Spec.Tolerations = unique("steered"), []corev1.Toleration{virtualTaint}
		change(p)
		Expect(admin.Create(ctx, p, client.DryRunAll)).To(Succeed())
		a := p.Spec.Affinity
		if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return nil
		}
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	unchanged := func(*corev1.Pod) {}

	DescribeTable("excludes the members that do not admit the Pod's namespace", func(ctx SpecContext, affinity *corev1.Affinity, want []corev1.NodeSelectorTerm) {
		admitting(ctx, v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "payments"}})
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, search, unchanged) }).Should(Equal(alone))
		set := func(p *corev1.Pod) { p.Spec.Affinity = affinity.DeepCopy() }
		// The API server may observe the deletion of the previous entry's registrations later.
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, search, set) }).Should(Equal(want))
		before := []corev1.NodeSelectorTerm(nil)
		if affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			before = affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		}
		Expect(created(ctx, payments, set)).To(Equal(before), "the member admits this namespace")
	},
		Entry("of a Pod without affinity", SpecTimeout(settle), nil, alone),
		Entry("of a Pod with an affinity to Pods", SpecTimeout(settle), &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}}}}}}, alone),
		Entry("of a Pod that prefers nodes", SpecTimeout(settle), &corev1.Affinity{NodeAffinity: preferred}, alone),
		Entry("of a Pod that requires nodes", SpecTimeout(settle), required(expressions(zone)), []corev1.NodeSelectorTerm{expressions(zone, exclusion)}),
		Entry("of a Pod with alternative terms, including that of a DaemonSet's Pod", SpecTimeout(settle),
			required(expressions(zone), corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{named}}),
			[]corev1.NodeSelectorTerm{expressions(zone, exclusion), {MatchFields: []corev1.NodeSelectorRequirement{named}, MatchExpressions: []corev1.NodeSelectorRequirement{exclusion}}}),
		Entry("of a Pod that already has the exclusion", SpecTimeout(settle), required(expressions(zone, exclusion)), []corev1.NodeSelectorTerm{expressions(zone, exclusion)}),
		Entry("of a Pod with a term that selects nothing", SpecTimeout(settle), required(corev1.NodeSelectorTerm{}, expressions(zone)), []corev1.NodeSelectorTerm{{}, expressions(zone, exclusion)}),
	)

	DescribeTable("decides by the namespace's name", func(ctx SpecContext, rules v1alpha1.NamespacesSpec) {
		admitting(ctx, rules)
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, search, unchanged) }).Should(Equal(alone))
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, payments, unchanged) }).Should(BeEmpty())
	},
		Entry("if one of the allowed patterns matches", SpecTimeout(settle), v1alpha1.NamespacesSpec{Allow: []string{"other", "*-pay*", "*-s"}}),
		Entry("if an allowed pattern has a wildcard inside", SpecTimeout(settle), v1alpha1.NamespacesSpec{Allow: []string{"ns-*-*h", "ns-*ments"}}),
		Entry("if the name itself is allowed", SpecTimeout(settle), v1alpha1.NamespacesSpec{Allow: []string{"ns-payments", "ns-search-2"}}),
		Entry("if one of the denied patterns matches", SpecTimeout(settle), v1alpha1.NamespacesSpec{Deny: &[]string{"ns-*-*s", "other", "*search"}}),
		Entry("if the name itself is denied, and another pattern allows all", SpecTimeout(settle), v1alpha1.NamespacesSpec{Allow: []string{"*"}, Deny: &[]string{"ns-search", "ns-pay"}}),
	)

	// The API server limits the cost of an expression, and ignores the policy beyond it.
	DescribeTable("adds one short expression, even if 200 registrations with different rules exclude the namespace", func(ctx SpecContext, change func(i int, cr *v1alpha1.ClusterRegistration)) {
		admitting(ctx, v1alpha1.NamespacesSpec{})
		all := registrations(200)
		for i := range all {
			change(i, &all[i])
		}
		publishRulesOf(ctx, all)
		DeferCleanup(func(ctx SpecContext) { publishRules(ctx) }, NodeTimeout(settle))
		tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, search, tolerant) }).Should(ConsistOf(
			HaveField("MatchExpressions", ConsistOf(And(HaveField("Operator", corev1.NodeSelectorOpNotIn), HaveField("Values", HaveLen(200)))))))
		terms, err := json.Marshal(created(ctx, search, tolerant))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(terms)).To(BeNumerically("<", 200*len(`"member-000",`)+100))
	},
		Entry("by labels and names", SpecTimeout(settle), func(int, *v1alpha1.ClusterRegistration) {}),
		Entry("by two labels, of which the namespace has one", SpecTimeout(settle), func(_ int, cr *v1alpha1.ClusterRegistration) {
			cr.Spec.Namespaces = v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "search", "tier": cr.Name}}
		}),
		Entry("by denied names", SpecTimeout(settle), func(_ int, cr *v1alpha1.ClusterRegistration) {
			cr.Spec.Namespaces = v1alpha1.NamespacesSpec{Deny: &[]string{cr.Name, "ns-*"}}
		}),
		Entry("by the ends of names", SpecTimeout(settle), func(_ int, cr *v1alpha1.ClusterRegistration) {
			cr.Spec.Namespaces = v1alpha1.NamespacesSpec{Allow: []string{"*-" + cr.Name}}
		}),
		Entry("with several sets of taints", SpecTimeout(settle), func(i int, cr *v1alpha1.ClusterRegistration) {
			cr.Spec.Node.Taints = &[]v1alpha1.NodeTaint{{Key: "set", Value: string(rune('a' + i%4)), Effect: corev1.TaintEffectNoSchedule}}
		}),
	)

	DescribeTable("ignores other Pods", func(ctx SpecContext, change func(*corev1.Pod)) {
		admitting(ctx, v1alpha1.NamespacesSpec{Allow: []string{"ns-pay*"}})
		Eventually(ctx, func() []corev1.NodeSelectorTerm { return created(ctx, search, unchanged) }).Should(Equal(alone))
		Expect(created(ctx, search, change)).To(BeNil())
	},
		Entry("that already have a node", SpecTimeout(settle), func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" }),
		Entry("that do not tolerate the virtual node's taint", SpecTimeout(settle), func(p *corev1.Pod) { p.Spec.Tolerations = nil }),
		Entry("that tolerate another value of the taint", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpEqual, Value: "false"}}
		}),
	)

	It("uses the taints of the registration", func(ctx SpecContext) {
		admitting(ctx, v1alpha1.NamespacesSpec{Deny: &[]string{"ns-search"}}, func(cr *v1alpha1.ClusterRegistration) {
			cr.Spec.Node.Taints = &[]v1alpha1.NodeTaint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
		})
		Eventually(ctx, func() []corev1.NodeSelectorTerm {
			return created(ctx, search, func(p *corev1.Pod) { p.Spec.Tolerations = nil })
		}).Should(Equal(alone))
	}, SpecTimeout(settle))
})
