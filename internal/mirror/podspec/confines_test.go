package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestConfines(t *testing.T) {
	hostname, zone, members := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: app()}, corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: app()}, corev1.PodAffinityTerm{TopologyKey: "xylem.io/cluster", LabelSelector: app()}
	near := func(terms ...corev1.PodAffinityTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}
	}
	away := func(terms ...corev1.PodAffinityTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}
	}
	nodes := func(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: mirrortest.NodeSelectorOf(terms...)}}}
	}
	spread := func(key string, when corev1.UnsatisfiableConstraintAction) corev1.PodSpec {
		return corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: app()}}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"no requirements":                      {corev1.PodSpec{}, false},
		"a member, by nodeSelector":            {corev1.PodSpec{NodeSelector: map[string]string{"xylem.io/cluster": "cluster38"}}, false},
		"a zone, by nodeSelector":              {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelTopologyZone: "a"}}, false},
		"an architecture, by nodeSelector":     {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelArchStable: "arm64"}}, true},
		"the virtual node, by node affinity":   {nodes(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement(corev1.LabelHostname, "kosmos-cluster38"))), false},
		"an architecture, by node affinity":    {nodes(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement(corev1.LabelArchStable, "arm64"))), true},
		"the node of another Pod":              {near(hostname), true},
		"the zone of another Pod":              {near(zone), false},
		"the member of another Pod":            {near(members), false},
		"another node than another Pod's":      {away(hostname), true},
		"another zone than another Pod's":      {away(zone), true},
		"another member than another Pod's":    {away(members), false},
		"spread over nodes":                    {spread(corev1.LabelHostname, corev1.DoNotSchedule), true},
		"spread over nodes, preferably":        {spread(corev1.LabelHostname, corev1.ScheduleAnyway), false},
		"spread over zones":                    {spread(corev1.LabelTopologyZone, corev1.DoNotSchedule), false},
		"spread over members":                  {spread("xylem.io/cluster", corev1.DoNotSchedule), false},
		"a host port":                          {corev1.PodSpec{Containers: []corev1.Container{{}, {Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}}, true},
		"a container port":                     {corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}, false},
		"a RuntimeClass":                       {corev1.PodSpec{RuntimeClassName: new("gvisor")}, true},
		"tolerations, which exclude no node":   {corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, false},
		"preferred distance from another Pod":  {corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: hostname}}}}}, false},
		"a preferred architecture of the node": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement(corev1.LabelArchStable, "arm64"))}}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			before := pod.DeepCopy()
			if got := RestrictsMemberNodes(pod, mirrortest.Member); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if before.String() != pod.String() {
				t.Error("the Pod was changed")
			}
		})
	}
}
