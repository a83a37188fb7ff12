package wording

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCode(t *testing.T) {
	for message, want := range map[string]string{
		"failed to provision volume with StorageClass \"fast\": rpc error: code = ResourceExhausted desc = no space": "ResourceExhausted",
		"rpc error: code = DeadlineExceeded desc = context deadline exceeded":                                        "DeadlineExceeded",
		"rpc error: code = Code(42) desc = of a later version":                                                       "Code",
		`storageclass.storage.k8s.io "fast" not found`:                                                               "",
		"": "",
	} {
		if got := GRPCCodeOf(message); got != want {
			t.Errorf("%q: code %q, want %q", message, got, want)
		}
	}
}

func TestClassNotFound(t *testing.T) {
	classes := schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclass"}
	for message, want := range map[string]bool{
		apierrors.NewNotFound(classes, "fast").Error():                  true,
		"rpc error: code = NotFound desc = pool \"fast\" not found":     false,
		`storageclass.storage.k8s.io "fast" is being used, and "x" not`: false,
	} {
		if got := ReportsClassNotFound(message); got != want {
			t.Errorf("%q: %t, want %t", message, got, want)
		}
	}
}

func TestBindingTimedOut(t *testing.T) {
	for message, want := range map[string]bool{
		`running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded`:          true,
		`running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"`: false,
	} {
		if got := BindingTimedOut(message); got != want {
			t.Errorf("%q: %t, want %t", message, got, want)
		}
	}
}

func TestRejectedBinding(t *testing.T) {
	for message, want := range map[string]bool{
		`pods "app" is forbidden: ValidatingAdmissionPolicy 'xylem-namespaces' with binding 'xylem-namespaces' denied request: member "a" does not admit namespace "shop"`: true,
		`running Bind plugin "DefaultBinder": pods "app" is forbidden: ValidatingAdmissionPolicy 'xylem-namespaces' denied request: no`:                                    true,
		`pods "app" is forbidden: ValidatingAdmissionPolicy 'xylem-namespaces-2' denied request: no`:                                                                       false,
		`0/3 nodes are available: 3 node(s) had untolerated taint`:                                                                                                         false,
	} {
		if got := RejectedBinding(message, "xylem-namespaces"); got != want {
			t.Errorf("%q: %t, want %t", message, got, want)
		}
	}
}

func TestDeniedByPolicy(t *testing.T) {
	denied := func(message string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", errors.New(message))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: message}}
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"denied by the policy":                    {denied("ValidatingAdmissionPolicy 'ours' with binding 'ours' denied request: no"), true},
		"denied by a policy with a longer name":   {denied("ValidatingAdmissionPolicy 'ours-too' with binding 'ours' denied request: no"), false},
		"denied by a policy that quotes the name": {denied("ValidatingAdmissionPolicy 'theirs' with binding 'theirs' denied request: ValidatingAdmissionPolicy 'ours' "), false},
		"denied by the authorizer":                {apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "ours", nil), false},
		"not an API error":                        {errors.New("ValidatingAdmissionPolicy 'ours' "), false},
		"no error":                                {nil, false},
	} {
		if got := DeniedByPolicy(tt.err, "ours"); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestDeniedByAuthorizer(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New(why))
	}
	for name, tt := range map[string]struct {
		err         error
		want, quota bool
	}{
		"a missing permission":  {forbidden(`User "viewer" cannot get resource "secrets" in API group "" in the namespace "shop"`), true, false},
		"an RBAC escalation":    {forbidden(`user "viewer" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: …`), true, false},
		"a quota":               {forbidden("exceeded quota: few"), false, true},
		"not a Forbidden error": {errors.New(`: User "viewer" cannot get: exceeded quota: few`), false, false},
	} {
		if got, quota := DeniedByAuthorizer(tt.err), QuotaExceeded(tt.err); got != tt.want || quota != tt.quota {
			t.Errorf("%s: by the authorizer %t, by a quota %t; want %t, %t", name, got, quota, tt.want, tt.quota)
		}
	}
}
