package rootpvc

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A member that keeps changing its message about a claim causes only a limited number of writes,
// but its last message is still reported.
func TestMessagesArePaced(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	told := &statuses{}
	r := newReporter(&member.Link{
		Member: here, Clock: clock, Recorder: events.NewFakeRecorder(1000), HostWriter: guarded.NewHostWriter(host{writes{}, told}, here.Registration, guarded.HostOnlyGuard{}),
	})
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid"}}
	say := func(reason, words string) {
		if err := r.SetPlacedCondition(t.Context(), root, &mirror.Refusal{Reason: reason, Message: "member cluster38 cannot create the volume: " + words}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		say(v1alpha1.ReasonProvisioningFailed, fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26))
	}
	if told.written != paceBurst {
		t.Errorf("%d writes, want %d", told.written, paceBurst)
	}
	after := r.TakeRequeueDelay(root.UID)
	if after == 0 || r.TakeRequeueDelay(root.UID) != 0 {
		t.Fatalf("the next check is after %s, want one more check after a delay", after)
	}
	clock.Step(after)
	if say(v1alpha1.ReasonProvisioningFailed, "last"); told.written != paceBurst+1 {
		t.Error("the last message is not reported")
	}
	if say(v1alpha1.ReasonVolumeLost, "lost"); told.written != paceBurst+2 {
		t.Error("a message that does not come from the member is delayed")
	}
}

// A state lasts from the first observation until EndState, and is counted again after it has lasted.
func TestLasted(t *testing.T) {
	p, now := newReportPacer(), time.Unix(1_800_000_000, 0)
	const after = 10 * time.Second
	if p.StateLasted("uid", after, now) || p.TakeRequeueDelay("uid") != after {
		t.Error("a state that has just begun has lasted")
	}
	if p.StateLasted("uid", after, now.Add(4*time.Second)) || p.TakeRequeueDelay("uid") != 6*time.Second {
		t.Error("a state begins again with each observation")
	}
	if !p.StateLasted("uid", after, now.Add(after)) {
		t.Error("the state has not lasted")
	}
	if p.StateLasted("uid", after, now.Add(after)) {
		t.Error("the state is not counted again")
	}
	if p.EndState("uid"); p.StateLasted("uid", after, now.Add(3*after)) {
		t.Error("a state that ended has lasted")
	}
}
