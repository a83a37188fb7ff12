package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/internal/guarded"
)

// lock is a resource lock whose writes all succeed or all fail.
type lock struct {
	resourcelock.Interface
	err error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestLeadership(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	type election struct {
		*LeaderLock
		lock  *lock
		clock *clocktesting.FakePassiveClock
	}
	step := func(d time.Duration) func(*testing.T, election) {
		return func(_ *testing.T, e election) { e.clock.SetTime(e.clock.Now().Add(d)) }
	}
	write := func(record resourcelock.LeaderElectionRecord, err error) func(*testing.T, election) {
		return func(t *testing.T, e election) {
			e.lock.err = err
			if got := e.Update(t.Context(), record); !errors.Is(got, err) {
				t.Errorf("update: %v, want %v", got, err)
			}
		}
	}
	create := func(t *testing.T, e election) {
		if err := e.Create(t.Context(), mine); err != nil {
			t.Error(err)
		}
	}
	conflict := errors.New("conflict")

	for name, tc := range map[string]struct {
		steps []func(*testing.T, election)
		leads bool
	}{
		"never elected":                    {nil, false},
		"elected":                          {[]func(*testing.T, election){create}, true},
		"renewed":                          {[]func(*testing.T, election){create, step(RenewDeadline), write(mine, nil), step(RenewDeadline)}, true},
		"frozen beyond the renew deadline": {[]func(*testing.T, election){create, step(RenewDeadline + 1)}, false},
		"the renewal was rejected":         {[]func(*testing.T, election){create, step(RenewDeadline), write(mine, conflict), step(1)}, false},
		"released":                         {[]func(*testing.T, election){create, write(resourcelock.LeaderElectionRecord{}, nil)}, false},
		"renewed after the deadline":       {[]func(*testing.T, election){create, step(time.Hour), write(mine, nil)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := election{lock: &lock{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
			e.LeaderLock = &LeaderLock{Interface: e.lock, clock: e.clock}
			for _, do := range tc.steps {
				do(t, e)
			}
			if err := e.CheckRenewed(); tc.leads && err != nil || !tc.leads && !errors.Is(err, guarded.ErrFenced) {
				t.Errorf("Current() = %v, want leader: %t", err, tc.leads)
			}
		})
	}
}

// Without leadership, the transport still allows requests that change nothing.
func TestLeadershipTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	l := &LeaderLock{Interface: &lock{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	c := http.Client{Transport: l.WrapTransport(http.DefaultTransport)}

	for _, leads := range []bool{false, true} {
		for name, tc := range map[string]struct {
			method, path string
			always       bool
		}{
			"read":           {http.MethodGet, "/api/v1/pods", true},
			"token review":   {http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", true},
			"access review":  {http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
			"create":         {http.MethodPost, "/api/v1/namespaces/n/pods", false},
			"patch":          {http.MethodPatch, "/api/v1/persistentvolumes/p", false},
			"update":         {http.MethodPut, "/api/v1/persistentvolumes/p", false},
			"delete":         {http.MethodDelete, "/api/v1/persistentvolumes/p", false},
			"unknown method": {"MERGE", "/api/v1/persistentvolumes/p", false},
		} {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if wanted := leads || tc.always; wanted && err != nil || !wanted && !errors.Is(err, guarded.ErrFenced) {
				t.Errorf("%s, leads %t: %v", name, leads, err)
			}
		}
		if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
	}
}

// New must not change the manager's configuration, because watches use it too. The Lease's timeout
// would end each watch after seconds.
func TestNewLeavesTheConfig(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1", UserAgent: "xylem"}
	before := rest.CopyConfig(config)
	if _, err := New(config, "xylem-system", "lock", "me", func(error) {}); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != before.Timeout || config.UserAgent != before.UserAgent {
		t.Errorf("New changed the configuration: the timeout is %s, and the user agent is %q", config.Timeout, config.UserAgent)
	}
}

// A Lease that is older than the manager's last write reveals a restored host, even if the
// restore raised the host's revision.
func TestWentBack(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	record := func(holder string, renewed time.Duration, transitions int) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaderTransitions: transitions,
			AcquireTime: metav1.NewTime(at.Add(renewed)), RenewTime: metav1.NewTime(at.Add(renewed))}
	}
	written := record("me", 0, 3)
	kept := written
	kept.RenewTime = metav1.NewTime(at.Truncate(time.Microsecond)) // the API server truncates times
	for name, tc := range map[string]struct {
		written, read resourcelock.LeaderElectionRecord
		want          bool
	}{
		"this process has not written the Lease yet":                {resourcelock.LeaderElectionRecord{}, record("other", -time.Hour, 0), false},
		"the Lease is unchanged":                                    {written, kept, false},
		"this process renewed the Lease, but the response was lost": {written, record("me", time.Second, 3), false},
		"the Lease shows an earlier renewal (I2)":                   {written, record("me", -time.Second, 3), true},
		"the Lease shows an earlier leader (I2)":                    {written, record("other", -time.Hour, 2), true},
		"another leader acquired the Lease":                         {written, record("other", time.Minute, 4), false},
		"the Lease was deleted and re-created":                      {written, record("other", time.Minute, 0), false},
		"another leader, whose clock is behind, acquired the Lease": {written, record("other", -time.Minute, 4), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaseWentBack(tc.written, tc.read); got != tc.want {
				t.Errorf("went back: %v, want %v", got, tc.want)
			}
		})
	}
}
