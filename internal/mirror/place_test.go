package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func expr(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}

func TestRequiredTerms(t *testing.T) {
	here := expr("kubernetes.io/hostname", "kosmos-cluster38")
	elsewhere := expr("kubernetes.io/hostname", "kosmos-other")
	amd, arm := expr("kubernetes.io/arch", "amd64"), expr("kubernetes.io/arch", "arm64")
	byName := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expr("metadata.name", name)}}
	}
	cases := map[string]struct{ root, want *corev1.NodeSelector }{
		"none":                            {},
		"the virtual node by host name":   {root: required(term(here))},
		"the virtual node by field":       {root: required(byName("kosmos-cluster38"))},
		"the member by its labels":        {root: required(term(expr("xylem.io/cluster", "cluster38"), expr("xylem.io/cluster-id", "member-id")))},
		"a label of the admin's":          {root: required(term(expr("team", "red")))},
		"a zone":                          {root: required(term(expr("topology.kubernetes.io/zone", "a")))},
		"an architecture":                 {root: required(term(amd)), want: required(term(amd))},
		"an architecture here":            {root: required(term(here, amd)), want: required(term(amd))},
		"another one elsewhere":           {root: required(term(here, amd), term(elsewhere, arm)), want: required(term(amd))},
		"either architecture, any node":   {root: required(term(amd), term(arm)), want: required(term(amd), term(arm))},
		"an architecture or a zone":       {root: required(term(amd), term(expr("topology.kubernetes.io/zone", "a")))},
		"only elsewhere (bound by force)": {root: required(term(elsewhere, arm))},
		"elsewhere by field":              {root: required(byName("kosmos-other"), term(arm)), want: required(term(arm))},
		"an empty term is met by no node": {root: required(corev1.NodeSelectorTerm{}, term(amd)), want: required(term(amd))},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, requiredTerms(c.root, member)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPreferredTerms(t *testing.T) {
	amd := expr("kubernetes.io/arch", "amd64")
	got := preferredTerms([]corev1.PreferredSchedulingTerm{
		{Weight: 1, Preference: term(expr("team", "red"))},
		{Weight: 2, Preference: term(expr("team", "red"), amd)},
		{Weight: 3, Preference: term(expr("kubernetes.io/hostname", "kosmos-other"), amd)},
	}, member)
	want := []corev1.PreferredSchedulingTerm{{Weight: 2, Preference: term(amd)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemberSelector(t *testing.T) {
	got := memberSelector(map[string]string{
		"kubernetes.io/hostname": "kosmos-cluster38",
		"xylem.io/cluster":       "cluster38",
		"team":                   "red",
		"kubernetes.io/os":       "linux",
	})
	if diff := cmp.Diff(map[string]string{"kubernetes.io/os": "linux"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := memberSelector(map[string]string{"team": "red"}); got != nil {
		t.Errorf("nothing left, but %v", got)
	}
}

func TestAffinityOfWhichNothingIsLeftIsNone(t *testing.T) {
	leaf, err := TranslatePod(rootPod(corev1.PodSpec{Affinity: &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required(term(expr("kubernetes.io/hostname", "kosmos-cluster38")))},
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "xylem.io/cluster"},
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "xylem.io/cluster-id"},
		}},
	}}), member)
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Spec.Affinity != nil {
		t.Errorf("left: %v", leaf.Spec.Affinity)
	}
}

func TestMemberTolerations(t *testing.T) {
	injected := func(key string, seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}
	}
	got := memberTolerations([]corev1.Toleration{
		{Key: "kosmos.io/node", Operator: "Equal", Value: "true", Effect: "NoSchedule"},
		{Key: "xylem.io/anything", Operator: "Exists"},
		injected("node.kubernetes.io/not-ready", 300),
		injected("node.kubernetes.io/unreachable", 300),
		injected("node.kubernetes.io/unreachable", 30),
		injected("dedicated", 300),
		{Operator: "Exists"},
	})
	want := []corev1.Toleration{
		injected("node.kubernetes.io/unreachable", 30),
		injected("dedicated", 300),
		{Operator: "Exists"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func app(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: requirements}
}

func in(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}
}

func TestMemberSpread(t *testing.T) {
	labels := map[string]string{"app": "web", "pod-template-hash": "5d4f"}
	got := memberSpread([]corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: app(), MatchLabelKeys: []string{"pod-template-hash", "absent"}},
		{MaxSkew: 2, TopologyKey: "xylem.io/cluster", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: app()},
		{MaxSkew: 3, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: app(in("pod-template-hash", "5d4f")), MatchLabelKeys: []string{"pod-template-hash"}},
		{MaxSkew: 4, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: app()},
	}, labels)
	want := []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: app(in("pod-template-hash", "5d4f"))},
		{MaxSkew: 3, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: app(in("pod-template-hash", "5d4f"))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemberPodAffinity(t *testing.T) {
	hostname := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: app()}
	everywhere, byName, byLabel, byAnyLabel, zone, ours := hostname, hostname, hostname, hostname, hostname, hostname
	byAnyLabel.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	everywhere.NamespaceSelector = &metav1.LabelSelector{}
	byName.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}
	byLabel.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("team", "red")}}
	zone.TopologyKey = "topology.kubernetes.io/zone"
	ours.TopologyKey = "xylem.io/cluster"
	soft := func(t corev1.PodAffinityTerm, weight int32) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t}
	}
	got := memberPodAffinity(&corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{hostname, everywhere, byName, byLabel, byAnyLabel, zone, ours},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{soft(zone, 7), soft(ours, 8)},
	}, nil)
	want := &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{hostname, everywhere, byName},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{soft(byLabel, 100), soft(byAnyLabel, 100), soft(zone, 100), soft(zone, 7)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemberPodAntiAffinity(t *testing.T) {
	zone := corev1.PodAffinityTerm{TopologyKey: "topology.kubernetes.io/zone", LabelSelector: app(), MismatchLabelKeys: []string{"tenant"}}
	got := memberPodAntiAffinity(&corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{zone, {TopologyKey: "xylem.io/cluster"}},
	}, map[string]string{"tenant": "red"})
	want := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: "topology.kubernetes.io/zone",
		LabelSelector: app(metav1.LabelSelectorRequirement{
			Key: "tenant", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"red"},
		}),
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithLabelKeysLeavesTheSelectorAlone(t *testing.T) {
	selector := app()
	withLabelKeys(selector, []string{"tenant"}, metav1.LabelSelectorOpIn, map[string]string{"tenant": "red"})
	if diff := cmp.Diff(app(), selector); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
