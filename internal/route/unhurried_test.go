package route

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func TestUnhurried(t *testing.T) {
	nodes := WhenValueChanged(func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	version := func(pod *corev1.Pod, version string) *corev1.Pod {
		pod.ResourceVersion = version
		return pod
	}
	before, same := version(pod("a", "", one.NodeName), "1"), version(pod("a", "", one.NodeName), "2")
	bound := version(pod("a", one.NodeName, one.NodeName), "3")
	later, atOnce := "a "+LowUrgencyDelay.String(), "a immediately"
	for name, tc := range map[string]struct {
		urgent  UrgentFunc
		was, is client.Object
		want    string
	}{
		"an update that is not urgent":                     {nodes, before, same, later},
		"an urgent update":                                 {nodes, before, bound, atOnce},
		"a creation without the value":                     {nodes, nil, before, later},
		"a creation with the value":                        {nodes, nil, bound, atOnce},
		"a deletion with the value":                        {nodes, bound, nil, atOnce},
		"a creation, if creations are urgent":              {CreatedOrDeleted, nil, before, atOnce},
		"a deletion, if deletions are urgent":              {CreatedOrDeleted, before, nil, atOnce},
		"an update, if creations and deletions are urgent": {CreatedOrDeleted, before, bound, later},
		"a creation, if only deletions are urgent":         {IsDeletion, nil, before, later},
		"a deletion, if only deletions are urgent":         {IsDeletion, before, nil, atOnce},
		"a deletion, if no events are urgent":              {NeverUrgent, before, nil, later},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(t, &reads{})
			fromHost, fromMember := &noting{}, &noting{}
			if err := DelayUnlessUrgent(tc.urgent, r.MemberSource(one, &corev1.Pod{}, named)).Start(t.Context(), fromHost); err != nil {
				t.Fatal(err)
			}
			r.deliverEvent(tc.was, tc.is)

			handler := EnqueueHandler(named)
			in := source.Func(func(ctx context.Context, q queue) error {
				switch {
				case tc.was == nil:
					handler.Create(ctx, event.CreateEvent{Object: tc.is}, q)
				case tc.is == nil:
					handler.Delete(ctx, event.DeleteEvent{Object: tc.was}, q)
				default:
					handler.Update(ctx, event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, q)
				}
				return nil
			})
			if err := DelayUnlessUrgent(tc.urgent, in).Start(t.Context(), fromMember); err != nil {
				t.Fatal(err)
			}
			for side, q := range map[string]*noting{"host": fromHost, "member": fromMember} {
				for _, added := range q.added {
					if added != tc.want {
						t.Errorf("event of the %s: %s", side, added)
					}
				}
				if len(q.added) == 0 {
					t.Errorf("event of the %s: nothing was added", side)
				}
			}
		})
	}
}
