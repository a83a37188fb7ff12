package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestMemberClass(t *testing.T) {
	const (
		byRule      = "rule in storage.classes of ClusterRegistration cluster38"
		byParameter = "parameter xylem.io/member-class of StorageClass "
		byPrefix    = "prefix virtual-disk- in ClusterRegistration cluster38"
		byName      = "the same name"
	)
	rules := v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "virtual-disk-ssd", Member: "by-rule"}, {Host: "hdd", Member: "other"}}}
	prefix := func(p string) v1alpha1.StorageSpec { return v1alpha1.StorageSpec{Prefix: &p} }
	parameter := map[string]string{"xylem.io/member-class": "by-parameter"}
	cases := map[string]struct {
		rules           v1alpha1.StorageSpec
		host            string
		parameters      map[string]string
		wantName, wants string
	}{
		"an exact rule wins":                  {rules, "virtual-disk-ssd", parameter, "by-rule", byRule},
		"then the parameter":                  {rules, "virtual-disk-hdd", parameter, "by-parameter", byParameter + "virtual-disk-hdd"},
		"then the prefix":                     {rules, "virtual-disk-hdd", nil, "hdd", byPrefix},
		"then the name":                       {rules, "ssd", nil, "ssd", byName},
		"a rule is not followed twice":        {rules, "virtual-disk-hdd", map[string]string{"xylem.io/member-class": "hdd"}, "hdd", byParameter + "virtual-disk-hdd"},
		"nor is the prefix":                   {v1alpha1.StorageSpec{}, "virtual-disk-virtual-disk-x", nil, "virtual-disk-x", byPrefix},
		"an empty parameter is none":          {rules, "ssd", map[string]string{"xylem.io/member-class": ""}, "ssd", byName},
		"the prefix alone names nothing":      {rules, "virtual-disk-", nil, "virtual-disk-", byName},
		"what cannot be a class's name":       {rules, "virtual-disk--x", nil, "virtual-disk--x", byName},
		"the prefix stands at the beginning":  {rules, "a-virtual-disk-x", nil, "a-virtual-disk-x", byName},
		"another prefix":                      {prefix("eu."), "eu.gp3", nil, "gp3", "prefix eu. in ClusterRegistration cluster38"},
		"another prefix instead of the usual": {prefix("eu."), "virtual-disk-gp3", nil, "virtual-disk-gp3", byName},
		"no prefix":                           {prefix(""), "virtual-disk-gp3", nil, "virtual-disk-gp3", byName},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := class(c.parameters)
			host.Name = c.host
			name, rule := MemberClass(host, WithClassRules(member, c.rules))
			if name != c.wantName || rule != c.wants {
				t.Errorf("got %q, %q; want %q, %q", name, rule, c.wantName, c.wants)
			}
		})
	}
}

// FuzzMemberClass: the order of the rules holds, whatever is in them, and the
// same question has the same answer.
func FuzzMemberClass(f *testing.F) {
	f.Add("virtual-disk-ssd", "", "virtual-disk-", "ssd", "gp3")
	f.Add("virtual-disk-ssd", "fast", "virtual-disk-", "virtual-disk-ssd", "gp3")
	f.Add("a", "", "", "", "")
	f.Add("aa", "", "a", "b", "c")
	f.Fuzz(func(t *testing.T, host, parameter, prefix, from, to string) {
		c := class(map[string]string{"xylem.io/member-class": parameter})
		c.Name = host
		m := WithClassRules(member, v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: from, Member: to}}, Prefix: &prefix})
		before := c.DeepCopy()
		name, rule := MemberClass(c, m)
		if diff := cmp.Diff(before, c); diff != "" {
			t.Fatalf("the class was changed:\n%s", diff)
		}
		if rule == "" {
			t.Error("no rule is named")
		}
		var want string
		switch {
		case from == host && to != "":
			want = to
		case parameter != "":
			want = parameter
		case prefix != "" && name != host:
			want = host[len(prefix):]
			if prefix+want != host || !isClassName(want) {
				t.Errorf("%q is not what follows %q in %q", name, prefix, host)
			}
		default:
			want = host
		}
		if name != want {
			t.Errorf("got %q by %s, want %q", name, rule, want)
		}
	})
}

func TestAdmits(t *testing.T) {
	in := func(key string, values ...string) (term corev1.TopologySelectorTerm) {
		for _, value := range values { // each has to hold
			term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: key, Values: []string{value}})
		}
		return term
	}
	const id = v1alpha1.LabelClusterID
	for name, c := range map[string]struct {
		terms []corev1.TopologySelectorTerm
		want  bool
	}{
		"everywhere":         {nil, true},
		"here":               {[]corev1.TopologySelectorTerm{in(id, "here")}, true},
		"elsewhere":          {[]corev1.TopologySelectorTerm{in(id, "there")}, false},
		"elsewhere, or here": {[]corev1.TopologySelectorTerm{in(id, "there"), in(id, "here")}, true},
		"here and elsewhere": {[]corev1.TopologySelectorTerm{in(id, "here", "there")}, false},
		"by other labels":    {[]corev1.TopologySelectorTerm{in("topology.kubernetes.io/zone", "eu-1")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			host := class(nil)
			host.AllowedTopologies = c.terms
			if got := Admits(host, "here"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestClassName(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, field *string
		want              string
	}{
		"neither":             {},
		"the field":           {field: ptr("b"), want: "b"},
		"the annotation":      {annotation: ptr("a"), want: "a"},
		"the annotation wins": {annotation: ptr("a"), field: ptr("b"), want: "a"},
		"also an empty one":   {annotation: ptr(""), field: ptr("b"), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			claim.Spec.StorageClassName = c.field
			if c.annotation != nil {
				claim.Annotations["volume.beta.kubernetes.io/storage-class"] = *c.annotation
			}
			if got := ClassName(claim); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
