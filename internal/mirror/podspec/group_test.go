package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestGroupSelectorOf(t *testing.T) {
	for name, c := range map[string]struct {
		annotation string
		want       bool
	}{
		"a label":             {`{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}`, true},
		"a name":              {`{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}`, true},
		"none":                {"", false},
		"not JSON":            {"zone=a", false},
		"an empty term":       {"{}", false},
		"an unknown operator": {`{"matchExpressions":[{"key":"zone","operator":"Near","values":["a"]}]}`, false},
		"no values":           {`{"matchExpressions":[{"key":"zone","operator":"In"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationNodeSelector: c.annotation}}}
			if term, got := GroupSelectorOf(node); got != c.want {
				t.Errorf("GroupSelectorOf: %v, %t", term, got)
			}
		})
	}
	if _, ok := GroupSelectorOf(nil); ok {
		t.Error("a missing node has a selector")
	}
}

func TestRequireGroup(t *testing.T) {
	amd, arm, zone := mirrortest.NodeRequirement("kubernetes.io/arch", "amd64"), mirrortest.NodeRequirement("kubernetes.io/arch", "arm64"), mirrortest.NodeRequirement("zone", "a")
	group := mirrortest.NodeSelectorTerm(zone)
	for name, c := range map[string]struct{ of, want *corev1.NodeSelector }{
		"no requirements": {nil, mirrortest.NodeSelectorOf(group)},
		"no terms":        {&corev1.NodeSelector{}, mirrortest.NodeSelectorOf(group)},
		"alternatives":    {mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd), mirrortest.NodeSelectorTerm(arm)), mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(amd, zone), mirrortest.NodeSelectorTerm(arm, zone))},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.Pod{}
			if c.of != nil {
				leaf.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: c.of}}
			}
			if IsKeptToGroup(leaf, group) {
				t.Error("the leaf is kept to the group before")
			}
			RequireGroup(leaf, group)
			if diff := cmp.Diff(c.want, leaf.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !IsKeptToGroup(leaf, group) || IsKeptToGroup(leaf, mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("zone", "b"))) {
				t.Error("the leaf is not kept to the group, or to another one")
			}
		})
	}
	leaf := &corev1.Pod{}
	PreferGroup(leaf, group)
	if !IsKeptToGroup(leaf, group) || leaf.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Error("the leaf does not only prefer the group")
	}
}
