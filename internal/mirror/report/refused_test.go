package report

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRejected(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code}}
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                        {nil, false},
		"no response":                     {errors.New("connection refused"), false},
		"a quota, or Pod Security":        {apierrors.NewForbidden(pods, "app", nil), true},
		"a wrapped error":                 {fmt.Errorf("create: %w", apierrors.NewForbidden(pods, "app", nil)), true},
		"a policy":                        {apierrors.NewInvalid(schema.GroupKind{}, "app", nil), true},
		"a webhook without a status":      {status(http.StatusBadRequest), true},
		"a webhook with another status":   {status(http.StatusTeapot), true},
		"a webhook that denies as 404":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Message: `admission webhook "rules.example.com" denied the request: no tenant`}}, true},
		"a webhook that does not respond": {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"an object that is too large":     {apierrors.NewRequestEntityTooLargeError("limit"), true},
		"an existing object":              {apierrors.NewAlreadyExists(pods, "app"), false},
		"a conflict":                      {apierrors.NewConflict(pods, "app", nil), false},
		"a missing namespace":             {apierrors.NewNotFound(pods, "app"), false},
		"an expired token":                {apierrors.NewUnauthorized("expired"), false},
		"too many requests":               {apierrors.NewTooManyRequests("later", 1), false},
		"a timeout":                       {apierrors.NewServerTimeout(pods, "create", 1), false},
		"an API server that is starting":  {apierrors.NewServiceUnavailable("starting"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Rejected(test.err); got != test.want {
				t.Errorf("Rejected(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}

// TestRefusedByMember checks that a message asks for a change only if the member decided against
// the object.
func TestRefusedByMember(t *testing.T) {
	denied := RefusedByMember("m", "create", "the Pod", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "app", errors.New("exceeded quota")))
	if !strings.Contains(denied.Message, "exceeded quota. Change the Pod, or ask") {
		t.Errorf("a quota: %s", denied.Message)
	}
	failed := RefusedByMember("m", "create", "the Pod", apierrors.NewInternalError(errors.New("failed calling webhook")))
	if !strings.Contains(failed.Message, "failed calling webhook. Xylem retries") || strings.Contains(failed.Message, "Change") {
		t.Errorf("a webhook that does not respond: %s", failed.Message)
	}
}
