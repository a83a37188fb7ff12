package fencing

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// lease is a client that returns one Lease.
type lease struct {
	client.Client
	is  *coordinationv1.Lease
	err error
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
	for name, tc := range map[string]struct {
		lease lease
		want  error
	}{
		"the Lease as last renewed":             {lease{is: at(3, 0)}, nil},
		"the Lease was renewed again":           {lease{is: at(3, time.Second)}, nil},
		"the epoch has advanced":                {lease{is: at(4, time.Second)}, nil},
		"a backup of the same epoch":            {lease{is: at(3, -time.Second)}, guarded.ErrFenced},
		"a backup of an earlier epoch":          {lease{is: at(2, time.Hour)}, guarded.ErrFenced},
		"a backup from before the registration": {lease{}, guarded.ErrFenced},
		"the member does not respond":           {lease{is: at(3, 0), err: down}, down},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Fence{member: tc.lease, known: at(3, 0)}
			if err := f.MemberCurrent(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
