package clusterregistration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// The registration that recorded a cluster first owns it, even if another one is older, or is the
// only one that is connected.
func TestOwnerOf(t *testing.T) {
	cr := func(name string, age time.Duration, id string) v1alpha1.ClusterRegistration {
		c := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		c.Status.ClusterID = id
		return c
	}
	const older, younger = time.Hour, time.Minute
	type all = []v1alpha1.ClusterRegistration
	for name, tc := range map[string]struct {
		recorded types.UID
		all      all
		want     string
	}{
		"no registration has recorded the cluster":                                    {"", all{cr("a", older, ""), cr("b", younger, "")}, ""},
		"the younger registration has recorded the cluster (I3)":                      {"b", all{cr("a", older, ""), cr("b", younger, clusterID)}, "b"},
		"the younger registration is about to record the cluster":                     {"b", all{cr("a", older, ""), cr("b", younger, "")}, "b"},
		"both registrations have recorded the cluster":                                {"b", all{cr("a", older, clusterID), cr("b", younger, clusterID)}, "b"},
		"the owner was deleted, and no other registration has recorded the cluster":   {"c", all{cr("a", older, ""), cr("b", younger, "")}, ""},
		"the owner was deleted, and another registration has recorded the cluster":    {"c", all{cr("a", older, ""), cr("b", younger, clusterID)}, "b"},
		"the owner has since recorded another cluster":                                {"a", all{cr("a", older, "other"), cr("b", younger, "")}, ""},
		"the record names no owner, because an earlier version wrote it":              {"", all{cr("a", older, ""), cr("b", younger, clusterID)}, "b"},
		"the record names no owner, and both registrations have recorded the cluster": {"", all{cr("b", younger, clusterID), cr("a", older, clusterID)}, "a"},
		"the only registration has recorded another cluster":                          {"", all{cr("a", older, "other")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if owner := ownerOfCluster(tc.recorded, tc.all, clusterID); owner != nil {
				got = owner.Name
			}
			if got != tc.want {
				t.Errorf("owner is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	made := func(name string, at time.Time) *v1alpha1.ClusterRegistration {
		return &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}}
	}
	for name, tc := range map[string]struct {
		a, b *v1alpha1.ClusterRegistration
		want bool
	}{
		"a was created before b": {made("b", now.Time), made("a", now.Add(time.Second)), true},
		"a was created after b":  {made("a", now.Add(time.Second)), made("b", now.Time), false},
		"both were created in the same second, and a's name sorts first": {made("a", now.Time), made("b", now.Time), true},
		"both were created in the same second, and b's name sorts first": {made("b", now.Time), made("a", now.Time), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOlderRegistration(tc.a, tc.b); got != tc.want {
				t.Errorf("older is %t, want %t", got, tc.want)
			}
		})
	}
}

// All nodes whose names end in a member's node name belong to that member.
func TestNodeNamesConflict(t *testing.T) {
	named := func(node string) *v1alpha1.ClusterRegistration {
		cr := &v1alpha1.ClusterRegistration{}
		cr.Spec.Node.Name = node
		return cr
	}
	for names, want := range map[[2]string]bool{
		{"kosmos-x", "kosmos-x"}: true, {"a.kosmos-x", "kosmos-x"}: true, {"kosmos-x", "a.kosmos-x"}: true,
		{"kosmos-x", "kosmos-y"}: false, {"a.kosmos-x", "b.kosmos-x"}: false, {"akosmos-x", "kosmos-x"}: false,
	} {
		if got := nodeNamesConflict(named(names[0]), named(names[1])); got != want {
			t.Errorf("%q: conflict %t, want %t", names, got, want)
		}
	}
}
