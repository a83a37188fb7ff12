package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// candidate returns a connected member with a Ready node and 10Gi of class "fast", which is "gp3" in the member.
func candidate(change ...func(*v1alpha1.ClusterRegistration, *Candidate)) Candidate {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
	cr.Status.ClusterID, cr.Spec.Storage.Classes = "id38", []v1alpha1.ClassMapping{{Host: "fast", Member: "gp3"}}
	node := virtualNode(func(*corev1.Node) {})
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c := Candidate{Connection: Connection{Connected: true}, Largest: map[string]resource.Quantity{"fast": resource.MustParse("10Gi")}}
	for _, f := range change {
		f(cr, &c)
	}
	c.Member = MemberOfRegistration(cr, node)
	return c
}

func offersNothing(_ *v1alpha1.ClusterRegistration, c *Candidate) { c.Largest = nil }

func admitsNothing(cr *v1alpha1.ClusterRegistration, _ *Candidate) {
	cr.Spec.Namespaces.Allow = []string{"other"}
}

// Each obstacle has one reason, one cause and one remedy, for all callers.
func TestVerdictOn(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	has := func(is bool) func(string, string) bool {
		return func(registration, class string) bool { return is && registration == "cluster38" && class == "gp3" }
	}
	for name, tc := range map[string]struct {
		candidate Candidate
		query     Query
		reason    string // empty if the member is suitable
		message   string
	}{
		"suitable":               {candidate: candidate(), query: Query{Claims: []ClaimNeed{{Class: class, Size: resource.MustParse("10Gi")}}}},
		"a bound claim":          {candidate: candidate(offersNothing), query: Query{Claims: []ClaimNeed{{}}}},
		"no claim":               {candidate: candidate(offersNothing), query: Query{}},
		"any capacity suffices":  {candidate: candidate(), query: Query{Claims: []ClaimNeed{{Class: class}}}},
		"too little capacity":    {candidate(), Query{Claims: []ClaimNeed{{Name: "data", Class: class, Size: resource.MustParse("11Gi")}}}, v1alpha1.ReasonNoCapacity, `member "cluster38" has 10Gi of the 11Gi that claim "data" requests. Request less`},
		"the claim's class":      {candidate(offersNothing), Query{Claims: []ClaimNeed{{Class: class}}, HasClass: has(false)}, v1alpha1.ReasonNotOffered, `member "cluster38" has no StorageClass "gp3" (by a rule in spec.storage.classes of ClusterRegistration "cluster38"). Create the class in a member, or map the class of the claim to another one`},
		"the class of one claim": {candidate(offersNothing), Query{Claims: []ClaimNeed{{Name: "data", Class: class}}, HasClass: has(false)}, v1alpha1.ReasonNotOffered, `has no StorageClass "gp3" (for class "fast" of claim "data", by a rule`},
		"the class, or only its capacity: the caller does not know": {candidate(offersNothing), Query{Claims: []ClaimNeed{{Class: class}}}, v1alpha1.ReasonNotOffered, `has no capacity for StorageClass "fast" of the host: the member lacks StorageClass "gp3" (by a rule in spec.storage.classes of ClusterRegistration "cluster38"), or has not reported capacity for that class yet. Create the class in the member`},
		"the capacity of a class that the member has":               {candidate(offersNothing), Query{Claims: []ClaimNeed{{Class: class}}, HasClass: has(true)}, v1alpha1.ReasonCapacityUnpublished, `member "cluster38" has no CSIStorageCapacity in the host for class "fast". If this`},
		"a rule precedes the capacity":                              {candidate(offersNothing, admitsNothing), Query{Namespace: Namespace{Name: "shop"}, Claims: []ClaimNeed{{Class: class}}}, v1alpha1.ReasonNamespaceNotAdmitted, `member "cluster38" does not admit namespace "shop": no pattern`},
		"a reserved namespace":                                      {candidate(), Query{Namespace: Namespace{Name: "kube-system"}}, v1alpha1.ReasonNamespaceReserved, `member "cluster38" does not admit namespace "kube-system", which is reserved for the cluster itself. Use another namespace`},
		"leaving":                                                   {candidate(func(cr *v1alpha1.ClusterRegistration, _ *Candidate) { cr.DeletionTimestamp = &metav1.Time{} }), Query{}, v1alpha1.ReasonMemberLeaving, `member "cluster38" is being deregistered. To use this member, register the member again`},
	} {
		v := tc.query.VerdictOn(tc.candidate)
		if refusal := v.Refusal(); tc.reason == "" && (refusal != nil || !v.Suitable()) ||
			tc.reason != "" && (refusal == nil || v.Suitable() || refusal.Reason != tc.reason || !strings.Contains(refusal.Message, tc.message)) {
			t.Errorf("%s: suitable: %t, %+v, want %s, %q", name, v.Suitable(), refusal, tc.reason, tc.message)
		}
	}
}

