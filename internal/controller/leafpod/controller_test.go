package leafpod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// empty is a cluster in which there is nothing.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// How a leaf ended is known for as long as its root is there, of that root alone.
func TestEnded(t *testing.T) {
	r := &reconciler{Link: &member.Link{Member: here, Host: empty{}, Clock: clock.RealClock{}}, ended: lru.New(remembered)}
	root := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: uid}}
	}
	leaf := func(phase corev1.PodPhase) *corev1.Pod {
		pod := root("leaf-uid")
		pod.Status.Phase = phase
		mirror.OriginFor(here.HostID, root("root-uid")).Stamp(pod)
		return pod
	}
	r.ofLeaf(t.Context(), leaf(corev1.PodRunning))
	if last := r.lastOf(root("root-uid")); last != nil {
		t.Errorf("a leaf that runs has ended as %s", last.Status.Phase)
	}
	r.ofLeaf(t.Context(), leaf(corev1.PodSucceeded))
	if last := r.lastOf(root("root-uid")); last == nil || last.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the leaf ended as %v", last)
	}
	if last := r.lastOf(root("made-anew")); last != nil {
		t.Errorf("a Pod that was made anew has a leaf that ended as %s", last.Status.Phase)
	}
	if _, err := r.observe(t.Context(), client.ObjectKeyFromObject(root(""))); err != nil {
		t.Fatal(err)
	}
	if n := r.ended.Len(); n != 0 {
		t.Errorf("%d leaves are remembered whose roots are gone", n)
	}
}
