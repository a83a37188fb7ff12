package snapshots

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/controller/hostsnapshot"
	"github.com/xylem-io/xylem/internal/controller/leafsnapshot"
	"github.com/xylem-io/xylem/internal/controller/rootsnapshot"
	"github.com/xylem-io/xylem/test/model/bound"
)

var disruptions = bound.Flag("disruptions", 2, 1, "maximum number of disruptions on the path to a world")

func TestCheck(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	for _, host := range []policy{deletes, retains} {
		for _, leaf := range []policy{deletes, retains} {
			for what, promised := range map[string]bool{"during a restore": false, "while a promise must be restored": true} {
				t.Run(fmt.Sprintf("%s in the host and %s in the member, %s", host, leaf, what), func(t *testing.T) {
					t.Parallel()
					m := modelFor(t, uint8(disruptions()), 0)
					r, err := m.CheckRestore(t.Context(), host, leaf, promised)
					if err != nil {
						t.Fatal(err)
					}
					m.verify(t, r)
				})
			}
			t.Run(fmt.Sprintf("%s in the host and %s in the member", host, leaf), func(t *testing.T) {
				t.Parallel()
				check(t, host, leaf, uint8(disruptions()), 0)
			})
			if testing.Short() && (host != deletes || leaf != deletes) {
				continue // these searches take most of the time, and differ only in the policies
			}
			t.Run(fmt.Sprintf("%s in the host and %s in the member, with silent snapshotters", host, leaf), func(t *testing.T) {
				t.Parallel()
				// The reports triple the number of worlds, so more disruptions take too long.
				check(t, host, leaf, uint8(min(disruptions(), 1)), time.Minute)
			})
		}
	}
}

func check(t *testing.T, host, leaf policy, disruptions uint8, silentAfter time.Duration) {
	t.Helper()
	m := modelFor(t, disruptions, silentAfter)
	m.verify(t, m.Check(t.Context(), host, leaf))
}

func modelFor(t *testing.T, disruptions uint8, silentAfter time.Duration) *Model {
	t.Helper()
	m, err := New(t.Context(), disruptions)
	if err != nil {
		t.Fatal(err)
	}
	m.SilentAfter = cmp.Or(silentAfter, m.SilentAfter)
	return m
}

// verify fails the test for each finding.
func (m *Model) verify(t *testing.T, r Result) {
	t.Helper()
	t.Logf("%d disruptions: %d worlds, %v; %d of them without moves", m.bound, r.Worlds, r.ByController, r.Ends)
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	// A model in which a controller never acts cannot find its defects.
	for _, controller := range []string{rootsnapshot.Name, leafsnapshot.Name, hostsnapshot.Name} {
		if r.ByController[controller] == 0 {
			t.Errorf("%s never took a step", controller)
		}
	}
	if r.Ends == 0 {
		t.Error("no world is without moves")
	}
}
