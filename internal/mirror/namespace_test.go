package mirror

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func rootNamespace() *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", UID: "u1", ResourceVersion: "7", Finalizers: []string{"example.com/held"},
			Labels: map[string]string{
				"kubernetes.io/metadata.name":                "shop",
				"pod-security.kubernetes.io/enforce":         "restricted",
				"pod-security.kubernetes.io/enforce-version": "latest",
				"team":        "a",
				"xylem.io/me": "no",
			},
			Annotations: map[string]string{"example.com/quota": "large"},
		},
	}
}

func TestUseNamespace(t *testing.T) {
	const host = "host-1"
	m := Member{HostID: host, Registration: "cluster38"}
	namespace := func(change func(*corev1.Namespace)) *corev1.Namespace {
		ns := LeafNamespace(rootNamespace(), m)
		change(ns)
		return ns
	}
	now := metav1.Now()
	for name, tc := range map[string]struct {
		ns     *corev1.Namespace
		usable bool
		reason string
		says   string
	}{
		"absent":    {},
		"made":      {ns: namespace(func(*corev1.Namespace) {}), usable: true},
		"handed":    {ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: host}}}, usable: true},
		"foreign":   {ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, reason: v1alpha1.ReasonNamespaceConflict, says: "kubectl label namespace shop xylem.io/host=host-1"},
		"another's": {ns: namespace(func(ns *corev1.Namespace) { ns.Labels[v1alpha1.LabelHost] = "host-2" }), reason: v1alpha1.ReasonNamespaceConflict, says: "another host's (xylem.io/host=host-2)"},
		"deleted":   {ns: namespace(func(ns *corev1.Namespace) { ns.DeletionTimestamp = &now }), reason: v1alpha1.ReasonNamespaceTerminating, says: "terminating"},
		"phase":     {ns: namespace(func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating }), reason: v1alpha1.ReasonNamespaceTerminating, says: "terminating"},
		"foreign, terminating": {
			ns:     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: &now}},
			reason: v1alpha1.ReasonNamespaceConflict, says: "is not this host's",
		},
	} {
		t.Run(name, func(t *testing.T) {
			usable, refusal := UseNamespace("shop", tc.ns, m)
			if usable != tc.usable {
				t.Errorf("usable: %v, want %v", usable, tc.usable)
			}
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
					t.Errorf("message %q lacks %q", refusal.Message, part)
				}
			}
		})
	}
}

// Whoever labels it, and whether it is there or not (I8).
func TestReservedNamespace(t *testing.T) {
	for name, reserved := range map[string]bool{
		"kube-system": true, "kube-public": true, "kube-node-lease": true, "kube-anything": true, "xylem-system": true,
		"default": false, "kubernetes": false, "kube": false, "xylem": false, "my-kube-system": false,
	} {
		t.Run(name, func(t *testing.T) {
			handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelHost: "host-1"}}}
			for _, ns := range []*corev1.Namespace{nil, handed} {
				usable, refusal := UseNamespace(name, ns, Member{HostID: "host-1", Registration: "cluster38"})
				if usable != (!reserved && ns != nil) || (refusal != nil) != reserved {
					t.Errorf("usable %t, refusal %v", usable, refusal)
				}
				if refusal != nil && (refusal.Reason != v1alpha1.ReasonNamespaceReserved || !strings.Contains(refusal.Message, name)) {
					t.Errorf("refusal %+v", refusal)
				}
			}
		})
	}
}

func TestLeafNamespace(t *testing.T) {
	root := rootNamespace()
	want := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop",
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
			"xylem.io/host":                      "host-1",
			"app.kubernetes.io/managed-by":       "xylem",
		},
		Annotations: map[string]string{"xylem.io/root": "shop", "xylem.io/root-uid": "u1"},
	}}
	if diff := cmp.Diff(want, LeafNamespace(root, Member{HostID: "host-1"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(rootNamespace(), root); diff != "" {
		t.Errorf("the root was changed: %s", diff)
	}
	bare := LeafNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "u2"}}, Member{HostID: "host-1"})
	if !MadeByUs(bare, "host-1") {
		t.Error("a namespace without labels is not stamped")
	}
}

