package report

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// RefusedByMember reports a write that a member's API server rejected, with the server's message.
// It returns nil for other errors. doing is the verb, and what describes the object, such as "the
// Pod".
func RefusedByMember(registration, doing, what string, err error) *mirror.Refusal {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return nil
	}
	words := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		words = status.Status().Message
	}
	return mirror.Refuse(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem %s %s: %s. Change %s, or ask the member's admin to change the quota or policy",
		registration, doing, what, sanitize.Plain(words, refusedLimit), what)
}

// refusedLimit is the maximum length, in bytes, of a member's message, so that an event has space
// for the remedy.
const refusedLimit = 700
