package guarded

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// numbering is a client that returns the next resourceVersion for each write, and counts the
// writes.
type numbering struct {
	client.Client
	version, sent int
	err           error
}

func (n *numbering) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	n.sent++
	if n.err == nil {
		obj.SetResourceVersion(strconv.Itoa(n.version))
	}
	return n.err
}

func (n *numbering) Create(context.Context, client.Object, ...client.CreateOption) error {
	n.sent++
	return n.err
}

func (n *numbering) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	n.sent++
	return n.err
}

func (n *numbering) Status() client.SubResourceWriter { return statusOf{of: n} }

type statusOf struct {
	client.SubResourceWriter
	of *numbering
}

func (s statusOf) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	s.of.sent++
	applied, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", obj)
	}
	if s.of.err == nil {
		applied.SetResourceVersion(strconv.Itoa(s.of.version))
	}
	return s.of.err
}

func volumeOf(version int) *corev1.PersistentVolume {
	pv := hostVolume()
	pv.UID, pv.ResourceVersion = "uid", strconv.Itoa(version)
	return pv
}

func TestWritesOnReplacedStates(t *testing.T) {
	patch := func(ctx context.Context, r *HostWriter, version int) error {
		return r.PatchOwned(ctx, actor, volumeOf(version), volumeOf(version))
	}
	remove := func(ctx context.Context, r *HostWriter, version int) error {
		return r.DeleteHostVolume(ctx, volumeOf(version), evidenceFor(volumeOf(version)))
	}
	applyBy := func(by Actor) func(context.Context, *HostWriter, int) error {
		return func(ctx context.Context, r *HostWriter, version int) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid", ResourceVersion: strconv.Itoa(version)}}
			return r.ApplyStatus(ctx, by, pod, status("Pod", "uid"))
		}
	}
	apply := applyBy(actor)
	type write = func(context.Context, *HostWriter, int) error
	for name, test := range map[string]struct {
		answer      int // resourceVersion after the first write to version 7
		err         error
		first, then write
		version     int
		sent        int
		refused     bool
	}{
		"a patch based on the state before a patch":                {answer: 8, first: patch, then: patch, version: 7, sent: 1, refused: true},
		"a delete based on the state before a patch":               {answer: 8, first: patch, then: remove, version: 7, sent: 1, refused: true},
		"a second delete based on the same state":                  {answer: 8, first: remove, then: remove, version: 7, sent: 1, refused: true},
		"a patch based on the state before a delete":               {answer: 8, first: remove, then: patch, version: 7, sent: 1, refused: true},
		"a patch based on the state after a patch":                 {answer: 8, first: patch, then: patch, version: 8, sent: 2},
		"a patch based on the state after another writer's change": {answer: 8, first: patch, then: patch, version: 9, sent: 2},
		"a patch after a patch without changes":                    {answer: 7, first: patch, then: patch, version: 7, sent: 2},
		"an apply based on the state before another apply":         {answer: 8, first: apply, then: apply, version: 7, sent: 1, refused: true},
		"an apply based on the state after another apply":          {answer: 8, first: apply, then: apply, version: 8, sent: 2},
		"an apply after an apply without changes":                  {answer: 7, first: apply, then: apply, version: 7, sent: 2},
		"an apply after a failed apply":                            {answer: 8, err: apierrors.NewTimeoutError("the reply is lost", 1), first: apply, then: apply, version: 7, sent: 2},
		"another actor's apply based on the state before an apply": {answer: 8, first: apply, then: applyBy("another"), version: 7, sent: 2},
		"a patch after a patch with an unknown result":             {answer: 8, err: apierrors.NewTimeoutError("the reply is lost", 1), first: patch, then: patch, version: 7, sent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := &numbering{version: test.answer, err: test.err}
			r := NewHostWriter(c, "cluster", open)
			if err := test.first(t.Context(), r, 7); (err != nil) != (test.err != nil) {
				t.Fatal(err)
			}
			c.err = nil
			err := test.then(t.Context(), r, test.version)
			if refused := apierrors.IsConflict(err); refused != test.refused || err != nil && !refused || c.sent != test.sent {
				t.Errorf("error %v, %d writes sent; want rejected: %v, %d writes sent", err, c.sent, test.refused, test.sent)
			}
		})
	}
}

// Writes to two objects with the same resourceVersion do not affect each other.
func TestVersionsOfOthers(t *testing.T) {
	c := &numbering{version: 8}
	r := NewHostWriter(c, "cluster", open)
	for _, uid := range []types.UID{"one", "two"} {
		pv := volumeOf(7)
		pv.UID = uid
		if err := r.PatchOwned(t.Context(), actor, pv, pv.DeepCopy()); err != nil {
			t.Error(err)
		}
	}
}

func TestRecentlyCreatedObjects(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		between func(*HostWriter) error
		sent    int
		refused bool
	}{
		"a second creation": {sent: 1, refused: true},
		"a creation after a creation with an unknown result": {err: apierrors.NewTimeoutError("the reply is lost", 1), sent: 2},
		"re-created after Xylem deleted it": {between: func(r *HostWriter) error {
			return r.DeleteHostVolume(t.Context(), volumeOf(7), evidenceFor(volumeOf(7)))
		}, sent: 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := &numbering{err: test.err}
			r := NewHostWriter(c, "cluster", open)
			if err := r.CreateOwned(t.Context(), actor, volumeOf(0)); (err != nil) != (test.err != nil) {
				t.Fatal(err)
			}
			c.err = nil
			if test.between != nil {
				if err := test.between(r); err != nil {
					t.Fatal(err)
				}
			}
			err := r.CreateOwned(t.Context(), actor, volumeOf(0))
			if refused := apierrors.IsConflict(err); refused != test.refused || err != nil && !refused || c.sent != test.sent {
				t.Errorf("error %v, %d writes sent; want rejected: %v, %d writes sent", err, c.sent, test.refused, test.sent)
			}
		})
	}
}