func TestMadeByUs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Namespace)
		want   bool
	}{
		"made":           {change: func(*corev1.Namespace) {}, want: true},
		"another host":   {change: func(ns *corev1.Namespace) { ns.Labels[v1alpha1.LabelHost] = "host-2" }},
		"unmanaged":      {change: func(ns *corev1.Namespace) { delete(ns.Labels, v1alpha1.LabelManagedBy) }},
		"without origin": {change: func(ns *corev1.Namespace) { ns.Annotations = nil }},
		"another name":   {change: func(ns *corev1.Namespace) { ns.Name = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			ns := LeafNamespace(rootNamespace(), Member{HostID: "host-1"})
			tc.change(ns)
			if got := MadeByUs(ns, "host-1"); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	if MadeByUs(nil, "host-1") {
		t.Error("nothing was made by us")
	}
}

// Labels of the host tighten what a member requires, and never loosen it.
func TestLeafPodSecurity(t *testing.T) {
	const enforce, audit, version = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/enforce-version"
	for name, tc := range map[string]struct {
		root   map[string]string
		loosen bool
		want   map[string]string
	}{
		"none":                        {nil, false, map[string]string{enforce: "baseline"}},
		"others":                      {map[string]string{"team": "a"}, false, map[string]string{enforce: "baseline"}},
		"privileged":                  {map[string]string{enforce: "privileged", audit: "privileged"}, false, map[string]string{enforce: "baseline"}},
		"restricted":                  {map[string]string{enforce: "restricted", audit: "baseline"}, false, map[string]string{enforce: "restricted", audit: "baseline"}},
		"of an old version":           {map[string]string{enforce: "restricted", version: "v1.0"}, false, map[string]string{enforce: "restricted"}},
		"of an old version, by leave": {map[string]string{enforce: "restricted", version: "v1.0"}, true, map[string]string{enforce: "restricted", version: "v1.0"}},
		"privileged, by leave":        {map[string]string{enforce: "privileged"}, true, map[string]string{enforce: "privileged"}},
		"none, by leave":              {map[string]string{"team": "a"}, true, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u", Labels: tc.root}}
			leaf := LeafNamespace(root, Member{HostID: "host-1", LoosenPodSecurity: tc.loosen})
			if diff := cmp.Diff(tc.want, PodSecurityLabels(leaf)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAdmitNamespace(t *testing.T) {
	denied := func(patterns ...string) v1alpha1.NamespacesSpec { return v1alpha1.NamespacesSpec{Deny: &patterns} }
	for name, tc := range map[string]struct {
		spec      v1alpha1.NamespacesSpec
		namespace string
		says      string
	}{
		"by default":                     {namespace: "shop"},
		"default":                        {namespace: "default"},
		"a mesh, by default":             {namespace: "istio-system", says: `"*-system" of spec.namespaces.deny`},
		"a component, by default":        {namespace: "cert-manager", says: `"cert-manager" of spec.namespaces.deny`},
		"a platform, by default":         {namespace: "openshift-monitoring", says: `"openshift*"`},
		"like a component":               {namespace: "cert-managers"},
		"denied none":                    {spec: denied(), namespace: "istio-system"},
		"denied by another list":         {spec: denied("team-*"), namespace: "team-a", says: `"team-*"`},
		"not denied by another list":     {spec: denied("team-*"), namespace: "istio-system"},
		"in the middle":                  {spec: denied("a*b*c"), namespace: "a-bb-c", says: `"a*b*c"`},
		"too short for the pattern":      {spec: denied("ab*ba"), namespace: "aba"},
		"everything denied":              {spec: denied("*"), namespace: "shop", says: `"*"`},
		"allowed":                        {spec: v1alpha1.NamespacesSpec{Allow: []string{"shop", "team-*"}}, namespace: "team-a"},
		"not allowed":                    {spec: v1alpha1.NamespacesSpec{Allow: []string{"shop", "team-*"}}, namespace: "shops", says: "no pattern of spec.namespaces.allow"},
		"allowed, and denied by default": {spec: v1alpha1.NamespacesSpec{Allow: []string{"*"}}, namespace: "x-system", says: `"*-system"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := Member{HostID: "host-1", Registration: "cluster38", Namespaces: PatternsOf(tc.spec)}
			refusal := AdmitNamespace(tc.namespace, m)
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
					t.Errorf("message %q lacks %q", refusal.Message, part)
				}
			}
			// Not even where the member's admin handed it over: the registration is the host's.
			handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace, Labels: map[string]string{v1alpha1.LabelHost: "host-1"}}}
			if usable, _ := UseNamespace(tc.namespace, handed, m); usable {
				t.Error("it is used all the same")
			}
		})
	}
}
