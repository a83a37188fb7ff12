package placement

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// choice is one value of an input to the decision, and the reason why this value is refused, or "".
type choice[T any] struct {
	name    string
	value   T
	refuses string
}

// TestAnswer tries all combinations of inputs. If several reasons apply, the class's reasons come
// first, then the volume's, and then the namespace's.
func TestAnswer(t *testing.T) {
	const id, zone = v1alpha1.LabelClusterID, "topology.kubernetes.io/zone"
	storage := []choice[v1alpha1.StorageSpec]{
		{"no rules", v1alpha1.StorageSpec{}, ""},
		{"the class is mapped", v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "ssd", Member: "gp3"}}}, ""},
	}
	namespaces := []choice[v1alpha1.NamespacesSpec]{
		{"all namespaces", v1alpha1.NamespacesSpec{}, ""},
		{"this namespace", v1alpha1.NamespacesSpec{Allow: []string{"shop"}}, ""},
		{"other namespaces", v1alpha1.NamespacesSpec{Allow: []string{"team-*"}}, v1alpha1.ReasonNamespaceNotAdmitted},
		{"not this namespace", v1alpha1.NamespacesSpec{Deny: &[]string{"shop"}}, v1alpha1.ReasonNamespaceNotAdmitted},
	}
	terms := []choice[[]corev1.TopologySelectorTerm]{
		{"anywhere", nil, ""},
		{"here", topologies([]string{id, "id38"}), ""},
		{"elsewhere", topologies([]string{id, "id39"}), v1alpha1.ReasonClassKeepsOff},
		{"in the zone", topologies([]string{id, "id38", zone, "eu-1"}), ""},
		{"nowhere", topologies(nil), v1alpha1.ReasonClassKeepsOff},
	}
	nodes := []choice[map[string]string]{
		{"in the zone", map[string]string{id: "id38", zone: "eu-1"}, ""},
		{"in another zone", map[string]string{id: "id38", zone: "eu-2"}, "in the zone"},
		{"without a zone", map[string]string{id: "id38"}, "in the zone"},
		{"no node", nil, "here, in the zone"},
	}
	classes := []choice[[]string]{
		{"unknown classes", nil, ""},
		{"both classes", []string{"ssd", "gp3"}, ""},
		{"one class", []string{"gp3"}, "ssd"},
		{"no class", []string{}, "ssd, gp3"},
	}
	inside := []choice[*corev1.Namespace]{
		{"no namespace", nil, ""},
		{"the host's namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: "host-1"}}}, ""},
		{"a foreign namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, v1alpha1.ReasonNamespaceConflict},
	}
	volumes := []choice[*corev1.PersistentVolume]{
		{"no volume", nil, ""},
		{"a volume for all members", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}, ""},
		{"a volume in this member", pinned("id38"), "no node"},
		{"a volume in another member", pinned("id39"), v1alpha1.ReasonVolumeElsewhere},
	}
	for _, withClass := range []bool{false, true} {
		for s, st := range storage {
			for _, ns := range namespaces {
				for _, term := range terms {
					for _, node := range nodes {
						for _, has := range classes {
							for _, in := range inside {
								for _, volume := range volumes {
									cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
									cr.Spec.Storage, cr.Spec.Namespaces = st.value, ns.value
									m := MemberOfRegistration(cr, nil)
									m.HostID = "host-1"
									if node.value != nil {
										m.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.value}}
									}
									if has.value != nil {
										m.Objects = &MemberObjects{Classes: has.value, Namespace: in.value}
									}
									q := Request{Namespace: Namespace{Name: "shop"}, Volume: volume.value}
									leads := ""
									if withClass {
										q.Class = class(nil)
										q.Class.AllowedTopologies = term.value
										leads = []string{"ssd", "gp3"}[s]
									}
									off := term.refuses != "" || term.value != nil && strings.Contains(node.refuses, term.name)
									var want string
									switch {
									case withClass && off:
										want = v1alpha1.ReasonClassKeepsOff
									case withClass && strings.Contains(has.refuses, leads):
										want = v1alpha1.ReasonClassNotFound
									case volume.refuses == v1alpha1.ReasonVolumeElsewhere, volume.refuses != "" && volume.refuses == node.name:
										want = v1alpha1.ReasonVolumeElsewhere
									case ns.refuses != "":
										want = ns.refuses
									case has.value != nil:
										want = in.refuses
									}
									name := fmt.Sprintf("class: %t, %s, %s, class %s, node %s, member has %s, %s, %s",
										withClass, st.name, ns.name, term.name, node.name, has.name, in.name, volume.name)
									check(t, name, m.AnswerRequest(q), leads, want, has.value != nil && in.value == nil)
								}
							}
						}
					}
				}
			}
		}
	}
}

func check(t *testing.T, name string, got Answer, class, reason string, waits bool) {
	t.Helper()
	if got.Class != class || (got.Rule != "") != (class != "") {
		t.Errorf("%s: class %q by %q, want %q", name, got.Class, got.Rule, class)
	}
	if reason == "" {
		if got.Refusal != nil || got.MustWait != waits || got.AllowedNow() == waits {
			t.Errorf("%s: %+v (%v), want no refusal, waits: %t", name, got, got.Refusal, waits)
		}
		return
	}
	if got.Refusal == nil || got.Refusal.Reason != reason || got.AllowedNow() || got.MustWait ||
		!strings.Contains(got.Refusal.Message, "cluster38") {
		t.Errorf("%s: %+v (%v), want %s", name, got, got.Refusal, reason)
	}
	if byClass := reason == v1alpha1.ReasonClassKeepsOff || reason == v1alpha1.ReasonClassNotFound; got.RefusedByClass() != byClass {
		t.Errorf("%s: ByClass() = %t", name, got.RefusedByClass())
	}
}

// pinned returns a volume whose node affinity selects one cluster.
func pinned(cluster string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: labelled(corev1.NodeSelectorRequirement{
			Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{cluster}})}}}
}

// A member that is being deregistered keeps its volumes, but creates no new ones.
func TestAnswerLeaving(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ssd"}}
	for name, tc := range map[string]struct {
		leaving bool
		request Request
		want    string
	}{
		"a new volume":                   {true, Request{Class: class}, v1alpha1.ReasonMemberLeaving},
		"an existing volume":             {true, Request{}, ""},
		"a new volume, before it leaves": {false, Request{Class: class}, ""},
	} {
		m := Member{Member: mirror.Member{Registration: "cluster38", ClusterID: "id38", Leaving: tc.leaving}}
		got := ""
		if refusal := m.AnswerRequest(tc.request).Refusal; refusal != nil {
			got = refusal.Reason
		}
		if got != tc.want {
			t.Errorf("%s: reason %q, want %q", name, got, tc.want)
		}
	}
}
