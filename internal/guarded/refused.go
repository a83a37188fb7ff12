package guarded

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// RefusedByMember is what to tell the user of a write to a member that its API
// server refused, in its own words; nil for an error of any other kind. what is
// what was to be written, such as "the Pod".
func RefusedByMember(registration, doing, what string, err error) *mirror.Refusal {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return nil
	}
	return &mirror.Refusal{Reason: v1alpha1.ReasonRefusedByMember, Message: sanitize.Plain(fmt.Sprintf("member %s refuses to %s %s: %v", registration, doing, what, err), noteLimit)}
}
