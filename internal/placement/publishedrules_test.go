package placement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestPublishedNamespaceRules(t *testing.T) {
	registration := func(name string, rules v1alpha1.NamespacesSpec, taints ...v1alpha1.NodeTaint) v1alpha1.ClusterRegistration {
		cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cr.Spec.Namespaces = rules
		if taints != nil {
			cr.Spec.Node.Taints = &taints
		}
		return cr
	}
	gold := v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"tier": "gold", "example.com/team": ""}}
	named := registration("named", gold)
	const taint = "kosmos.io/node true NoSchedule"
	named.Spec.Node.Name = "edge"
	for name, tc := range map[string]struct {
		all  []v1alpha1.ClusterRegistration
		want string
	}{
		"no registration": {},
		"no rules":        {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{}), registration("b", v1alpha1.NamespacesSpec{Deny: &[]string{}})}},
		"the same rules share one line": {all: []v1alpha1.ClusterRegistration{registration("b", gold), registration("a", gold), named},
			want: taint + "\n\n" + taint + "\t*\nnamed,a,b\n example.com/team= \n \n\n" + taint + "\texample.com/team=\n,edge=named,kosmos-a=a,kosmos-b=b,\t\t\texample.com/team= tier=gold\tnamed,a,b"},
		"a label that other rules also require": {all: []v1alpha1.ClusterRegistration{registration("a", gold), registration("b", v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"example.com/team": ""}})},
			want: taint + "\n\n" + taint + "\t*\nb;a\n example.com/team= tier=gold \n \n\n" + taint + "\texample.com/team=\n,kosmos-b=b,\t\t\texample.com/team=\tb\n\n" +
				taint + "\ttier=gold\n,kosmos-a=a,\t\t\texample.com/team= tier=gold\ta"},
		"patterns": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{Allow: []string{"team-*", "*-b-*"}, Deny: &[]string{"x"}})},
			want: taint + "\n\n" + taint + "\t*\na\n \n ^ ^team-\n\n" + taint + "\t^\n,kosmos-a=a,\t^(.*-b-.*|team-.*)$\t^(x)$\t\ta\n\n" + taint + "\t^team-\n,kosmos-a=a,\t^(.*-b-.*|team-.*)$\t^(x)$\t\ta"},
		"many patterns": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{Allow: []string{"a", "b", "c", "d", "e"}})},
			want: taint + "\n\n" + taint + "\t*\na\n - \n \n\n" + taint + "\t-\n,kosmos-a=a,\t^(a|b|c|d|e)$\t\t\ta"},
		"different rules": {all: []v1alpha1.ClusterRegistration{
			registration("a", v1alpha1.NamespacesSpec{Deny: &[]string{"x"}}), registration("b", v1alpha1.NamespacesSpec{Deny: &[]string{"y"}}), registration("c", v1alpha1.NamespacesSpec{Deny: &[]string{"x"}}),
		}, want: taint + "\n\n" + taint + "\t*\na,c;b\n - \n \n\n" + taint + "\t-\n,kosmos-a=a,kosmos-c=c,\t\t^(x)$\t\ta,c\n,kosmos-b=b,\t\t^(y)$\t\tb"},
		"a label that would forge another line": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"tier": "x\n,worker-1=a,"}})},
			want: taint + "\n\n" + taint + "\t*\na\n tier=! \n \n\n" + taint + "\ttier=!\n,kosmos-a=a,\t\t\ttier=!\ta"},
		"taints": {all: []v1alpha1.ClusterRegistration{
			registration("a", gold, v1alpha1.NodeTaint{Key: "k", Effect: "NoExecute"}, v1alpha1.NodeTaint{Key: "i", Value: "v", Effect: "NoSchedule"}),
			registration("b", gold, v1alpha1.NodeTaint{Key: "soft", Effect: "PreferNoSchedule"}),
		}, want: "|i v NoSchedule;k  NoExecute\n\n\t*\nb\n example.com/team= \n \n\ni v NoSchedule;k  NoExecute\t*\na\n example.com/team= \n \n\n" +
			"\texample.com/team=\n,kosmos-b=b,\t\t\texample.com/team= tier=gold\tb\n\ni v NoSchedule;k  NoExecute\texample.com/team=\n,kosmos-a=a,\t\t\texample.com/team= tier=gold\ta"},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete := PublishedNamespaceRules(tc.all)
			if diff := cmp.Diff(tc.want, got); diff != "" || !complete {
				t.Errorf("complete: %t; rules (-want +got):\n%s", complete, diff)
			}
		})
	}
}

// The API server would reject an annotation that is too long, and then the rules would never change.
func TestPublishedNamespaceRulesFit(t *testing.T) {
	var all []v1alpha1.ClusterRegistration
	for i := range 1000 {
		cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i)}}
		for j := range 8 {
			cr.Spec.Namespaces.Allow = append(cr.Spec.Namespaces.Allow, fmt.Sprintf("%050d-%d", i, j))
		}
		all = append(all, cr)
	}
	rules, complete := PublishedNamespaceRules(all)
	if complete || len(rules) > publishedRulesLimit || len(rules) < publishedRulesLimit*9/10 {
		t.Errorf("complete: %t, %d bytes", complete, len(rules))
	}
}
