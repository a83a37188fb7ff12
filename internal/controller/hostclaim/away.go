package hostclaim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// decideForSelectedMember returns the decision for a claim for which a member is selected. If the member is connected,
// root_pvc reports on the claim. If it is not, and the claim is not placed there, away removes the
// selection after the class's timeout, because Xylem writes nothing to a member before placed-in
// names it. If the claim is placed there, the selection stays, because the member may have a volume
// for the claim.
func decideForSelectedMember(o observed, timeout time.Duration) decision {
	if d := reportPlacedAway(o); d.reason != "" {
		return d
	}
	for _, m := range slices.Concat(o.members, o.leaving) {
		if m.HasNode(o.claim.Annotations[route.AnnSelectedNode]) && m.Disconnected() {
			return o.decideForDisconnected(m, timeout)
		}
	}
	return decision{}
}

// reportPlacedAway reports that the member in which the claim is placed is disconnected, or returns an empty
// decision.
func reportPlacedAway(o observed) decision {
	placed := o.claim.Annotations[v1alpha1.AnnotationPlacedIn]
	for _, m := range slices.Concat(o.members, o.leaving) {
		if placed != "" && m.ClusterID == placed && m.Disconnected() {
			remedy := "delete its ClusterRegistration and annotate the ClusterRegistration"
			if m.Leaving {
				remedy = "annotate its ClusterRegistration, which is being deleted,"
			}
			return problemDecision(v1alpha1.ReasonMemberAway, "member %q is not connected, and may have a volume for the claim, so no other member may provision one. Wait until the member is connected again. Or delete the claim: Xylem then deletes the volume once the member is connected. If the member is lost permanently, %s with %s=true",
				m.Registration, remedy, v1alpha1.AnnotationForceDeregister)
		}
	}
	return decision{}
}

// decideForDisconnected returns the decision for a claim that selects a disconnected member: to report the
// disconnection and, once the timeout is over, to remove the selection.
func (o observed) decideForDisconnected(m placement.Candidate, timeout time.Duration) decision {
	since := o.now
	for _, c := range o.claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPlaceable && c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.ReasonMemberAway {
			since = c.LastTransitionTime.Time
		}
	}
	wait := since.Add(timeout).Sub(o.now)
	if wait > 0 {
		d := problemDecision(v1alpha1.ReasonMemberAway, "the scheduler chose member %q, which is not connected, so Xylem has created nothing there. If the member is still not connected after %s, Xylem lets the scheduler choose again", m.Registration, timeout)
		d.again = wait
		return d
	}
	return decision{unselect: true, reason: v1alpha1.ReasonMemberAway, note: fmt.Sprintf(
		"the scheduler chose member %q, which has not been connected since %s, so Xylem has created nothing there. Xylem removes the annotation selected-node, and the scheduler chooses again",
		m.Registration, since.UTC().Format(time.RFC3339))}
}
