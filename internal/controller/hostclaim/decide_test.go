package hostclaim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

func seen(change ...func(*observed)) observed {
	o := observed{
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
		},
		class: &storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: "fast"},
			Provisioner:       v1alpha1.ProvisionerName,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		},
		members: []memberSeen{offers("a")},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func offers(name string) memberSeen {
	return memberSeen{name: name, connected: true, class: "fast", rule: "the same name", offers: true}
}

func lacks(name string) memberSeen {
	return memberSeen{name: name, connected: true, class: "gp3", rule: "parameter"}
}

func selected(s selection) func(*observed) {
	return func(o *observed) {
		o.selected = s
		o.claim.Annotations = map[string]string{route.AnnSelectedNode: "worker-1"}
	}
}

func members(of ...memberSeen) func(*observed) { return func(o *observed) { o.members = of } }

func stuck(o *observed) { o.stuck = true }

func parameter(key, value string) func(*observed) {
	return func(o *observed) { o.class.Parameters = map[string]string{key: value} }
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		reason   string // empty: nothing is said
		says     []string
		unselect bool
	}{
		"gone":                {observed: observed{}},
		"in order":            {observed: seen()},
		"in order, stuck":     {observed: seen(stuck)},
		"bound":               {observed: seen(members(), func(o *observed) { o.claim.Spec.VolumeName = "v" })},
		"deleting":            {observed: seen(members(), func(o *observed) { o.claim.DeletionTimestamp = &metav1.Time{} })},
		"no class by name":    {observed: seen(members(), func(o *observed) { o.claim.Spec.StorageClassName = nil })},
		"class unknown":       {observed: seen(members(), func(o *observed) { o.class = nil })},
		"another's class":     {observed: seen(members(), selected(plain), func(o *observed) { o.class.Provisioner = "ebs.csi.aws.com" })},
		"immediate":           {observed: seen(func(o *observed) { o.class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate) }), reason: reasonImmediate, says: []string{"fast", "WaitForFirstConsumer"}},
		"no binding mode":     {observed: seen(func(o *observed) { o.class.VolumeBindingMode = nil }), reason: reasonImmediate},
		"immediate, selected": {observed: seen(selected(plain), func(o *observed) { o.class.VolumeBindingMode = nil }), reason: reasonImmediate},
		"promise":             {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise")), reason: reasonPromise, says: []string{"not supported yet"}},
		"misspelled":          {observed: seen(parameter("xylem.io/memberclass", "gp3")), reason: mirror.ReasonClassInvalid, says: []string{"xylem.io/memberclass"}},

		"a virtual node selected": {observed: seen(selected(virtual), members(lacks("a")), stuck)},
		"a plain node selected":   {observed: seen(selected(plain)), reason: reasonSelectedNode, says: []string{"worker-1", "node of the host itself"}, unselect: true},
		"a node that is gone":     {observed: seen(selected(missing)), reason: reasonSelectedNode, says: []string{"worker-1", "does not exist"}, unselect: true},

		"no member":              {observed: seen(members()), reason: reasonNoMembers, says: []string{"ClusterRegistration"}},
		"none connected":         {observed: seen(members(memberSeen{name: "a"}, memberSeen{name: "b"})), reason: reasonNoneConnected, says: []string{"(a, b)"}},
		"being connected":        {observed: seen(members(memberSeen{name: "a", connecting: true}))},
		"not offered":            {observed: seen(members(lacks("a")))},
		"not offered, stuck":     {observed: seen(members(lacks("a"), memberSeen{name: "b"}), stuck), reason: reasonNotOffered, says: []string{`a has no class "gp3" (looked for by parameter)`, "not connected: b"}},
		"partly offered, stuck":  {observed: seen(members(offers("a"), lacks("b")), stuck), reason: reasonNotOffered, says: []string{"offered by a", "b has no class"}},
		"partly offered":         {observed: seen(members(offers("a"), lacks("b")))},
		"many members, named":    {observed: seen(members(lacks("a"), lacks("b"), lacks("c"), lacks("d"), lacks("e"), lacks("f"), lacks("g")), stuck), reason: reasonNotOffered, says: []string{"and 2 more"}},
		"offered by one, others": {observed: seen(members(offers("a"), memberSeen{name: "b"}), stuck)},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.observed)
			if got.reason != tc.reason || got.unselect != tc.unselect {
				t.Errorf("decided %+v, want reason %q, unselect %t", got, tc.reason, tc.unselect)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.note, part) {
					t.Errorf("note %q lacks %q", got.note, part)
				}
			}
		})
	}
}
