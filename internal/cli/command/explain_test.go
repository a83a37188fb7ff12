package command_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/internal/cli/command"
)

func TestExplainOfForbidden(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	terminating := apierrors.NewForbidden(secrets, "a", errors.New("unable to create new content in namespace xylem-system because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const right, wait, refuses = "lack a permission", "Wait until the namespace is deleted", "rejects the request"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"RBAC":                    {apierrors.NewForbidden(secrets, "a", errors.New(`User "viewer" cannot get resource "secrets" in API group "" in the namespace "xylem-system"`)), right},
		"RBAC escalation":         {apierrors.NewForbidden(secrets, "a", errors.New(`user "viewer" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: …`)), right},
		"a terminating namespace": {terminating, wait},
		"an admission policy":     {apierrors.NewForbidden(secrets, "a", errors.New("ValidatingAdmissionPolicy 'owners' with binding 'owners' denied request: no owner")), refuses},
		"a quota":                 {apierrors.NewForbidden(secrets, "a", errors.New("exceeded quota: few, requested: secrets=1, used: secrets=1, limited: secrets=1")), refuses},
	} {
		t.Run(name, func(t *testing.T) {
			got := command.Explain("the member", &rest.Config{Host: "https://there"}, c.err).Error()
			for _, words := range []string{right, wait, refuses} {
				if strings.Contains(got, words) != (words == c.want) {
					t.Errorf("got %q, want only %q in it", got, c.want)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"forbidden":         {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), true},
		"already exists":    {apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), true},
		"too many requests": {apierrors.NewTooManyRequests("later", 1), false},
		"timeout":           {apierrors.NewTimeoutError("later", 1), false},
		"bad gateway":       {apierrors.NewGenericServerResponse(http.StatusBadGateway, "create", schema.GroupResource{}, "a", "", 0, true), false},
		"connection reset":  {errors.New("connection reset by peer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := command.Refused(c.err); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
