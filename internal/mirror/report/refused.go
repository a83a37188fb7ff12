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
	if !rejected(err) {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem %s %s: %s. Change %s, or ask the member's admin to change the quota or policy",
		registration, doing, what, said(err), what)
}

// UpdateRefused reports that a member's API server rejects a change to a running leaf Pod. It
// returns nil for errors that a retry may resolve.
func UpdateRefused(registration string, err error) *mirror.Refusal {
	if !rejected(err) {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonRefusedByMember, "the Pod runs in member %q without its latest change, because the member does not let Xylem update the Pod: %s. Undo the change, or ask the member's admin to change the policy",
		registration, said(err))
}

// rejected reports whether a member's API server decided against a write, so that a retry does not
// help before somebody changes something.
func rejected(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// said returns the message of a member's API server.
func said(err error) string {
	words := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		words = status.Status().Message
	}
	return sanitize.Plain(words, refusedLimit)
}

// CopyRefused reports that a member's API server rejects a copy of a claim's shared volume. It
// returns nil for errors that a retry may resolve.
func CopyRefused(registration, claim string, err error) *mirror.Refusal {
	if !rejected(err) {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonRefusedByMember, "member %q does not let Xylem create a copy of the shared volume of claim %q: %s. Ask the member's admin to allow copies for the backend's driver, or run the Pod in the member that has the volume",
		registration, claim, said(err))
}

// refusedLimit is the maximum length, in bytes, of a member's message, so that an event has space
// for the remedy.
const refusedLimit = 700
