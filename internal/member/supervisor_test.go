package member

import (
	"net/netip"
	"testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

func registration(change ...func(*Registration)) Registration {
	r := Registration{
		Member: mirror.Member{Registration: "cluster38", NodeName: "kosmos-cluster38", HostID: "host", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Rules:  mapped("gp3"),
		UID:    "cr-uid", Kubeconfig: []byte("kubeconfig"), ConfirmRestore: "",
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// mapped are the rules of a registration that maps a class.
func mapped(to string) placement.Rules {
	return placement.RulesOf(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Storage: v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "disk", Member: to}}}}})
}

// A link is made anew when something of the registration changes, and not else:
// every reconcile of a registration says what is wanted (I5).
func TestWantRestartsOnlyOnChange(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Registration)
		want   bool
	}{
		"the same":               {func(*Registration) {}, false},
		"a new kubeconfig":       {func(r *Registration) { r.Kubeconfig = []byte("newer") }, true},
		"another class":          {func(r *Registration) { r.Rules = mapped("gp4") }, true},
		"other addresses":        {func(r *Registration) { r.PodCIDRs = nil }, true},
		"a restore is confirmed": {func(r *Registration) { r.ConfirmRestore = "host-1-member-2" }, true},
		"it is refused": {func(r *Registration) {
			r.Refused = problem(v1alpha1.ReasonSecretNotFound, "no Secret")
		}, true},
		"it was deleted and made anew": {func(r *Registration) { r.UID = "newer" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet(Config{})
			f.Ensure(registration())
			s := f.supervisors["cluster38"]
			_, changed := s.current()
			f.Ensure(registration(tc.change))
			restarts := false
			select {
			case <-changed:
				restarts = true
			default:
			}
			if restarts != tc.want {
				t.Errorf("restarts: %v, want %v", restarts, tc.want)
			}
			if f.supervisors["cluster38"] != s {
				t.Error("another supervisor took its place")
			}
			if _, again := s.current(); tc.want == (again == changed) {
				t.Error("the next change would not be noticed, or this one twice")
			}
		})
	}
}

func TestRemoveBeforeStart(t *testing.T) {
	f := NewFleet(Config{})
	if !f.Remove("cluster38") {
		t.Error("a member that was never there is not gone")
	}
	f.Ensure(registration())
	if _, known := f.State("cluster38"); !known {
		t.Error("a member that is wanted has no state")
	}
	if !f.Remove("cluster38") {
		t.Error("a member whose supervisor never ran is not gone")
	}
	if _, known := f.State("cluster38"); known {
		t.Error("a removed member has a state")
	}
}

// Of two registrations of one cluster, and of two of the same name, each has a fence of
// its own: the holder is not the process alone.
func TestFenceOfARegistration(t *testing.T) {
	f := NewFleet(Config{Identity: "manager"})
	s := &supervisor{fleet: f, fences: map[string]*Fence{}}
	c := &connection{bearer: newBearer("", f.clock)}
	first := registration(func(r *Registration) { r.ClusterID = "3f0c" })
	again := registration(func(r *Registration) { r.ClusterID, r.UID = "3f0c", "another-uid" })

	one := s.fence(t.Context(), first, c)
	if one.identity != "manager/cr-uid" || s.fence(t.Context(), first, c) != one {
		t.Errorf("holder %q, or the fence is another when it connects again", one.identity)
	}
	if two := s.fence(t.Context(), again, c); two == one || two.identity == one.identity {
		t.Errorf("holder %q, for two registrations", two.identity)
	}
}

// A registration whose deletion has let go of its link, and that needs it again
// (a claim came meanwhile), gets another one.
func TestEnsureAfterTheEnd(t *testing.T) {
	f := NewFleet(Config{})
	f.Ensure(registration())
	name := registration().Registration
	ends := f.supervisors[name]
	if f.Ensure(registration()); f.supervisors[name] != ends {
		t.Error("a supervisor that has not ended was replaced")
	}
	close(ends.done)
	if f.Ensure(registration()); f.supervisors[name] == ends {
		t.Error("a supervisor that has ended is taken for one that runs")
	}
}
