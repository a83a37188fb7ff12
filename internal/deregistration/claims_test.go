package deregistration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A claim whose status the host rejects does not keep the registration.
func TestLeaveClaims(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, tc := range map[string]struct {
		err      error
		size     int
		retried  bool
		reported bool
	}{
		"the annotations have the maximum size": {err: apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "a", nil), reported: true},
		"an admission policy rejects the write": {err: apierrors.NewForbidden(claims, "a", errors.New("no")), reported: true},
		"the request is too large":              {err: apierrors.NewRequestEntityTooLargeError("no"), reported: true},
		"the claim is too large for etcd":       {err: errors.New("etcdserver: request is too large"), size: 1 << 20, reported: true},
		"the claim was deleted":                 {err: apierrors.NewNotFound(claims, "a")},
		"the claim has changed":                 {err: apierrors.NewConflict(claims, "a", errors.New("newer")), retried: true},
		"the API server cannot be reached":      {err: errors.New("connection refused"), retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			var told []string
			r := &Deregisterer{Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)),
				ReportPlaced: func(_ context.Context, _ *guarded.HostWriter, claim *corev1.PersistentVolumeClaim, _ string, _ *mirror.Refusal, _ time.Time) error {
					if claim.Name == "a" {
						return tc.err
					}
					told = append(told, claim.Name)
					return nil
				}}
			a := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{"l": strings.Repeat("x", tc.size)}}}
			b := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}
			err := r.reportClusterGone(t.Context(), &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left"}}, []corev1.PersistentVolumeClaim{a, b})
			if (err != nil) != tc.retried {
				t.Errorf("the error is %v", err)
			}
			if strings.Join(told, "") != "b" {
				t.Errorf("reported on %v, want b", told)
			}
			if reported := len(recorder.Events) > 0; reported != tc.reported {
				t.Errorf("an event was emitted: %t", reported)
			}
		})
	}
}
