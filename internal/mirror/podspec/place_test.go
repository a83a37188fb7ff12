package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestRequiredTerms(t *testing.T) {
	here := mirrortest.NodeRequirement("kubernetes.io/hostname", "kosmos-cluster38")
	elsewhere := mirrortest.NodeRequirement("kubernetes.io/hostname", "kosmos-other")
	amd, arm := mirrortest.NodeRequirement("kubernetes.io/arch", "amd64"), mirrortest.NodeRequirement("kubernetes.io/arch", "arm64")
	byName := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{mirrortest.NodeRequirement("metadata.name", name)}}
	}
	cases := map[string]struct{ root, want *corev1.NodeSelector }{
		"none":                               {},
		"the virtual node by host name":      {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(here))},
		"the virtual node by field selector": {root: mirrortest.NodeSelectorOf(byName("kosmos-cluster38"))},
		"the member by its labels":           {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("xylem.io/cluster", "cluster38"), mirrortest.NodeRequirement("xylem.io/cluster-id", "member-id")))},
		"a label that the admin set":         {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("team", "red")))},
		"a zone":                             {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("topology.kubernetes.io/zone", "a")))},
		"an architecture":                    {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd))},
		"this member's architecture":         {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(here, amd)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd))},
		"another member's architecture":      {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(here, amd), mirrortest.NodeSelectorTerm(elsewhere, arm)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd))},
		"either architecture on any node":    {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd), mirrortest.NodeSelectorTerm(arm)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd), mirrortest.NodeSelectorTerm(arm))},
		"an architecture or a zone":          {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd), mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("topology.kubernetes.io/zone", "a")))},
		"only another member, so the Pod was bound by nodeName": {root: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(elsewhere, arm))},
		"another member by field selector":                      {root: mirrortest.NodeSelectorOf(byName("kosmos-other"), mirrortest.NodeSelectorTerm(arm)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(arm))},
		"an empty term, which no node satisfies":                {root: mirrortest.NodeSelectorOf(corev1.NodeSelectorTerm{}, mirrortest.NodeSelectorTerm(amd)), want: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd))},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, memberRequiredTerms(c.root, mirrortest.Member)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPreferredTerms(t *testing.T) {
	amd := mirrortest.NodeRequirement("kubernetes.io/arch", "amd64")
	got := memberPreferredTerms([]corev1.PreferredSchedulingTerm{
		{Weight: 1, Preference: mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("team", "red"))},
		{Weight: 2, Preference: mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("team", "red"), amd)},
		{Weight: 3, Preference: mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("kubernetes.io/hostname", "kosmos-other"), amd)},
	}, mirrortest.Member)
	want := []corev1.PreferredSchedulingTerm{{Weight: 2, Preference: mirrortest.NodeSelectorTerm(amd)}}
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
		t.Errorf("want no constraints, got %v", got)
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

func TestWithLabelKeysKeepsTheSelector(t *testing.T) {
	selector := app()
	withLabelKeys(selector, []string{"tenant"}, metav1.LabelSelectorOpIn, map[string]string{"tenant": "red"})
	if diff := cmp.Diff(app(), selector); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
