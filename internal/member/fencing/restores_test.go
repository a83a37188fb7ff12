package fencing

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// lease is a client that returns one Lease, and lists with the given revision.
type lease struct {
	client.Client
	is       *coordinationv1.Lease
	revision string
	err      error
}

func (l lease) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion(l.revision)
	return l.err
}

func (l lease) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if at, ok := into.(*coordinationv1.Lease); ok && l.is != nil {
		l.is.DeepCopyInto(at)
		return l.err
	}
	if l.err != nil {
		return l.err
	}
	return apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
}

// A destructive step detects that the member was restored, without waiting for the next probe (I2).
func TestMemberCurrent(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(epoch int64, after time.Duration) *coordinationv1.Lease {
		l := leaseOf("me", "7")
		l.Annotations = map[string]string{v1alpha1.AnnotationFenceEpoch: strconv.FormatInt(epoch, 10)}
		l.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(after)}
		return l
	}
	down := errors.New("connection refused")
	pod := func(version string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		lease lease
		seen  []client.Object
		want  error
	}{
		"the Lease as last renewed":             {lease: lease{is: at(3, 0)}},
		"the Lease was renewed again":           {lease: lease{is: at(3, time.Second)}},
		"the epoch has advanced":                {lease: lease{is: at(4, time.Second)}},
		"a backup of the same epoch":            {lease: lease{is: at(3, -time.Second)}, want: guarded.ErrFenced},
		"a backup of an earlier epoch":          {lease: lease{is: at(2, time.Hour)}, want: guarded.ErrFenced},
		"a backup from before the registration": {want: guarded.ErrFenced},
		"the member does not respond":           {lease: lease{is: at(3, 0), err: down}, want: down},

		"the revision is that of the newest Pod":                        {lease: lease{is: at(3, 0), revision: "10"}, seen: []client.Object{pod("9"), pod("10")}},
		"a backup with the last renewal, which lacks the newest Pod":    {lease: lease{is: at(3, 0), revision: "9"}, seen: []client.Object{pod("10"), pod("8")}, want: guarded.ErrFenced},
		"a backup with the last renewal, which lacks the newest volume": {lease: lease{is: at(3, 0), revision: "9"}, seen: []client.Object{pod("8"), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}}}, want: guarded.ErrFenced},
		"the revision is not a number":                                  {lease: lease{is: at(3, 0), revision: "b"}, seen: []client.Object{pod("10")}},
		"the resourceVersion of a Pod is not a number":                  {lease: lease{is: at(3, 0), revision: "9"}, seen: []client.Object{pod("a")}},
		"another kind has another revision":                             {lease: lease{is: at(3, 0), revision: "9"}, seen: []client.Object{&corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Fence{member: tc.lease, lastWritten: at(3, 0)}
			for _, object := range tc.seen {
				f.RecordRevision(object)
			}
			if err := f.CheckMemberCurrent(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
