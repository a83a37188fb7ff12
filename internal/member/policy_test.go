package member

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestJudged(t *testing.T) {
	forbidden := func(causes ...string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, PolicyProbeName, errors.New("no"))
		for _, cause := range causes {
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: cause})
		}
		return err
	}
	for name, tc := range map[string]struct {
		err  error
		want *bool
	}{
		"the member accepts the request":           {nil, new(false)},
		"rejected by the policy":                   {forbidden("ValidatingAdmissionPolicy 'xylem-account' with binding 'xylem-account' denied request: Xylem's account creates nothing without"), new(true)},
		"rejected by another policy":               {forbidden("ValidatingAdmissionPolicy 'no-namespaces' with binding 'b' denied request: see xylem-account"), nil},
		"rejected because of a missing permission": {forbidden(), nil},
		"a webhook does not support dry runs":      {apierrors.NewBadRequest("admission webhook does not support dry run"), nil},
		"no response":                              {errors.New("connection refused"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := policyStateOf(tc.err)
			if diff := cmp.Diff(tc.want, got.Enforced); diff != "" {
				t.Error(diff)
			}
			if proven := got.Enforced != nil && *got.Enforced; proven == (got.Detail != "") {
				t.Errorf("detail is %q, want one only if the policy is not proven", got.Detail)
			}
		})
	}
}
