package register

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodCIDRsOf(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("10.8.%d.0/24", i))
	}
	for name, tc := range map[string]struct{ nodes, want []string }{
		"no nodes":                         {},
		"nodes without podCIDRs":           {nodes: []string{""}},
		"few nodes":                        {nodes: []string{"10.8.0.0/24", "10.8.1.0/24", "10.8.0.0/24"}, want: []string{"10.8.0.0/24", "10.8.1.0/24"}},
		"two address families":             {nodes: []string{"fd00:8::/64", "10.8.0.0/24"}, want: []string{"10.8.0.0/24", "fd00:8::/64"}},
		"many nodes":                       {nodes: many, want: []string{"10.8.0.0/18"}},
		"many nodes, two address families": {nodes: append([]string{"fd00:8::/64"}, many...), want: []string{"10.8.0.0/18", "fd00:8::/64"}},
		"invalid CIDR":                     {nodes: []string{"somewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []corev1.Node
			for _, cidr := range tc.nodes {
				nodes = append(nodes, corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{cidr}}})
			}
			if diff := cmp.Diff(tc.want, podCIDRsOfNodes(nodes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
