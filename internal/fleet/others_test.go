package fleet

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
)

// registrations is a reader that lists the given registrations.
type registrations struct {
	client.Client
	items []v1alpha1.ClusterRegistration
}

func (r registrations) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.ClusterRegistrationList).Items = r.items //nolint:forcetypeassert // nothing else is listed
	return nil
}

// Others returns every registered member, and whether it can be checked.
func TestOthers(t *testing.T) {
	linked := func(id string) *supervisor {
		return &supervisor{connection: &member.Connection{Live: registrations{}}, linkFence: &fencing.Fence{}, state: State{Identity: member.Identity{ClusterID: id}}}
	}
	away := func(id string) *supervisor {
		return &supervisor{state: State{Identity: member.Identity{ClusterID: id}}}
	}
	for name, tc := range map[string]struct {
		supervisor *supervisor
		deleting   bool
		forced     bool
		want       map[string]bool // whether each can be checked
	}{
		"linked":     {linked("id-3"), false, false, map[string]bool{"two": true, "three": true}},
		"not linked": {away("id-3"), false, false, map[string]bool{"two": true, "three": false}},
		"not linked, and its identity was never read": {away(""), false, false, map[string]bool{"two": true, "three": false}},
		"not in the fleet yet":                        {nil, false, false, map[string]bool{"two": true, "three": false}},
		"being deleted":                               {linked("id-3"), true, false, map[string]bool{"two": true, "three": true}},
		"being deleted, and not linked":               {away("id-3"), true, false, map[string]bool{"two": true, "three": false}},
		"being deleted by force, and not linked":      {away("id-3"), true, true, map[string]bool{"two": true}},
		"being deleted by force, but still linked":    {linked("id-3"), true, true, map[string]bool{"two": true, "three": true}},
		"rejected as a duplicate of this member":      {away("id-1"), false, false, map[string]bool{"two": true}},
		"rejected as a duplicate of a linked member":  {away("id-2"), false, false, map[string]bool{"two": true}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []v1alpha1.ClusterRegistration
			for _, name := range []string{"one", "three", "two"} {
				all = append(all, v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			all[1].Status.ClusterID = "id-3"
			if tc.deleting {
				all[1].DeletionTimestamp = &metav1.Time{}
			}
			if tc.forced {
				all[1].Annotations = map[string]string{v1alpha1.AnnotationForceDeregister: "true"}
			}
			f := New(Config{HostLive: registrations{items: all}})
			f.supervisors["one"], f.supervisors["two"] = linked("id-1"), linked("id-2")
			if tc.supervisor != nil {
				f.supervisors["three"] = tc.supervisor
			}
			others, err := f.OtherMembers(t.Context(), mirror.Member{Registration: "one", ClusterID: "id-1"})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, other := range others {
				got[other.Registration] = other.Live != nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("others (-want +got):\n%s", diff)
			}
		})
	}
}
