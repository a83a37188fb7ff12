package snapshot

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/news"
)

// The user of a VolumeSnapshot that was ready sees a problem only as an event, which the host keeps for an
// hour. So it is repeated, also after a restart of the manager.
func TestAnnounce(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	s := &Observed{Root: &snapshotv1.VolumeSnapshot{}, Host: &snapshotv1.VolumeSnapshotContent{}}
	s.Host.UID = "content-uid"
	lost := mirror.NewRefusal(v1alpha1.ReasonSnapshotLost, "the snapshot is gone")
	recorder := events.NewFakeRecorder(10)
	announced := func(told *news.StateMemory, problem *mirror.Refusal, want int) time.Duration {
		t.Helper()
		again := s.EmitProblemEvent(recorder, told, problem)
		if got := len(recorder.Events); got != want {
			t.Errorf("%d events, want %d", got, want)
		}
		return again
	}
	told := news.New(c)
	if again := announced(told, lost, 1); again != news.RepeatInterval {
		t.Errorf("the next event is due after %s, want %s", again, news.RepeatInterval)
	}
	c.SetTime(c.Now().Add(news.RepeatInterval - time.Minute))
	if again := announced(told, lost, 1); again != time.Minute {
		t.Errorf("the next event is due after %s, want a minute", again)
	}
	c.SetTime(c.Now().Add(time.Minute))
	announced(told, lost, 2)
	announced(news.New(c), lost, 3)
	if again := announced(told, nil, 3); again != 0 {
		t.Errorf("an event is due after %s, but the problem is solved", again)
	}
	announced(told, lost, 4)
	s.Root = nil
	announced(told, lost, 4)
}
