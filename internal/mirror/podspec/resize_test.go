package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestResized(t *testing.T) {
	m := mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	cpu := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	set := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = cpu(amount) }
	}
	init := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources = cpu(amount) }
	}
	whole := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { r := cpu(amount); p.Spec.Resources = &r }
	}
	none := func(*corev1.Pod) {}
	earlier := func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPushed] = "{}" }
	for name, tc := range map[string]struct {
		root, leaf func(*corev1.Pod) // changes after the push
		want       bool
	}{
		"nothing changed":                             {none, none, false},
		"a container was resized":                     {set("2"), none, true},
		"a sidecar was resized":                       {init("2"), none, true},
		"the Pod was resized":                         {whole("2"), none, true},
		"the amount is written differently":           {set("1000m"), none, false},
		"the member's admin resized the leaf as well": {set("2"), set("2"), false},
		"the member's admin resized only the leaf":    {none, set("2"), false},
		"an earlier version pushed the Pod":           {set("2"), earlier, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Pod{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "sidecar"}}, Containers: []corev1.Container{{Name: "main", Resources: cpu("1")}},
			}}
			root.Namespace, root.Name, root.UID = "shop", "web", "u"
			leaf, err := TranslatePod(root, m)
			if err != nil {
				t.Fatal(err)
			}
			tc.root(root)
			tc.leaf(leaf)
			if got := ResizedAfterPush(root, leaf); got != tc.want {
				t.Errorf("resized: %t", got)
			}
			root.Labels = map[string]string{"app": "web"}
			leaf = ApplyPodDrift(leaf, PodDriftOf(root, leaf, m))
			if got := ResizedAfterPush(root, leaf); got != tc.want {
				t.Errorf("resized after another change was copied: %t", got)
			}
		})
	}
}
