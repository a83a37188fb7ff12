package recovery

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/wording"
)

// emitPlacementMoved reports the reassignment on the claims and on their Pods. It names the node as the
// related object, because the recorder merges events that differ only in their note.
func (r *reconciler) emitPlacementMoved(o observed, d moveClaims) {
	next := fmt.Sprintf("member %q", d.To.Labels[v1alpha1.LabelCluster])
	if d.To.Labels[v1alpha1.LabelNodeGroup] != "" {
		next = fmt.Sprintf("node %q of member %q", d.To.Name, d.To.Labels[v1alpha1.LabelCluster])
	}
	note := fmt.Sprintf("%s. Xylem tries %s next", d.Why.Message, next)
	for _, c := range d.Claims {
		r.Recorder.Eventf(c.Root, d.To, corev1.EventTypeWarning, v1alpha1.ReasonPlacementMoved, "Move", "%s", note)
	}
	for i := range o.Pods {
		r.Recorder.Eventf(&o.Pods[i], d.To, corev1.EventTypeWarning, v1alpha1.ReasonPlacementMoved, "Move", "%s: %s", quoteClaimNames(d.Claims), note)
	}
}

func (r *reconciler) eventRoundEnded(o observed, d freeClaims) {
	next := time.Unix(d.Attempted.Until, 0).UTC().Format(time.RFC3339)
	for i := range o.Pods {
		r.Recorder.Eventf(&o.Pods[i], o.Claim.Root, corev1.EventTypeWarning, v1alpha1.ReasonPlacementFailed, fmt.Sprintf("Round%d", d.Attempted.Rounds),
			"no member could provision %s: %[3]s. The scheduler can now choose any member; Xylem does not choose another one before %[2]s", quoteClaimNames(d.Claims), next, d.Attempted.MessagesExcept("", ""))
	}
}

func (r *reconciler) emitNoOtherMember(o observed, d recordNoCandidate) {
	for i := range o.Pods {
		r.Recorder.Eventf(&o.Pods[i], o.Claim.Root, corev1.EventTypeWarning, v1alpha1.ReasonPlacementFailed, "Stay",
			"no other member can provision %s: none that is Ready offers the class, has enough capacity and can run the Pod. %s", quoteClaimNames(d.Claims), d.Why.Message)
	}
}

// quoteClaimNames returns the names of the claims.
func quoteClaimNames(claims []observedClaim) string {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.Root.Name
	}
	if len(names) == 1 {
		return "claim " + wording.QuotedNames(names...)
	}
	return "claims " + wording.QuotedNames(names...)
}
