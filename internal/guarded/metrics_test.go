package guarded

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A member controls its responses, but must not control a metric's label values.
func TestResultOf(t *testing.T) {
	refusedAs := func(reason string) error {
		return fmt.Errorf("patch: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReason(reason)}})
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"none":              {nil, "ok"},
		"a reason":          {refusedAs("Conflict"), "Conflict"},
		"an unknown reason": {refusedAs("x7f3"), "error"},
		"invalid UTF-8":     {refusedAs("\xff"), "error"},
		"no reason":         {refusedAs(""), "error"},
		"not an API error":  {errors.New("cut"), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resultLabelOf(tt.err); got != tt.want {
				t.Errorf("resultOf() = %q, want %q", got, tt.want)
			}
		})
	}
}

// A webhook's status must not look like a statement about the object, which controllers would act on.
func TestCountReturnsADenialAsForbidden(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, code := range []int32{http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusBadRequest} {
		err := CountWrite("", HostSide, "patch", pod, &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "rules.example.com" denied the request: no tenant`}})
		if !apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || !strings.Contains(err.Error(), "no tenant") {
			t.Errorf("a denial with status %d: %v", code, err)
		}
	}
	if err := CountWrite("", HostSide, "patch", pod, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "app", nil)); !apierrors.IsConflict(err) {
		t.Errorf("a conflict: %v", err)
	}
}
