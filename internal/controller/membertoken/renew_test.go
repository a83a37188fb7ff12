package membertoken

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
)

// conflicting is a member that answers every request for a token with a conflict, as a service
// account that is replaced at that moment does, or a hostile member.
type conflicting struct {
	Credentials
	reported *member.TokenRenewal
}

func (*conflicting) RequestToken(context.Context, guarded.Actor, access.AccountToken, time.Duration) (string, error) {
	return "", apierrors.NewConflict(schema.GroupResource{Resource: "serviceaccounts"}, "xylem", nil)
}

func (c *conflicting) ReportRenewal(renewal *member.TokenRenewal) { c.reported = renewal }

func TestConflictInMemberIsReported(t *testing.T) {
	c := &conflicting{}
	r := &renewer{credentials: c, recorder: events.NewFakeRecorder(1), backoff: newRenewalBackoff()}
	pause := r.renewToken(t.Context(), tokenObservation{observed: observed{secret: &corev1.Secret{}}, registered: &v1alpha1.ClusterRegistration{}}, renewNow{lifetime: time.Hour})
	if pause < minRetryDelay {
		t.Errorf("the next attempt is after %s, want at least %s", pause, minRetryDelay)
	}
	if c.reported == nil || c.reported.FailureCause == "" {
		t.Error("the failed renewal is not reported")
	}
}
