package stuck

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// Of thousands of stuck objects, only a few are reported at a time. Each is reported once, and
// again when its cause changes.
func TestReportsAreLimited(t *testing.T) {
	recorder := events.NewFakeRecorder(10 * reportsAtOnce)
	w := &Watcher{Recorder: recorder, Book: account.NewBook(), Clock: clocktesting.NewFakeClock(now.Time)}
	cr := &v1alpha1.ClusterRegistration{}
	cr.Name = "member-01"
	late := make([]candidate, 2*reportsAtOnce+1)
	for i := range late {
		pod := &corev1.Pod{}
		pod.UID = types.UID(fmt.Sprint(i))
		late[i] = candidate{object: pod, Deletion: account.Deletion{Cause: because(account.CauseUnknown, "first")}}
	}
	look := func() (first, second int) {
		still := map[types.UID]account.Cause{}
		w.report(cr, late, still)
		w.known = still
		for len(recorder.Events) > 0 {
			if strings.Contains(<-recorder.Events, "first") {
				first++
			} else {
				second++
			}
		}
		return first, second
	}
	if first, _ := look(); first != reportsAtOnce {
		t.Errorf("reported %d objects at first, want %d", first, reportsAtOnce)
	}
	for i := range reportsAtOnce {
		late[i].Cause = because(account.CauseUnknown, "second")
	}
	if first, second := look(); first != reportsAtOnce || second != 0 {
		t.Errorf("then reported %d objects with the first cause and %d with the second, want those that were not reported before", first, second)
	}
	if first, second := look(); first != 1 || second != reportsAtOnce-1 {
		t.Errorf("then reported %d objects with the first cause and %d with the second, want the last new one, and changed causes", first, second)
	}
	look()
	if first, second := look(); first+second > 0 {
		t.Errorf("reported %d objects again", first+second)
	}
	if known := w.Book.Stuck(cr.Name); known.Count != len(late) {
		t.Errorf("counted %d objects, want %d", known.Count, len(late))
	}
}
