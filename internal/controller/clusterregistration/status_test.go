package clusterregistration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/member"
)

// A long response from a member must not make the API server reject the registration's status, in
// which messages are limited to 32 KiB.
func TestConditionsAreBounded(t *testing.T) {
	answer := "\x1b[2J" + strings.Repeat("no ", 20<<10)
	for name, condition := range map[string]metav1.Condition{
		"in the probe of the admission policies": PolicyEnforced(member.PolicyState{Detail: answer}),
		"in the list of volumes": VolumesAccounted(account.OrphanInventory{FailureCause: answer, FailingSince: time.Unix(0, 0)},
			&v1alpha1.ClusterRegistrationStatus{}),
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.ClusterRegistration{}
			SetOnRegistration(cr, []metav1.Condition{condition})
			if len(cr.Status.Conditions) != 1 {
				t.Fatalf("%d conditions", len(cr.Status.Conditions))
			}
			got := cr.Status.Conditions[0].Message
			if len(got) > maxMessageBytes || strings.Contains(got, "\x1b") || !strings.Contains(got, "no no") {
				t.Errorf("%d bytes: %.100q", len(got), got)
			}
		})
	}
}
