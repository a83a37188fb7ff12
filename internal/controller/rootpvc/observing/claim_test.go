package observing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// A member that no longer has the volume that a claim requests removes its own report, and no other
// member's.
func TestReportsOnRequestedVolumes(t *testing.T) {
	here := mirror.Member{ClusterID: "id38", NodeName: "kosmos-cluster38"}
	for name, tc := range map[string]struct {
		asked      bool
		rivals     []string
		reportedBy string
		want       bool
	}{
		"the member has the volume":                             {asked: true, want: true},
		"other members have it, too":                            {asked: true, rivals: []string{"cluster39"}},
		"the member does not have it":                           {},
		"the member no longer has it, and has reported on it":   {reportedBy: "id38", want: true},
		"the member does not have it, and another has reported": {reportedBy: "id39"},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
			if tc.reportedBy != "" {
				metav1.SetMetaDataAnnotation(&root.ObjectMeta, v1alpha1.AnnotationReportedBy, tc.reportedBy)
				root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse}}
			}
			c := Claim{Root: root, Observed: &volume.Observed{Placement: &volume.Placement{Rivals: tc.rivals}}}
			if tc.asked {
				c.Observed.Placement.Asked = &corev1.PersistentVolume{}
			}
			if got := c.Reports(here); got != tc.want {
				t.Errorf("Reports returned %t", got)
			}
		})
	}
}