// A rule that depends on labels which are not known yet is no obstacle, but does not admit the claim either.
func TestUndecided(t *testing.T) {
	c := candidate(func(cr *v1alpha1.ClusterRegistration, _ *Candidate) {
		cr.Spec.Namespaces.MatchLabels = map[string]string{"team": "red"}
	})
	v := Query{Namespace: Namespace{Name: "shop"}, Claims: []ClaimNeed{{}, {}}}.VerdictOn(c)
	if v.Obstacle() != nil || v.Admitted() || v.Suitable() || !v.Schedulable {
		t.Errorf("%+v", v)
	}
}

// A list of members names each member's obstacle, and each remedy once.
func TestCausesAndRemedies(t *testing.T) {
	second := candidate(admitsNothing)
	second.Registration = "cluster39"
	q := Query{Namespace: Namespace{Name: "shop"}}
	one := Survey(q, []Candidate{candidate(admitsNothing)})
	both := Survey(q, []Candidate{candidate(admitsNothing), second})
	if got, want := strings.Join(Remedies(one), "; "), `Use another namespace, or ask an admin to change spec.namespaces of ClusterRegistration "cluster38"`; got != want {
		t.Errorf("the remedy for one member is %q, want %q", got, want)
	}
	if got, want := strings.Join(Remedies(both), "; "), "Use another namespace, or ask an admin to change spec.namespaces of a ClusterRegistration"; got != want {
		t.Errorf("the remedies for two members are %q, want %q", got, want)
	}
	if got := Causes(both); len(got) != 2 || !strings.HasPrefix(got[1], `member "cluster39" does not admit namespace "shop": `) {
		t.Errorf("the causes are %q", got)
	}
}

// Hundreds of virtual nodes of a member with the same obstacle take one line.
func TestCausesOfGroups(t *testing.T) {
	group := func(name string, change func(*corev1.Node)) Candidate {
		c := candidate()
		c.Node.Name = v1alpha1.GroupNodeName(name, c.NodeName)
		c.Node.Spec.Taints = nil
		change(c.Node)
		return c
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	q := Query{Pods: []corev1.Pod{{}}}
	for name, tc := range map[string]struct {
		candidates []Candidate
		want       string
	}{
		"one cause": {[]Candidate{group("a", cordoned), group("b", cordoned)}, `member "cluster38" is cordoned`},
		"two causes": {[]Candidate{group("a", cordoned), group("b", tainted), group("c", cordoned)},
			`member "cluster38" (on "a.kosmos-cluster38", "c.kosmos-cluster38") is cordoned; member "cluster38" (on "b.kosmos-cluster38") has a taint that the Pod does not tolerate (gpu:NoSchedule)`},
	} {
		verdicts := Survey(q, tc.candidates)
		if got := strings.Join(Causes(verdicts), "; "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got := Remedies(verdicts); len(got) != strings.Count(tc.want, "member ") || !strings.Contains(got[0], "a.kosmos-cluster38") {
			t.Errorf("%s: the remedies are %q", name, got)
		}
	}
	best := OneOfEachMember(Survey(q, []Candidate{group("a", cordoned), group("b", func(*corev1.Node) {}), group("c", tainted)}))
	if len(best) != 1 || best[0].VirtualNodeName() != "b.kosmos-cluster38" {
		t.Errorf("the best virtual nodes are %+v", best)
	}
}
