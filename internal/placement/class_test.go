package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func class(parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ssd"}, Parameters: parameters}
}

// ruled returns a member whose registration has the given rules for classes.
func ruled(storage v1alpha1.StorageSpec) Member {
	return MemberOfRegistration(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}, Spec: v1alpha1.ClusterRegistrationSpec{Storage: storage}}, nil)
}

func TestClassFor(t *testing.T) {
	const (
		byRule      = `a rule in spec.storage.classes of ClusterRegistration "cluster38"`
		byParameter = `the parameter xylem.io/member-class of StorageClass "virtual-disk-hdd"`
		byPrefix    = `the prefix "virtual-disk-" in ClusterRegistration "cluster38"`
		byName      = "name"
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
		"an exact rule wins":                                 {rules, "virtual-disk-ssd", parameter, "by-rule", byRule},
		"without an exact rule, the parameter wins":          {rules, "virtual-disk-hdd", parameter, "by-parameter", byParameter},
		"without a rule or parameter, the prefix wins":       {rules, "virtual-disk-hdd", nil, "hdd", byPrefix},
		"if no rule applies, the name stays the same":        {rules, "ssd", nil, "ssd", byName},
		"the prefix is not applied to the parameter's class": {rules, "virtual-disk-hdd", map[string]string{"xylem.io/member-class": "hdd"}, "hdd", byParameter},
		"the prefix is applied only once":                    {v1alpha1.StorageSpec{}, "virtual-disk-virtual-disk-x", nil, "virtual-disk-x", byPrefix},
		"an empty parameter is ignored":                      {rules, "ssd", map[string]string{"xylem.io/member-class": ""}, "ssd", byName},
		"nothing follows the prefix":                         {rules, "virtual-disk-", nil, "virtual-disk-", byName},
		"the rest after the prefix is not a valid name":      {rules, "virtual-disk--x", nil, "virtual-disk--x", byName},
		"the prefix is in the middle of the name":            {rules, "a-virtual-disk-x", nil, "a-virtual-disk-x", byName},
		"a custom prefix applies":                            {prefix("eu."), "eu.gp3", nil, "gp3", `the prefix "eu." in ClusterRegistration "cluster38"`},
		"a custom prefix replaces the default":               {prefix("eu."), "virtual-disk-gp3", nil, "virtual-disk-gp3", byName},
		"an empty prefix disables the rule":                  {prefix(""), "virtual-disk-gp3", nil, "virtual-disk-gp3", byName},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := class(c.parameters)
			host.Name = c.host
			name, rule := ruled(c.rules).StorageClassFor(host)
			if name != c.wantName || rule != c.wants {
				t.Errorf("got %q, %q; want %q, %q", name, rule, c.wantName, c.wants)
			}
		})
	}
}

// The same rules map all kinds of classes.
func TestAttributesClassFor(t *testing.T) {
	rules := v1alpha1.StorageSpec{
		Classes:           []v1alpha1.ClassMapping{{Host: "gold", Member: "a-storage-class"}},
		AttributesClasses: []v1alpha1.ClassMapping{{Host: "gold", Member: "by-rule"}},
	}
	parameters := map[string]string{"xylem.io/member-attributes-class": "by-parameter", "xylem.io/member-class": "a-storage-class"}
	for name, tc := range map[string]struct {
		host             string
		parameters       map[string]string
		wantName, wanted string
	}{
		"an exact rule wins":                           {"gold", parameters, "by-rule", `a rule in spec.storage.attributesClasses of ClusterRegistration "cluster38"`},
		"without an exact rule, the parameter wins":    {"virtual-disk-silver", parameters, "by-parameter", `the parameter xylem.io/member-attributes-class of VolumeAttributesClass "virtual-disk-silver"`},
		"without a rule or parameter, the prefix wins": {"virtual-disk-silver", nil, "silver", `the prefix "virtual-disk-" in ClusterRegistration "cluster38"`},
		"if no rule applies, the name stays the same":  {"silver", nil, "silver", "name"},
		"other parameters are ignored":                 {"silver", map[string]string{"iops": "5000"}, "silver", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			name, rule := ruled(rules).AttributesClassFor(tc.host, &storagev1.VolumeAttributesClass{Parameters: tc.parameters})
			if name != tc.wantName || rule != tc.wanted {
				t.Errorf("got %q, %q; want %q, %q", name, rule, tc.wantName, tc.wanted)
			}
		})
	}
	if name, rule := ruled(rules).AttributesClassFor("virtual-disk-silver", nil); name != "silver" || rule == "" {
		t.Errorf("without a host class: got %q by rule %q, want silver by any rule", name, rule)
	}
}

