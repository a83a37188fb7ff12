package awaymember

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

func TestDecideAttachment(t *testing.T) {
	away := &corev1.NodeCondition{Message: "no answer", LastTransitionTime: metav1.Date(2026, 11, 25, 11, 0, 0, 0, time.UTC)}
	shown := func(status corev1.ConditionStatus, reason string) *corev1.PersistentVolumeClaimCondition {
		return &corev1.PersistentVolumeClaimCondition{Status: status, Reason: reason, Message: "as before"}
	}
	was := shown(corev1.ConditionTrue, v1alpha1.ReasonAttached)
	for name, tc := range map[string]struct {
		in   observedAttachment
		want *report.AttachedCondition
	}{
		"away": {observedAttachment{cluster: "id", registered: true, name: "cluster38", away: away}, &report.AttachedCondition{Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonMemberAway, Message: `it is unknown whether the volume is attached: member "cluster38" has been away since 2026-11-25T11:00:00Z: no answer. The last report was: as before`}},
		"away, and the condition already reports it": {observedAttachment{shown: shown(corev1.ConditionUnknown, v1alpha1.ReasonMemberAway), cluster: "id", registered: true, away: away}, nil},
		"connected again":                     {observedAttachment{shown: shown(corev1.ConditionUnknown, v1alpha1.ReasonMemberAway), cluster: "id", registered: true, linked: true, away: away}, nil},
		"not connected, and not away yet":     {observedAttachment{cluster: "id", registered: true}, nil},
		"deregistered":                        {observedAttachment{cluster: "id"}, &report.AttachedCondition{Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonClusterGone, Message: `it is unknown whether the volume is attached: the cluster with ID "id" was deregistered. The last report was: as before`}},
		"the claim has no volume in a member": {observedAttachment{}, &report.AttachedCondition{}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.in.shown == nil {
				tc.in.shown = was
			}
			if diff := cmp.Diff(tc.want, decideAttachment(tc.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
