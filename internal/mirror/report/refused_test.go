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

	"github.com/xylem-io/xylem/internal/mirror"
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
			if got := IsRejectedWrite(test.err); got != test.want {
				t.Errorf("Rejected(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}

// TestRemedyOfRejection checks that a message asks for a change only if the member decided against the object,
// and for a permission only if one is missing.
func TestRemedyOfRejection(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tooSmall := apierrors.NewForbidden(pods, "app", errors.New("node didn't have enough allocatable resources: cpu, requested: 3800, allocatable: 2000"))
	tooSmall.ErrStatus.Details.Causes = append(tooSmall.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NodeCapacity"})
	quota, unpermitted := errors.New("exceeded quota"), errors.New(`User "xylem" cannot create resource "pods" in API group "" in the namespace "shop"`)
	for name, tc := range map[string]struct {
		got          *mirror.Refusal
		wants, lacks string
	}{
		"a quota":                         {MemberWriteRefusal("m", "create", "the Pod", apierrors.NewForbidden(pods, "app", quota)), "exceeded quota. Change the Pod, or ask", "permission"},
		"a missing permission":            {MemberWriteRefusal("m", "create", "the Pod", apierrors.NewForbidden(pods, "app", unpermitted)), "grant the permission", "Change"},
		"a webhook that does not respond": {MemberWriteRefusal("m", "create", "the Pod", apierrors.NewInternalError(errors.New("failed calling webhook"))), "failed calling webhook. Xylem retries", "Change"},
		"a policy against a change":       {PodUpdateRefusal("m", apierrors.NewForbidden(pods, "app", quota)), "Undo the change, or ask", "permission"},
		"no permission for a change":      {PodUpdateRefusal("m", apierrors.NewForbidden(pods, "app", unpermitted)), "grant the permission", "Undo"},
		"a policy against a resize":       {ResizeRefusal("m", apierrors.NewForbidden(pods, "app", quota)), "change the quota", "re-create"},
		"a node too small for a resize":   {ResizeRefusal("m", tooSmall), "allocatable: 2000. Request less, or re-create the Pod", "admin"},
		"a policy against a patch":        {RepeatedMemberWriteRefusal("m", "patch", "the volume", apierrors.NewForbidden(pods, "app", quota)), "exempt Xylem", "permission"},
		"no permission for a patch":       {RepeatedMemberWriteRefusal("m", "patch", "the volume", apierrors.NewForbidden(pods, "app", unpermitted)), "grant the permission", "exempt"},
	} {
		if !strings.Contains(tc.got.Message, tc.wants) || strings.Contains(tc.got.Message, tc.lacks) {
			t.Errorf("%s: message is %q, want it with %q and without %q", name, tc.got.Message, tc.wants, tc.lacks)
		}
	}
}