// FuzzClassFor checks that any rules apply in the documented order, and that the result is
// deterministic.
func FuzzClassFor(f *testing.F) {
	f.Add("virtual-disk-ssd", "", "virtual-disk-", "ssd", "gp3")
	f.Add("virtual-disk-ssd", "fast", "virtual-disk-", "virtual-disk-ssd", "gp3")
	f.Add("a", "", "", "", "")
	f.Add("aa", "", "a", "b", "c")
	f.Fuzz(func(t *testing.T, host, parameter, prefix, from, to string) {
		c := class(map[string]string{"xylem.io/member-class": parameter})
		c.Name = host
		m := ruled(v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: from, Member: to}}, Prefix: &prefix})
		before := c.DeepCopy()
		name, rule := m.StorageClassFor(c)
		if diff := cmp.Diff(before, c); diff != "" {
			t.Fatalf("the class was changed:\n%s", diff)
		}
		if rule == "" {
			t.Error("ClassFor returned no rule")
		}
		var want string
		switch {
		case from == host && to != "":
			want = to
		case parameter != "":
			want = parameter
		case prefix != "" && name != host:
			want = host[len(prefix):]
			if prefix+want != host || len(validation.IsDNS1123Subdomain(want)) > 0 {
				t.Errorf("%q is not what follows prefix %q in %q", name, prefix, host)
			}
		default:
			want = host
		}
		if name != want {
			t.Errorf("got %q by %s, want %q", name, rule, want)
		}
	})
}

// topologies returns one term for each list of alternating label keys and values. A key that occurs
// twice requires both values.
func topologies(terms ...[]string) []corev1.TopologySelectorTerm {
	var all []corev1.TopologySelectorTerm
	for _, pairs := range terms {
		var term corev1.TopologySelectorTerm
		for i := 0; i < len(pairs); i += 2 {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: pairs[i], Values: []string{pairs[i+1]}})
		}
		all = append(all, term)
	}
	return all
}

// The cases match the scheduler's: TestMatchTopologySelectorTerms in
// k8s.io/kubernetes/pkg/apis/core/v1/helper.
func TestAllowsNode(t *testing.T) {
	const id, zone = v1alpha1.LabelClusterID, "topology.kubernetes.io/zone"
	here := map[string]string{id: "here", zone: "eu-1"}
	for name, c := range map[string]struct {
		terms  []corev1.TopologySelectorTerm
		labels map[string]string
		want   bool
	}{
		"everywhere":                                   {nil, here, true},
		"no terms, a node without labels":              {nil, nil, true},
		"an empty term matches no node":                {topologies(nil), here, false},
		"an empty term or this cluster":                {topologies(nil, []string{id, "here"}), here, true},
		"here":                                         {topologies([]string{id, "here"}), here, true},
		"elsewhere":                                    {topologies([]string{id, "there"}), here, false},
		"another cluster or this one":                  {topologies([]string{id, "there"}, []string{id, "here"}), here, true},
		"this cluster and another":                     {topologies([]string{id, "here", id, "there"}), here, false},
		"this zone":                                    {topologies([]string{zone, "eu-1"}), here, true},
		"another zone":                                 {topologies([]string{zone, "eu-2"}), here, false},
		"this cluster and this zone":                   {topologies([]string{id, "here", zone, "eu-1"}), here, true},
		"this cluster and another zone":                {topologies([]string{id, "here", zone, "eu-2"}), here, false},
		"a zone, but the node has none":                {topologies([]string{zone, "eu-1"}), map[string]string{id: "here"}, false},
		"an empty zone, but the node has none":         {topologies([]string{zone, ""}), map[string]string{id: "here"}, false},
		"an empty zone, and the node's label is empty": {topologies([]string{zone, ""}), map[string]string{zone: ""}, true},
		"an invalid label key":                         {topologies([]string{"no label", "eu-1"}), here, false},
		"an invalid label key or this zone":            {topologies([]string{"no label", "eu-1"}, []string{zone, "eu-1"}), here, true},
		"one of several values matches":                {[]corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"eu-2", "eu-1"}}}}}, here, true},
		"an empty list of values":                      {[]corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone}}}}, here, false},
	} {
		t.Run(name, func(t *testing.T) {
			host := class(nil)
			host.AllowedTopologies = c.terms
			if got := classAllowsNode(host, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
			if got := classAllowsNode(host, nil); got != (c.terms == nil) {
				t.Errorf("without a node: got %t, want %t", got, c.terms == nil)
			}
		})
	}
}

func TestPromisedClass(t *testing.T) {
	promise := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: "ssd", PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{VolumeAttributes: map[string]string{v1alpha1.ParameterMemberClass: "gp3"}}}}}
	present := class(map[string]string{v1alpha1.ParameterMemberClass: "gp9"})
	present.AllowedTopologies = topologies([]string{v1alpha1.LabelClusterID, "here"})
	got := PromisedClass(promise, present)
	if got.Name != "ssd" || got.Parameters[v1alpha1.ParameterMemberClass] != "gp3" || len(got.AllowedTopologies) != 1 {
		t.Errorf("got class %+v, want ssd with member class gp3 and one topology", got)
	}
	if got := PromisedClass(promise, nil); got.AllowedTopologies != nil {
		t.Errorf("without a current class, the allowed topologies are %v, want none", got.AllowedTopologies)
	}
}
