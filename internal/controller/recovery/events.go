package recovery

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/text"
)

// eventMoved reports the reassignment on the claims and on their Pods. It names the node as the
// related object, because the recorder merges events that differ only in their note.
func (r *reconciler) eventMoved(o observed, d move) {
	note := fmt.Sprintf("%s. Xylem tries member %q next", d.why.Message, d.to.Labels[v1alpha1.LabelCluster])
	for _, c := range d.claims {
		r.Recorder.Eventf(c.root, d.to, corev1.EventTypeWarning, v1alpha1.ReasonPlacementMoved, "Move", "%s", note)
	}
	for i := range o.pods {
		r.Recorder.Eventf(&o.pods[i], d.to, corev1.EventTypeWarning, v1alpha1.ReasonPlacementMoved, "Move", "%s: %s", claimsOf(d.claims), note)
	}
}

func (r *reconciler) eventRoundEnded(o observed, d free) {
	next := time.Unix(d.tried.Until, 0).UTC().Format(time.RFC3339)
	for i := range o.pods {
		r.Recorder.Eventf(&o.pods[i], o.claim.root, corev1.EventTypeWarning, v1alpha1.ReasonPlacementFailed, fmt.Sprintf("Round%d", d.tried.Rounds),
			"no member could provision %s: %[3]s. The scheduler can now choose any member; Xylem does not choose another one before %[2]s", claimsOf(d.claims), next, d.tried.Said(""))
	}
}

func (r *reconciler) eventNowhereElse(o observed, d stay) {
	for i := range o.pods {
		r.Recorder.Eventf(&o.pods[i], o.claim.root, corev1.EventTypeWarning, v1alpha1.ReasonPlacementFailed, "Stay",
			"no other member can provision %s: none that is Ready offers the class, has enough capacity and can run the Pod. %s", claimsOf(d.claims), d.why.Message)
	}
}

// claimsOf returns the names of the claims.
func claimsOf(claims []claim) string {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.root.Name
	}
	if len(names) == 1 {
		return "claim " + text.Quoted(names...)
	}
	return "claims " + text.Quoted(names...)
}
