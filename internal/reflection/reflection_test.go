package reflection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const retain, del = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete

// registration returns registration n for cluster id-n. A lower number is older.
func registration(n int, change ...func(*v1alpha1.ClusterRegistration)) v1alpha1.ClusterRegistration {
	cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("m%d", n), UID: types.UID(fmt.Sprint(n)), Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(int64(n), 0)),
	}}
	cr.Spec.Storage.Reflect = v1alpha1.ReflectSpec{Enabled: true, Max: 32}
	cr.Status.ClusterID = fmt.Sprintf("id-%d", n)
	for _, f := range change {
		f(&cr)
	}
	return cr
}

func off(cr *v1alpha1.ClusterRegistration)          { cr.Spec.Storage.Reflect.Enabled = false }
func leaving(cr *v1alpha1.ClusterRegistration)      { cr.DeletionTimestamp = &metav1.Time{} }
func otherCluster(cr *v1alpha1.ClusterRegistration) { cr.Status.ClusterID = "another" }
func atMost(n int32) func(*v1alpha1.ClusterRegistration) {
	return func(cr *v1alpha1.ClusterRegistration) { cr.Spec.Storage.Reflect.Max = n }
}
func selecting(key, value string) func(*v1alpha1.ClusterRegistration) {
	return func(cr *v1alpha1.ClusterRegistration) {
		cr.Spec.Storage.Reflect.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}
func mapping(host, member string) func(*v1alpha1.ClusterRegistration) {
	return func(cr *v1alpha1.ClusterRegistration) {
		cr.Spec.Storage.Classes = []v1alpha1.ClassMapping{{Host: host, Member: member}}
	}
}

func class(name string, policy corev1.PersistentVolumeReclaimPolicy, expands bool) MemberClass {
	return MemberClass{Name: name, Labels: map[string]string{"tier": name}, ClassTerms: ClassTerms{policy, expands}}
}

// published returns the host class that the given registrations offer.
func published(name string, terms ClassTerms, by ...int) *storagev1.StorageClass {
	ruling := Ruling{Terms: terms}
	for _, n := range by {
		ruling.Offering = append(ruling.Offering, Offering{fmt.Sprintf("m%d", n), fmt.Sprintf("id-%d", n)})
	}
	return HostClassForRuling(name, ruling, nil)
}

func view(seen map[int][]MemberClass, registrations ...v1alpha1.ClusterRegistration) View {
	v := View{Classes: NewMemberClasses(), Registrations: registrations}
	for n, classes := range seen {
		v.Classes.RecordClasses(fmt.Sprintf("m%d", n), ObservedClasses{ClusterID: fmt.Sprintf("id-%d", n), Classes: classes})
	}
	return v
}

func TestRule(t *testing.T) {
	fast := []MemberClass{class("fast", del, true)}
	kept := []MemberClass{class("fast", retain, true)}
	foreign := published("fast", ClassTerms{del, true}, 1)
	delete(foreign.Labels, v1alpha1.LabelManagedBy)
	r := registration
	for name, c := range map[string]struct {
		view     View
		host     *storagev1.StorageClass
		by       []string
		terms    ClassTerms
		problems map[string]string // parts of the messages, by registration
	}{
		"offered":                                                                 {view: view(map[int][]MemberClass{1: fast}, r(1)), by: []string{"m1"}, terms: ClassTerms{del, true}},
		"reflection is disabled":                                                  {view: view(map[int][]MemberClass{1: fast}, r(1, off))},
		"the registration is being deleted":                                       {view: view(map[int][]MemberClass{1: fast}, r(1, leaving)), host: published("fast", ClassTerms{del, true}, 1)},
		"no registration":                                                         {view: view(map[int][]MemberClass{1: fast}), host: published("fast", ClassTerms{del, true}, 1)},
		"the member has no such class":                                            {view: view(map[int][]MemberClass{1: nil}, r(1)), host: published("fast", ClassTerms{del, true}, 1)},
		"the selector does not match the class":                                   {view: view(map[int][]MemberClass{1: fast}, r(1, selecting("tier", "slow"))), host: published("fast", ClassTerms{del, true}, 1)},
		"the selector matches the class":                                          {view: view(map[int][]MemberClass{1: fast}, r(1, selecting("tier", "fast"))), by: []string{"m1"}, terms: ClassTerms{del, true}},
		"both registrations agree: the older one is first":                        {view: view(map[int][]MemberClass{1: fast, 2: fast}, r(2), r(1)), by: []string{"m1", "m2"}, terms: ClassTerms{del, true}},
		"the policies differ: the older registration decides":                     {view: view(map[int][]MemberClass{1: kept, 2: fast}, r(2), r(1)), by: []string{"m1"}, terms: ClassTerms{retain, true}, problems: map[string]string{"m2": "reclaimPolicy Retain, allowVolumeExpansion true in member \"m1\""}},
		"allowVolumeExpansion differs":                                            {view: view(map[int][]MemberClass{1: fast, 2: {class("fast", del, false)}}, r(1), r(2)), by: []string{"m1"}, terms: ClassTerms{del, true}, problems: map[string]string{"m2": "allowVolumeExpansion false in this member"}},
		"the third registration agrees with the first":                            {view: view(map[int][]MemberClass{1: fast, 2: kept, 3: fast}, r(1), r(2), r(3)), by: []string{"m1", "m3"}, terms: ClassTerms{del, true}, problems: map[string]string{"m2": `class "fast"`}},
		"reflection is disabled in the older registration":                        {view: view(map[int][]MemberClass{1: kept, 2: fast}, r(1, off), r(2)), by: []string{"m2"}, terms: ClassTerms{del, true}},
		"the host has its own class with the name":                                {view: view(map[int][]MemberClass{1: fast, 2: kept}, r(1), r(2)), host: foreign, problems: map[string]string{"m1": "did not create", "m2": "did not create"}},
		"an older registration that differs does not take over a published class": {view: view(map[int][]MemberClass{1: kept, 2: fast}, r(1), r(2)), host: published("fast", ClassTerms{del, true}, 2), by: []string{"m2"}, terms: ClassTerms{del, true}, problems: map[string]string{"m1": `true in member "m2"`}},
		"an older registration that agrees joins a published class":               {view: view(map[int][]MemberClass{1: fast, 2: fast}, r(1), r(2)), host: published("fast", ClassTerms{del, true}, 2), by: []string{"m2", "m1"}, terms: ClassTerms{del, true}},
		"the publisher no longer offers the terms: the older one decides":         {view: view(map[int][]MemberClass{1: kept, 2: {class("fast", del, false)}}, r(1), r(2)), host: published("fast", ClassTerms{del, true}, 2), by: []string{"m1"}, terms: ClassTerms{retain, true}, problems: map[string]string{"m2": `class "fast"`}},
		"the publisher no longer exists: the older one decides":                   {view: view(map[int][]MemberClass{1: kept, 3: fast}, r(1), r(3)), host: published("fast", ClassTerms{del, true}, 2), by: []string{"m1"}, terms: ClassTerms{retain, true}, problems: map[string]string{"m3": `class "fast"`}},
		"away since the start: the class was offered before":                      {view: view(nil, r(1)), host: published("fast", ClassTerms{retain, false}, 1), by: []string{"m1"}, terms: ClassTerms{retain, false}},
		"away since the start: the class was never offered":                       {view: view(nil, r(2)), host: published("fast", ClassTerms{del, true}, 1)},
		"away since the start: the host lacks the class":                          {view: view(nil, r(1))},
		"away since the start: reflection is disabled":                            {view: view(nil, r(1, off)), host: published("fast", ClassTerms{del, true}, 1)},
		"away since the start: another registration agrees":                       {view: view(map[int][]MemberClass{2: fast}, r(1), r(2)), host: published("fast", ClassTerms{del, true}, 1), by: []string{"m1", "m2"}, terms: ClassTerms{del, true}},
		"away since the start: another registration differs":                      {view: view(map[int][]MemberClass{2: kept}, r(1), r(2)), host: published("fast", ClassTerms{del, true}, 1), by: []string{"m1"}, terms: ClassTerms{del, true}, problems: map[string]string{"m2": `class "fast"`}},
		"the registration now has another cluster":                                {view: view(map[int][]MemberClass{1: fast}, r(1, otherCluster)), host: published("fast", ClassTerms{del, true}, 1)},
		"a rule that maps the name to another class":                              {view: view(map[int][]MemberClass{1: fast}, r(1, mapping("fast", "slow")))},
		"a rule that maps the name to itself":                                     {view: view(map[int][]MemberClass{1: fast}, r(1, mapping("fast", "fast"))), by: []string{"m1"}, terms: ClassTerms{del, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.view.RuleOnClass("fast", c.host)
			var by []string
			for _, o := range got.Offering {
				by = append(by, o.Registration)
			}
			if diff := cmp.Diff(c.by, by); diff != "" {
				t.Errorf("offered by (-want +got):\n%s", diff)
			}
			if got.Terms != c.terms {
				t.Errorf("terms %s, want %s", got.Terms, c.terms)
			}
			if len(got.Problems) != len(c.problems) {
				t.Errorf("problems: %v", got.Problems)
			}
			for registration, part := range c.problems {
				if !strings.Contains(got.Problems[registration].Message, part) {
					t.Errorf("the problem for %s is %q, want a message with %q", registration, got.Problems[registration].Message, part)
				}
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	many := func(n int) []MemberClass {
		var classes []MemberClass
		for i := range n {
			classes = append(classes, class(fmt.Sprintf("c%03d", i), del, true))
		}
		return classes
	}
	invalid := func(cr *v1alpha1.ClusterRegistration) {
		cr.Spec.Storage.Reflect.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	}
	for name, c := range map[string]struct {
		classes   []MemberClass
		change    func(*v1alpha1.ClusterRegistration)
		ok        bool
		reason    string
		says      []string
		published int
	}{
		"all classes are published":                              {many(2), nil, true, v1alpha1.ReasonReflected, []string{"member (2)", "c000, c001"}, 2},
		"no classes":                                             {nil, nil, true, v1alpha1.ReasonReflected, []string{"no class that the selector matches"}, 0},
		"exactly the maximum number of classes":                  {many(3), atMost(3), true, v1alpha1.ReasonReflected, nil, 3},
		"one more than the maximum: the last by name is omitted": {many(4), atMost(3), false, v1alpha1.ReasonTooManyClasses, []string{"1 class (c003), because"}, 3},
		"many more classes than the maximum":                     {many(300), atMost(256), false, v1alpha1.ReasonTooManyClasses, []string{"44 classes", "and 39 more"}, 256},
		"a registration without the maximum field":               {many(33), atMost(0), false, v1alpha1.ReasonTooManyClasses, []string{"max (32)"}, 32},
		"unselected classes do not count": {many(4), func(cr *v1alpha1.ClusterRegistration) {
			atMost(1)(cr)
			selecting("tier", "c003")(cr)
		}, true, v1alpha1.ReasonReflected, []string{"c003"}, 1},
		"mapped classes do not count": {many(2), func(cr *v1alpha1.ClusterRegistration) {
			atMost(1)(cr)
			mapping("c000", "x")(cr)
		}, false, v1alpha1.ReasonReflectionConflict, []string{`class "c000", because a host class with that name maps to class "x" in the member (by a rule in spec.storage.classes of ClusterRegistration "m1")`}, 1},
		"a class whose name has the prefix":        {[]MemberClass{class("virtual-disk-x", del, true)}, nil, false, v1alpha1.ReasonReflectionConflict, []string{`maps to class "x" in the member (by the prefix "virtual-disk-"`}, 0},
		"an invalid selector":                      {many(2), invalid, false, v1alpha1.ReasonSelectorInvalid, []string{"spec.storage.reflect.selector"}, 0},
		"the host has its own class with the name": {[]MemberClass{class("taken", del, true)}, nil, false, v1alpha1.ReasonReflectionConflict, []string{`class "taken", because the host has a class`}, 0},
		"more problems than a message can name":    {many(40), atMost(1), false, v1alpha1.ReasonTooManyClasses, []string{"39 classes"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cr := registration(1)
			if c.change != nil {
				c.change(&cr)
			}
			summary, known := view(map[int][]MemberClass{1: c.classes}, cr).SummarizeRulings(&cr, func(name string) *storagev1.StorageClass {
				if name == "taken" {
					return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "ebs.csi.aws.com"}
				}
				return nil
			})
			ok, reason, message := summary.ConditionFields()
			if !known || ok != c.ok || reason != c.reason || len(summary.Published) != c.published {
				t.Errorf("known %t, ok %t, reason %s, %d published: %s; want ok %t, reason %s, %d published", known, ok, reason, len(summary.Published), message, c.ok, c.reason, c.published)
			}
			for _, part := range c.says {
				if !strings.Contains(message, part) {
					t.Errorf("%q does not contain %q", message, part)
				}
			}
			if len(message) > 32768 {
				t.Errorf("the message has %d bytes, but a condition's message may have at most 32768", len(message))
			}
		})
	}
	cr := registration(1)
	if _, known := view(nil, cr).SummarizeRulings(&cr, nil); known {
		t.Error("Summarize returned a summary for a member that was never observed")
	}
}

// The selection is recomputed when the registration or the member changes.
func TestSelectionIsCurrent(t *testing.T) {
	cr := registration(1)
	v := view(map[int][]MemberClass{1: {class("a", del, true), class("b", del, true)}}, cr)
	offers := func() []string {
		selected, known := v.Classes.selectionFor(&cr)
		if !known {
			return nil
		}
		var names []string
		for name := range selected.offers {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"first selection", func() {}, []string{"a", "b"}},
		{"the selector changes", func() { selecting("tier", "b")(&cr); cr.Generation++ }, []string{"b"}},
		{"the registration is re-created", func() { cr.Spec.Storage.Reflect.Selector, cr.UID, cr.Generation = nil, "later", 1 }, []string{"a", "b"}},
		{"the member changes", func() {
			v.Classes.RecordClasses("m1", ObservedClasses{ClusterID: "id-1", Classes: []MemberClass{class("c", del, true)}, At: time.Unix(0, 0)})
		}, []string{"a", "b", "c"}},
		{"the grace period has passed", func() {
			v.Classes.RecordClasses("m1", ObservedClasses{ClusterID: "id-1", Classes: []MemberClass{class("c", del, true)}, At: time.Unix(60, 0)})
		}, []string{"c"}},
		{"the registration records another cluster", func() { cr.Status.ClusterID = "later" }, nil},
		{"the member is removed", func() { cr.Status.ClusterID = "id-1"; v.Classes.ForgetMember("m1") }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, offers()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// Note reports only changes, so that it does not enqueue controllers unnecessarily.
func TestNoteReportsChanges(t *testing.T) {
	book := NewMemberClasses()
	for _, step := range []struct {
		name, cluster string
		classes       []MemberClass
		want          bool
	}{
		{"first observation, without classes", "id", nil, true},
		{"second observation, without classes", "id", nil, false},
		{"a class", "id", []MemberClass{class("a", del, true)}, true},
		{"the same class", "id", []MemberClass{class("a", del, true)}, false},
		{"expansion is no longer allowed", "id", []MemberClass{class("a", del, false)}, true},
		{"another cluster", "later", []MemberClass{class("a", del, false)}, true},
	} {
		if got, _ := book.RecordClasses("m1", ObservedClasses{ClusterID: step.cluster, Classes: step.classes}); got != step.want {
			t.Errorf("%s: changed %t, want %t", step.name, got, step.want)
		}
	}
}

// A class that is missing for less than the grace period is still offered, and a new class does not
// displace others.
func TestOffersOutliveChanges(t *testing.T) {
	one := func(terms ClassTerms) []MemberClass { return []MemberClass{{Name: "b", ClassTerms: terms}} }
	first, other := ClassTerms{del, true}, ClassTerms{retain, true}
	type offers = map[string]ClassTerms
	type step struct {
		after     time.Duration
		classes   []MemberClass
		published []string
		news      bool
		again     time.Duration
		want      offers
	}
	for name, steps := range map[string][]step{
		"deleted and re-created with the same terms": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Minute, nil, nil, false, missingClassGrace, offers{"b": first}},
			{time.Second, one(first), nil, false, 0, offers{"b": first}},
			{missingClassGrace, one(first), nil, false, 0, offers{"b": first}},
		},
		"deleted and re-created with different terms": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Minute, nil, nil, false, missingClassGrace, offers{"b": first}},
			{time.Second, one(other), nil, true, 0, offers{"b": other}},
		},
		"deleted": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Minute, nil, nil, false, missingClassGrace, offers{"b": first}},
			{time.Second, nil, nil, false, missingClassGrace - time.Second, offers{"b": first}},
			{missingClassGrace - time.Second, nil, nil, true, 0, offers{}},
		},
		"re-created and deleted again: a new grace period": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Minute, nil, nil, false, missingClassGrace, offers{"b": first}},
			{time.Second, one(first), nil, false, 0, offers{"b": first}},
			{missingClassGrace, nil, nil, false, missingClassGrace, offers{"b": first}},
		},
		"deleted, and another class is created": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Minute, []MemberClass{{Name: "a", ClassTerms: other}}, nil, true, missingClassGrace, offers{"b": first}},
			{missingClassGrace, []MemberClass{{Name: "a", ClassTerms: other}}, nil, true, 0, offers{"a": other}},
		},
		"a class that is not offered is removed immediately": {
			{0, []MemberClass{{Name: "b", ClassTerms: first}, {Name: "c", ClassTerms: first}}, nil, true, 0, offers{"b": first}},
			{time.Second, one(first), nil, true, 0, offers{"b": first}},
		},
		"a class that is first by name is created later": {
			{0, one(first), nil, true, 0, offers{"b": first}},
			{time.Second, []MemberClass{{Name: "a", ClassTerms: other}, {Name: "b", ClassTerms: first}}, nil, true, 0, offers{"b": first}},
		},
		"offered before the manager started: it keeps its offer": {
			{0, []MemberClass{{Name: "a", ClassTerms: other}, {Name: "b", ClassTerms: first}}, []string{"b"}, true, 0, offers{"b": first}},
		},
		"deleted before the manager started: no grace period": {
			{0, []MemberClass{{Name: "a", ClassTerms: other}}, []string{"b"}, true, 0, offers{"a": other}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cr := registration(1, atMost(1))
			book, at := NewMemberClasses(), time.Unix(0, 0)
			for i, s := range steps {
				at = at.Add(s.after)
				news, again := book.RecordClasses("m1", ObservedClasses{ClusterID: "id-1", Classes: s.classes, Published: s.published, At: at})
				if news != s.news || again != s.again {
					t.Errorf("step %d: changed %t, again after %s; want %t, %s", i, news, again, s.news, s.again)
				}
				selected, _ := book.selectionFor(&cr)
				if diff := cmp.Diff(s.want, selected.offers); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	v := view(map[int][]MemberClass{1: {class("offered", del, true)}}, registration(1))
	host := []storagev1.StorageClass{
		*published("was", ClassTerms{del, true}, 1), *published("another's", ClassTerms{del, true}, 2), *published("offered", ClassTerms{del, true}, 1, 2),
		{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: map[string]string{offeredByLabel("m1"): "true"}}},
	}
	if diff := cmp.Diff([]string{"offered", "was"}, v.ClassNamesFor("m1", host)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"another's", "offered"}, v.ClassNamesFor("m2", host)); diff != "" {
		t.Errorf("for a removed member (-want +got):\n%s", diff)
	}
}

