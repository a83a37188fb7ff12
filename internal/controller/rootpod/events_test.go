package rootpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/news"
)

// The scheduling gates that a member added to a leaf are reported once, again if they change, and
// before the host deletes the event.
func TestGated(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := &reconciler{news: news.New(clock), Link: &member.Link{Member: lifecycletest.MemberHere, Recorder: recorder}}
	root := lifecycletest.RootPod()
	reported := func(of types.UID, gates ...string) int {
		leaf := &corev1.Pod{}
		leaf.UID = "leaf"
		for _, gate := range gates {
			leaf.Spec.SchedulingGates = append(leaf.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
		}
		r.emitLeafPodGated(lifecycle.Observed{Root: root, Leaf: leaf, Origin: mirror.Origin{UID: of}})
		n := len(recorder.Events)
		for range n {
			<-recorder.Events
		}
		return n
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		of    types.UID
		gates []string
		want  int
	}{
		{"no gates", 0, root.UID, nil, 0},
		{"the leaf of an earlier Pod", 0, "another", []string{"a"}, 0},
		{"a gate", 0, root.UID, []string{"a"}, 1},
		{"the same gate again", time.Minute, root.UID, []string{"a"}, 0},
		{"another gate", 0, root.UID, []string{"a", "b"}, 1},
		{"the same gates after a long time", news.RepeatInterval, root.UID, []string{"a", "b"}, 1},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if got := reported(step.of, step.gates...); got != step.want {
			t.Errorf("%s: %d events, want %d", step.name, got, step.want)
		}
	}
	r.emitLeafPodGated(lifecycle.Observed{Root: root}) // without a leaf
}
