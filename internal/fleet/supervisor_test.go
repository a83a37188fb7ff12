package fleet

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/membertest"
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

// mapped returns rules that map a class to the given member class.
func mapped(to string) placement.Rules {
	return placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Storage: v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "disk", Member: to}}}}})
}

// Ensure re-creates a link only if the registration has changed, because every reconcile of a
// registration calls it (I5).
func TestWantRestartsOnlyOnChange(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Registration)
		want   bool
	}{
		"unchanged":               {func(*Registration) {}, false},
		"a new kubeconfig":        {func(r *Registration) { r.Kubeconfig = []byte("newer") }, true},
		"a changed class mapping": {func(r *Registration) { r.Rules = mapped("gp4") }, true},
		"changed Pod CIDRs":       {func(r *Registration) { r.PodCIDRs = nil }, true},
		"a restore is confirmed":  {func(r *Registration) { r.ConfirmRestore = "host-1-member-2" }, true},
		"the registration is refused": {func(r *Registration) {
			r.LinkProblem = access.ConnectionProblemf(v1alpha1.ReasonSecretNotFound, "no Secret")
		}, true},
		"the registration is being deleted": {func(r *Registration) { r.Leaving = true }, true},
		"the registration was re-created":   {func(r *Registration) { r.UID = "newer" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(Config{})
			f.EnsureLink(registration())
			s := f.supervisors["cluster38"]
			_, changed := s.currentRegistration()
			f.EnsureLink(registration(tc.change))
			restarts := false
			select {
			case <-changed:
				restarts = true
			default:
			}
			if restarts != tc.want {
				t.Errorf("link is re-created: %v, want %v", restarts, tc.want)
			}
			if f.supervisors["cluster38"] != s {
				t.Error("Ensure replaced the supervisor")
			}
			if _, again := s.currentRegistration(); tc.want == (again == changed) {
				t.Error("the supervisor misses the next change, or observes this change twice")
			}
		})
	}
}

func TestRemoveBeforeStart(t *testing.T) {
	f := New(Config{})
	if !f.RemoveLink("cluster38") {
		t.Error("Remove reports a remaining link for an unknown member")
	}
	f.EnsureLink(registration())
	if _, known := f.MemberState("cluster38"); !known {
		t.Error("a member has no state after Ensure")
	}
	if !f.RemoveLink("cluster38") {
		t.Error("Remove reports a remaining link for a supervisor that never ran")
	}
	if _, known := f.MemberState("cluster38"); known {
		t.Error("a removed member still has a state")
	}
}

// The holder identity depends on the registration's UID, so each registration has its own fence,
// even if two registrations have the same cluster or the same name.
func TestFenceOfARegistration(t *testing.T) {
	f := New(Config{Identity: "manager"})
	s := &supervisor{fleet: f, fences: map[string]*fencing.Fence{}}
	c := &member.Connection{Bearer: budget.NewTokenHolder("", f.clock)}
	first := registration(func(r *Registration) { r.ClusterID = "3f0c" })
	again := registration(func(r *Registration) { r.ClusterID, r.UID = "3f0c", "another-uid" })

	one := s.fenceFor(t.Context(), first, c)
	if !one.UsesIdentity("manager/cr-uid") || s.fenceFor(t.Context(), first, c) != one {
		t.Error("the fence has the wrong holder, or changes when the member reconnects")
	}
	if two := s.fenceFor(t.Context(), again, c); two == one || two.UsesIdentity("manager/cr-uid") {
		t.Error("two registrations share a holder")
	}
}

// Ensure creates a new link after the previous one has ended, for example if a claim appears during
// deregistration.
func TestEnsureAfterTheEnd(t *testing.T) {
	f := New(Config{})
	f.EnsureLink(registration())
	name := registration().Registration
	ends := f.supervisors[name]
	if f.EnsureLink(registration()); f.supervisors[name] != ends {
		t.Error("a supervisor that has not ended was replaced")
	}
	close(ends.done)
	if f.EnsureLink(registration()); f.supervisors[name] == ends {
		t.Error("a supervisor that has ended was not replaced")
	}
}

