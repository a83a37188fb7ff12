package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// hosted returns a member of host-1 whose registration has the given rules for namespaces.
func hosted(spec v1alpha1.NamespacesSpec) Member {
	m := MemberOfRegistration(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}, Spec: v1alpha1.ClusterRegistrationSpec{Namespaces: spec}}, nil)
	m.HostID = "host-1"
	return m
}

func TestNamespace(t *testing.T) {
	const host = "host-1"
	m := hosted(v1alpha1.NamespacesSpec{})
	namespace := func(change func(*corev1.Namespace)) *corev1.Namespace {
		ns := mirror.LeafNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u1"}}, m.Member)
		change(ns)
		return ns
	}
	now := metav1.Now()
	denied := mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, `member "cluster38" rejects the creation of namespace "shop": no team label`)
	for name, tc := range map[string]struct {
		ns     *corev1.Namespace
		denied *mirror.Refusal
		usable bool
		reason string
		says   string
	}{
		"absent":                   {},
		"absent, and rejected":     {denied: denied, reason: v1alpha1.ReasonNamespaceRefused, says: "no team label"},
		"rejected once, but there": {denied: denied, ns: namespace(func(*corev1.Namespace) {}), usable: true},
		"created by Xylem":         {ns: namespace(func(*corev1.Namespace) {}), usable: true},
		"handed over":              {ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: host}}}, usable: true},
		"foreign":                  {ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, reason: v1alpha1.ReasonNamespaceConflict, says: "kubectl label namespace shop xylem.io/host=host-1"},
		"labeled for another host": {ns: namespace(func(ns *corev1.Namespace) { ns.Labels[v1alpha1.LabelHost] = "host-2" }), reason: v1alpha1.ReasonNamespaceConflict, says: "another host (xylem.io/host=host-2)"},
		"being deleted":            {ns: namespace(func(ns *corev1.Namespace) { ns.DeletionTimestamp = &now }), reason: v1alpha1.ReasonNamespaceTerminating, says: "terminating"},
		"in phase Terminating":     {ns: namespace(func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating }), reason: v1alpha1.ReasonNamespaceTerminating, says: "terminating"},
		"foreign and being deleted": {
			ns:     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: &now}},
			reason: v1alpha1.ReasonNamespaceConflict, says: "which this host may not use",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := m
			m.Objects = &MemberObjects{Namespace: tc.ns, NamespaceRejection: tc.denied}
			answer := m.AnswerRequest(Request{Namespace: Namespace{Name: "shop"}})
			if answer.AllowedNow() != tc.usable || answer.MustWait != (tc.ns == nil && tc.denied == nil) {
				t.Errorf("got %+v, want allowed: %v", answer, tc.usable)
			}
			refusal := answer.Refusal
			if tc.reason == "" {
				if refusal != nil {
					t.Fatalf("refused: %v", refusal)
				}
				return
			}
			if refusal == nil || refusal.Reason != tc.reason {
				t.Fatalf("refusal %+v, want %s", refusal, tc.reason)
			}
			for _, part := range []string{tc.says, "cluster38", "shop"} {
				if !strings.Contains(refusal.Message, part) {
					t.Errorf("message %q does not contain %q", refusal.Message, part)
				}
			}
		})
	}
}

// A reserved namespace is rejected regardless of its labels, and whether or not it exists (I8).
func TestReservedNamespace(t *testing.T) {
	for name, reserved := range map[string]bool{
		"kube-system": true, "kube-public": true, "kube-node-lease": true, "kube-anything": true, "xylem-system": true,
		"default": false, "kubernetes": false, "kube": false, "xylem": false, "my-kube-system": false,
	} {
		t.Run(name, func(t *testing.T) {
			handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelHost: "host-1"}}}
			for _, ns := range []*corev1.Namespace{nil, handed} {
				m := hosted(v1alpha1.NamespacesSpec{Deny: &[]string{}})
				m.Objects = &MemberObjects{Namespace: ns}
				answer := m.AnswerRequest(Request{Namespace: Namespace{Name: name}})
				refusal := answer.Refusal
				if answer.AllowedNow() != (!reserved && ns != nil) || (refusal != nil) != reserved {
					t.Errorf("answer %+v", answer)
				}
				if refusal != nil && (refusal.Reason != v1alpha1.ReasonNamespaceReserved || !strings.Contains(refusal.Message, name)) {
					t.Errorf("refusal %+v", refusal)
				}
			}
		})
	}
}

