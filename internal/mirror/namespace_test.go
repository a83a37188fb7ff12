package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
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
	if diff := cmp.Diff(want, mirror.LeafNamespace(root, mirror.Member{HostID: "host-1"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(rootNamespace(), root); diff != "" {
		t.Errorf("the root was changed: %s", diff)
	}
	bare := mirror.LeafNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "u2"}}, mirror.Member{HostID: "host-1"})
	if !mirror.IsNamespaceCreatedByXylem(bare, "host-1") {
		t.Error("a namespace without labels is not stamped")
	}
}

func TestCreatedByXylem(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Namespace)
		want   bool
	}{
		"created by Xylem":             {change: func(*corev1.Namespace) {}, want: true},
		"another host":                 {change: func(ns *corev1.Namespace) { ns.Labels[v1alpha1.LabelHost] = "host-2" }},
		"without the managed-by label": {change: func(ns *corev1.Namespace) { delete(ns.Labels, v1alpha1.LabelManagedBy) }},
		"no origin":                    {change: func(ns *corev1.Namespace) { ns.Annotations = nil }},
		"another name":                 {change: func(ns *corev1.Namespace) { ns.Name = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			ns := mirror.LeafNamespace(rootNamespace(), mirror.Member{HostID: "host-1"})
			tc.change(ns)
			if got := mirror.IsNamespaceCreatedByXylem(ns, "host-1"); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	if mirror.IsNamespaceCreatedByXylem(nil, "host-1") {
		t.Error("MadeByUs returned true for nil")
	}
}

// The host's labels can tighten the member's Pod Security level, but not loosen it.
func TestLeafPodSecurity(t *testing.T) {
	const enforce, audit, version = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/enforce-version"
	for name, tc := range map[string]struct {
		root   map[string]string
		loosen bool
		want   map[string]string
	}{
		"no labels":                  {nil, false, map[string]string{enforce: "baseline"}},
		"other labels":               {map[string]string{"team": "a"}, false, map[string]string{enforce: "baseline"}},
		"privileged":                 {map[string]string{enforce: "privileged", audit: "privileged"}, false, map[string]string{enforce: "baseline"}},
		"restricted":                 {map[string]string{enforce: "restricted", audit: "baseline"}, false, map[string]string{enforce: "restricted", audit: "baseline"}},
		"a label for an old version": {map[string]string{enforce: "restricted", version: "v1.0"}, false, map[string]string{enforce: "restricted"}},
		"a label for an old version, loosening allowed": {map[string]string{enforce: "restricted", version: "v1.0"}, true, map[string]string{enforce: "restricted", version: "v1.0"}},
		"privileged, loosening allowed":                 {map[string]string{enforce: "privileged"}, true, map[string]string{enforce: "privileged"}},
		"no label, loosening allowed":                   {map[string]string{"team": "a"}, true, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u", Labels: tc.root}}
			leaf := mirror.LeafNamespace(root, mirror.Member{HostID: "host-1", LoosenPodSecurity: tc.loosen})
			if diff := cmp.Diff(tc.want, mirror.PodSecurityLabels(leaf)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