func TestClassOf(t *testing.T) {
	for name, c := range map[string]struct {
		class storagev1.StorageClass
		want  MemberClass
		ok    bool
	}{
		"defaults": {storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, MemberClass{Name: "a", ClassTerms: ClassTerms{del, false}}, true},
		"all fields set": {
			storagev1.StorageClass{
				ObjectMeta:    metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
				ReclaimPolicy: ptr.To(retain), AllowVolumeExpansion: ptr.To(true),
			},
			MemberClass{"a", map[string]string{"x": "y"}, ClassTerms{retain, true}}, true,
		},
		"an invalid name":   {storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "../a"}}, MemberClass{Name: "../a", ClassTerms: ClassTerms{del, false}}, false},
		"an invalid policy": {storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}, ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimPolicy("Burn"))}, MemberClass{Name: "a", ClassTerms: ClassTerms{"Burn", false}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := MemberClassOf(&c.class)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("ok is %t, want %t (-want +got):\n%s", ok, c.ok, diff)
			}
		})
	}
}

func TestHostClass(t *testing.T) {
	ruling := Ruling{Terms: ClassTerms{retain, true}, Offering: []Offering{{"new", "id-9"}, {"newer", "id-10"}}}
	has := published("fast", ClassTerms{del, false}, 1)
	has.Labels["theirs"], has.Annotations, has.UID = "kept", map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}, "uid"
	before := has.DeepCopy()
	got := HostClassForRuling("fast", ruling, has)
	if diff := cmp.Diff(before, has); diff != "" {
		t.Errorf("HostClass changed its argument:\n%s", diff)
	}
	want := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast", UID: "uid",
			Labels:      map[string]string{"theirs": "kept", "app.kubernetes.io/managed-by": "xylem", "offered-by.xylem.io/new": "true", "offered-by.xylem.io/newer": "true"},
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "csi.xylem.io", ReclaimPolicy: ptr.To(retain), AllowVolumeExpansion: ptr.To(true),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: "xylem.io/cluster-id", Values: []string{"id-10", "id-9"}},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !IsReflectedClass(got) || CanUpdateClass(has, got) || !CanUpdateClass(got, HostClassForRuling("fast", Ruling{Terms: ClassTerms{retain, false}}, got)) {
		t.Error("Ours or Changeable misjudged the reflected class")
	}
}