func TestNamespaceRules(t *testing.T) {
	denied := func(patterns ...string) v1alpha1.NamespacesSpec { return v1alpha1.NamespacesSpec{Deny: &patterns} }
	for name, tc := range map[string]struct {
		spec      v1alpha1.NamespacesSpec
		namespace string
		says      string
	}{
		"allowed by default":                                   {namespace: "shop"},
		"the namespace named default is allowed":               {namespace: "default"},
		"a service mesh's namespace is denied by default":      {namespace: "istio-system", says: `"*-system" of spec.namespaces.deny`},
		"a cluster component's namespace is denied by default": {namespace: "cert-manager", says: `"cert-manager" of spec.namespaces.deny`},
		"a platform's namespace is denied by default":          {namespace: "openshift-monitoring", says: `"openshift*"`},
		"a name that only begins like a denied one is allowed": {namespace: "cert-managers"},
		"an empty deny list":                                   {spec: denied(), namespace: "istio-system"},
		"denied by a custom list":                              {spec: denied("team-*"), namespace: "team-a", says: `"team-*"`},
		"a custom list replaces the default one":               {spec: denied("team-*"), namespace: "istio-system"},
		"a pattern with wildcards in the middle":               {spec: denied("a*b*c"), namespace: "a-bb-c", says: `"a*b*c"`},
		"a name too short for the pattern":                     {spec: denied("ab*ba"), namespace: "aba"},
		"a pattern that denies all names":                      {spec: denied("*"), namespace: "shop", says: `"*"`},
		"a pattern in allow matches":                           {spec: v1alpha1.NamespacesSpec{Allow: []string{"shop", "team-*"}}, namespace: "team-a"},
		"no pattern in allow matches":                          {spec: v1alpha1.NamespacesSpec{Allow: []string{"shop", "team-*"}}, namespace: "shops", says: "no pattern of spec.namespaces.allow"},
		"allowed, but denied by default":                       {spec: v1alpha1.NamespacesSpec{Allow: []string{"*"}}, namespace: "x-system", says: `"*-system"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := hosted(tc.spec)
			refusal := m.AnswerRequest(Request{Namespace: Namespace{Name: tc.namespace}}).Refusal
			if tc.says == "" {
				if refusal != nil {
					t.Errorf("refused: %v", refusal)
				}
				return
			}
			if refusal == nil || refusal.Reason != v1alpha1.ReasonNamespaceNotAdmitted {
				t.Fatalf("refusal %+v", refusal)
			}
			for _, part := range []string{tc.says, tc.namespace, `ClusterRegistration "cluster38"`} {
				if !strings.Contains(refusal.Message, part) {
					t.Errorf("message %q does not contain %q", refusal.Message, part)
				}
			}
			// The registration's rules apply even if the member's admin handed the namespace over.
			handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace, Labels: map[string]string{v1alpha1.LabelHost: "host-1"}}}
			m.Objects = &MemberObjects{Namespace: handed}
			if m.AnswerRequest(Request{Namespace: Namespace{Name: tc.namespace}}).AllowedNow() {
				t.Error("the namespace is allowed although the rules exclude it")
			}
		})
	}
}

func TestNamespaceLabels(t *testing.T) {
	rule := map[string]string{"team": "payments", "tier": "gold"}
	known := func(labels map[string]string) Namespace { return Namespace{Name: "shop", Labels: labels, Known: true} }
	for name, tc := range map[string]struct {
		spec      v1alpha1.NamespacesSpec
		namespace Namespace
		says      string
		waits     bool
	}{
		"no required labels": {namespace: known(nil)},
		"no required labels, and the namespace's labels are unknown": {namespace: Namespace{Name: "shop"}},
		"an empty set of required labels":                            {spec: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{}}, namespace: known(nil)},
		"all labels match":                                           {spec: v1alpha1.NamespacesSpec{MatchLabels: rule}, namespace: known(map[string]string{"team": "payments", "tier": "gold", "other": "x"})},
		"one label is missing":                                       {spec: v1alpha1.NamespacesSpec{MatchLabels: rule}, namespace: known(map[string]string{"team": "payments"}), says: "lacks the label tier=gold of spec.namespaces.matchLabels"},
		"one label differs":                                          {spec: v1alpha1.NamespacesSpec{MatchLabels: rule}, namespace: known(map[string]string{"team": "search", "tier": "gold"}), says: `the namespace's label team is "search", but spec.namespaces.matchLabels requires "payments"`},
		"no labels":                                                  {spec: v1alpha1.NamespacesSpec{MatchLabels: rule}, namespace: known(nil), says: "lacks the label team=payments"},
		"a required label with an empty value is missing":            {spec: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"batch": ""}}, namespace: known(nil), says: "lacks the label batch="},
		"a required label with an empty value matches":               {spec: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"batch": ""}}, namespace: known(map[string]string{"batch": ""})},
		"the namespace's labels are unknown":                         {spec: v1alpha1.NamespacesSpec{MatchLabels: rule}, namespace: Namespace{Name: "shop"}, waits: true},
		"unknown labels, and the name is not allowed":                {spec: v1alpha1.NamespacesSpec{MatchLabels: rule, Allow: []string{"team-*"}}, namespace: Namespace{Name: "shop"}, says: "no pattern of spec.namespaces.allow"},
		"matching labels, but the name is denied":                    {spec: v1alpha1.NamespacesSpec{MatchLabels: rule, Deny: &[]string{"shop"}}, namespace: known(rule), says: `"shop" of spec.namespaces.deny`},
	} {
		t.Run(name, func(t *testing.T) {
			m := hosted(tc.spec)
			answer := m.AnswerRequest(Request{Namespace: tc.namespace})
			if answer.MustWait != tc.waits || answer.AllowedNow() != (tc.says == "" && !tc.waits) {
				t.Errorf("answer %+v", answer)
			}
			if tc.says == "" {
				if answer.Refusal != nil {
					t.Errorf("refused: %v", answer.Refusal)
				}
				return
			}
			if answer.Refusal == nil || answer.Refusal.Reason != v1alpha1.ReasonNamespaceNotAdmitted {
				t.Fatalf("refusal %+v", answer.Refusal)
			}
			for _, part := range []string{tc.says, `namespace "shop"`, `ClusterRegistration "cluster38"`} {
				if !strings.Contains(answer.Refusal.Message, part) {
					t.Errorf("message %q does not contain %q", answer.Refusal.Message, part)
				}
			}
		})
	}
}

func TestRestrictsNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.NamespacesSpec
		want bool
	}{
		"the default rules":  {},
		"an empty deny list": {spec: v1alpha1.NamespacesSpec{Deny: &[]string{}}},
		"denied":             {spec: v1alpha1.NamespacesSpec{Deny: &[]string{"team-*"}}, want: true},
		"allowed":            {spec: v1alpha1.NamespacesSpec{Allow: []string{"team-*"}}, want: true},
		"labels":             {spec: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "a"}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hosted(tc.spec).Rules.RestrictsNamespaces(); got != tc.want {
				t.Errorf("restricts: %v", got)
			}
		})
	}
}

func TestLiftedDenials(t *testing.T) {
	all := v1alpha1.DefaultDeniedNamespaces()
	for name, tc := range map[string]struct {
		deny *[]string
		want []string
	}{
		"the default":                 {nil, nil},
		"nothing is denied":           {&[]string{}, all},
		"one pattern of the default":  {&[]string{"dev-*", all[0]}, all[1:]},
		"all patterns of the default": {&all, []string{}},
		"everything is denied":        {&[]string{"*"}, []string{}},
		"a pattern covers another":    {&[]string{"istio*", "cert-*"}, all[:2]},
	} {
		cr := &v1alpha1.ClusterRegistration{}
		cr.Spec.Namespaces.Deny = tc.deny
		if diff := cmp.Diff(tc.want, LiftedDenials(cr)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
