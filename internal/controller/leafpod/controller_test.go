package leafpod

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// empty is a cluster without objects.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// The final state of a leaf is remembered as long as its root exists, and only for that root.
func TestEnded(t *testing.T) {
	r := &reconciler{Link: &member.Link{Member: here, Host: empty{}, Clock: clock.RealClock{}}, ended: lru.New(endedLeavesLimit)}
	root := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: uid}}
	}
	leaf := func(phase corev1.PodPhase) *corev1.Pod {
		pod := root("leaf-uid")
		pod.Status.Phase = phase
		mirror.OriginForRoot(here.HostID, root("root-uid")).StampLeaf(pod)
		return pod
	}
	r.leafToRequests(t.Context(), leaf(corev1.PodRunning))
	if last := r.endedLeafOf(root("root-uid")); last != nil {
		t.Errorf("a running leaf is remembered as %s, want it not remembered", last.Status.Phase)
	}
	r.leafToRequests(t.Context(), leaf(corev1.PodSucceeded))
	if last := r.endedLeafOf(root("root-uid")); last == nil || last.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the final state is %v, want phase Succeeded", last)
	}
	if last := r.endedLeafOf(root("re-created")); last != nil {
		t.Errorf("a re-created root has the final state %s of the earlier root's leaf", last.Status.Phase)
	}
	if _, err := r.observePod(t.Context(), client.ObjectKeyFromObject(root(""))); err != nil {
		t.Fatal(err)
	}
	if n := r.ended.Len(); n != 0 {
		t.Errorf("%d leaves are remembered after their roots are gone", n)
	}
}

// withNode adds the member's Node to another reader.
type withNode struct{ client.Reader }

func (w withNode) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if node, ok := into.(*corev1.Node); ok {
		seen().node.DeepCopyInto(node)
		return nil
	}
	return w.Reader.Get(ctx, key, into, opts...)
}

// noLeaves is the cache of a member without leaves.
type noLeaves struct{ cache.Cache }

func (noLeaves) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return empty{}.Get(ctx, key, into, opts...)
}

// A leaf that the cache has dropped does not count as vanished before its deletion is handled: an
// earlier event may report that it succeeded.
func TestUnhandledEnd(t *testing.T) {
	o := seen(shown)
	root, leaf := o.root, o.leaf
	key := client.ObjectKeyFromObject(root)
	r := &reconciler{
		Link:  &member.Link{Member: here, Host: withNode{one{pod: root}}, Cache: noLeaves{}, Clock: clock.RealClock{}},
		ended: lru.New(endedLeavesLimit),
	}
	decided := func() decision {
		t.Helper()
		o, err := r.observePod(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return decidePodStatus(o)
	}
	follow := r.trackPresentLeaves()
	follow.Create(event.CreateEvent{Object: leaf})
	if d := decided(); d != (nothing{}) {
		t.Errorf("before the deletion is handled, the decision is %#v, want nothing", d)
	}
	ended := leaf.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	follow.Update(event.UpdateEvent{ObjectOld: leaf, ObjectNew: ended})
	follow.Delete(event.DeleteEvent{Object: ended})
	if d, vanished := decided().(failPod); !vanished || d.status.Reason != v1alpha1.ReasonLeafVanished {
		t.Errorf("after the deletion is handled, the decision is %#v, want reason LeafVanished", d)
	}
	r.leafToRequests(t.Context(), ended)
	if d, ok := decided().(showStatus); !ok || d.status.Phase != corev1.PodSucceeded {
		t.Errorf("after the leaf's final state is handled, the decision is %#v, want phase Succeeded", d)
	}
}

// A root is enqueued when it is bound to this member's node. Before that, the controller does
// nothing, whatever changes in the root or its leaf.
func TestAwaitsBinding(t *testing.T) {
	for name, tc := range map[string]struct {
		root *corev1.Pod
		want bool
	}{
		"no root":               {nil, true},
		"not bound":             {&corev1.Pod{}, false},
		"bound to this member":  {&corev1.Pod{Spec: corev1.PodSpec{NodeName: here.NodeName}}, true},
		"bound to another node": {&corev1.Pod{Spec: corev1.PodSpec{NodeName: "another"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Link: &member.Link{Member: here, Host: one{pod: tc.root}}, ended: lru.New(endedLeavesLimit)}
			leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
			if got := len(r.leafToRequests(t.Context(), leaf)) > 0; got != tc.want {
				t.Errorf("a leaf event enqueues the root: %t, want %t", got, tc.want)
			}
			if tc.root == nil {
				return
			}
			after := tc.root.DeepCopy()
			after.Status.Phase, after.DeletionTimestamp = corev1.PodFailed, &metav1.Time{}
			if !onlyNodeOrDeletionChanged(t.Context(), tc.root, after) {
				t.Error("the root's deletion does not enqueue it immediately")
			}
			if got := r.concernsMemberNode(tc.root, after); got != tc.want {
				t.Errorf("an update concerns the controller: %t, want %t", got, tc.want)
			}
			if d := decidePodStatus(observed{member: here, root: after, leaf: leaf, endedLeaf: leaf}); !tc.want && d != (nothing{}) {
				t.Errorf("the decision for an ignored Pod is %#v, want nothing", d)
			}
			bound := after.DeepCopy()
			bound.Spec.NodeName = here.NodeName
			if !r.concernsMemberNode(after, bound) || !onlyNodeOrDeletionChanged(t.Context(), nil, bound) {
				t.Error("the root's binding does not enqueue it immediately")
			}
		})
	}
}

// one is a reader that returns the same Pod for every name.
type one struct {
	client.Reader
	pod *corev1.Pod
}

func (o one) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pod, ok := into.(*corev1.Pod); ok && o.pod != nil {
		o.pod.DeepCopyInto(pod)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

var errWrite = errors.New("attempted write")

// writes rejects every write with errWrite, so that tests detect the attempt.
type writes struct{ client.Client }

func (writes) Status() client.SubResourceWriter { return statusWrites{} }

type statusWrites struct{ client.SubResourceWriter }

func (statusWrites) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errWrite
}

func (statusWrites) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errWrite
}

// Whether a root fails depends on the live state of both clusters, not on a stale cache.
func TestFailureIsLive(t *testing.T) {
	unfit := func() observed { return seen(noLeaf, notPushed, doesNotFit) }
	for name, tc := range map[string]struct {
		observed observed
		host     func(*corev1.Pod)
		leaf     *corev1.Pod
		want     error
	}{
		"the Pod does not fit, and has no leaf":         {observed: unfit(), want: errWrite},
		"the Pod does not fit, and its leaf runs":       {observed: unfit(), leaf: seen().leaf},
		"the Pod ran and is marked Pushed":              {observed: unfit(), host: func(p *corev1.Pod) { p.Status = seen(shown).root.Status; p.Status.Phase = corev1.PodSucceeded }},
		"the Pod does not fit, and was re-created":      {observed: unfit(), host: func(p *corev1.Pod) { p.UID = "newer" }},
		"the leaf vanished":                             {observed: seen(noLeaf, shown), want: errWrite},
		"the leaf vanished after the Pod had succeeded": {observed: seen(noLeaf, shown), host: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
	} {
		t.Run(name, func(t *testing.T) {
			live := tc.observed.root.DeepCopy()
			if tc.host != nil {
				tc.host(live)
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: one{pod: live}, Live: one{pod: tc.leaf}, Recorder: events.NewFakeRecorder(1), Clock: clock.RealClock{},
				HostWriter: guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.actOnPod(t.Context(), tc.observed, decidePodStatus(tc.observed)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
