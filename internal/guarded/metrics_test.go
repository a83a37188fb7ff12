package guarded

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			if got := resultOf(tt.err); got != tt.want {
				t.Errorf("resultOf() = %q, want %q", got, tt.want)
			}
		})
	}
}
