package rootpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// The scheduling gates that a member added to a leaf are reported once, and again if they change.
func TestGated(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{warned: lru.New(remembered), Link: &member.Link{Member: lifecycletest.Here, Recorder: recorder}}
	root := lifecycletest.RootPod()
	reported := func(of types.UID, gates ...string) int {
		leaf := &corev1.Pod{}
		leaf.UID = "leaf"
		for _, gate := range gates {
			leaf.Spec.SchedulingGates = append(leaf.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
		}
		r.eventGated(lifecycle.Observed{Root: root, Leaf: leaf, Origin: mirror.Origin{UID: of}})
		n := len(recorder.Events)
		for range n {
			<-recorder.Events
		}
		return n
	}
	for _, step := range []struct {
		name  string
		of    types.UID
		gates []string
		want  int
	}{
		{"no gates", root.UID, nil, 0},
		{"the leaf of an earlier Pod", "another", []string{"a"}, 0},
		{"a gate", root.UID, []string{"a"}, 1},
		{"the same gate again", root.UID, []string{"a"}, 0},
		{"another gate", root.UID, []string{"a", "b"}, 1},
	} {
		if got := reported(step.of, step.gates...); got != step.want {
			t.Errorf("%s: %d events, want %d", step.name, got, step.want)
		}
	}
	r.eventGated(lifecycle.Observed{Root: root}) // without a leaf
}