// A link continues if the kubeconfig has another token for the same ServiceAccount and server, and
// ends after any other change.
func TestRenewed(t *testing.T) {
	first, second := membertest.UnsignedToken(`{`+membertest.SubjectClaims+`"iat":100,"exp":700}`), membertest.UnsignedToken(`{`+membertest.SubjectClaims+`"iat":400,"exp":1000}`)
	was := registration(func(r *Registration) { r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", first) })
	for name, tc := range map[string]struct {
		change func(*Registration)
		want   string
	}{
		"a renewed token": {func(r *Registration) { r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", second) }, second},
		"another server":  {func(r *Registration) { r.Kubeconfig = membertest.KubeconfigForToken(t, "https://other", second) }, ""},
		"another account": {func(r *Registration) {
			r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", membertest.UnsignedToken(`{"iss":"https://member","sub":"system:serviceaccount:a:b","iat":400,"exp":1000}`))
		}, ""},
		"another issuer": {func(r *Registration) {
			r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", membertest.UnsignedToken(`{"iss":"https://else","sub":"system:serviceaccount:xylem-system:xylem","iat":400,"exp":1000}`))
		}, ""},
		"not a ServiceAccount token": {func(r *Registration) { r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", "abc") }, ""},
		"an invalid kubeconfig":      {func(r *Registration) { r.Kubeconfig = []byte("{") }, ""},
		"a renewed token, and a restore is confirmed": {func(r *Registration) {
			r.Kubeconfig = membertest.KubeconfigForToken(t, "https://member", second)
			r.ConfirmRestore = "host-1-member-2"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := registration(func(r *Registration) { r.Kubeconfig = was.Kubeconfig }, tc.change)
			got, ok := now.renewedToken(was)
			if !ok {
				got = ""
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	raw := membertest.UnsignedToken(`{` + membertest.SubjectClaims + `"iat":100,"exp":700}`)
	unauthorized := access.ConnectionProblemf(v1alpha1.ReasonUnauthorized, "no")
	for name, tc := range map[string]struct {
		token string
		now   int64
		err   *access.ConnectionProblem
		want  bool
	}{
		"the token has expired":       {raw, 700, unauthorized, true},
		"the token has not expired":   {raw, 699, unauthorized, false},
		"not an Unauthorized problem": {raw, 700, access.ConnectionProblemf(v1alpha1.ReasonForbidden, "no"), false},
		"an opaque token":             {"abc", 700, unauthorized, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainExpiredToken(tc.token, time.Unix(tc.now, 0), tc.err)
			if said := strings.Contains(got.Error(), "expired at 1970-01-01T00:11:40Z"); said != tc.want {
				t.Errorf("says %q", got)
			}
		})
	}
}

// A member is lost after several failures in a row. Waiting for a fence is not a failure.
func TestLost(t *testing.T) {
	s := &supervisor{fleet: New(Config{}), name: "one", log: logr.Discard()}
	fails := func(reason string) { _ = s.recordDisconnect(access.ConnectionProblemf(reason, "failed")) }
	for i, step := range []struct {
		do   func()
		lost bool
	}{
		{func() {}, false},
		{func() { fails(v1alpha1.ReasonUnreachable) }, false},
		{func() { fails(v1alpha1.ReasonWaitingForFence) }, false},
		{func() { fails(v1alpha1.ReasonWaitingForFence) }, false},
		{func() { fails(v1alpha1.ReasonUnreachable) }, false},
		{func() { fails(v1alpha1.ReasonUnreachable) }, true},
		{func() { fails(v1alpha1.ReasonUnreachable) }, true},
		{func() { s.updateState(func(state *State) { state.Connected, state.ConsecutiveFailures = true, 0 }) }, false},
		{func() { fails(v1alpha1.ReasonAnswersRefused) }, true},
	} {
		step.do()
		if got := s.state.HasFailedRepeatedly(); got != step.lost {
			t.Errorf("step %d: lost is %t", i, got)
		}
	}
}
