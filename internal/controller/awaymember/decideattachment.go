package awaymember

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// maxLastReport is the maximum length, in bytes, of the last report in a message.
const maxLastReport = 1000

// observedAttachment is the input of decideAttachment.
type observedAttachment struct {
	shown *corev1.PersistentVolumeClaimCondition
	// cluster is the ID of the member that has the claim's volume. It is empty if none has it.
	cluster string
	// registered means that the member is registered. linked means that its controllers run.
	registered, linked bool
	// name is the registration's name. away is the condition MemberAway of its Node, or nil if the
	// member is not away.
	name string
	away *corev1.NodeCondition
}

// decideAttachment returns the condition of a claim on which no Link reports, or nil if it does not
// change.
func decideAttachment(o observedAttachment) *report.AttachedCondition {
	unknown := func(reason, why string) *report.AttachedCondition {
		if o.shown.Status == corev1.ConditionUnknown {
			return nil // the condition already contains the last report
		}
		return &report.AttachedCondition{Status: corev1.ConditionUnknown, Reason: reason, Message: fmt.Sprintf("it is unknown whether the volume is attached: %s. The last report was: %s", why, mirror.PlainText(o.shown.Message, maxLastReport))}
	}
	switch {
	case o.cluster == "":
		return &report.AttachedCondition{}
	case !o.registered:
		return unknown(v1alpha1.ReasonClusterGone, fmt.Sprintf("the cluster with ID %q was deregistered", o.cluster))
	case o.linked, o.away == nil:
		return nil
	}
	return unknown(v1alpha1.ReasonMemberAway, fmt.Sprintf("member %q has been away since %s: %s", o.name, o.away.LastTransitionTime.UTC().Format(time.RFC3339), o.away.Message))
}
