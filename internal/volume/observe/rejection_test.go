package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// In a new link, the last report about a rejected namespace stands until leaf_namespace has tried again.
func TestRejection(t *testing.T) {
	const last = "the member rejected it before"
	reported := func(reason, by string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{v1alpha1.AnnotationReportedBy: by}},
			Status: corev1.PersistentVolumeClaimStatus{Conditions: []corev1.PersistentVolumeClaimCondition{{
				Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: reason, Message: last,
			}}},
		}
	}
	// Otherwise, each report would append the problems of the other members again.
	afterAnother := func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		tried := report.AttemptedMembers{}.WithFailedMember(mirror.Member{ClusterID: "other"}, mirror.NewRefusal("reason", "it is full"))
		shown := tried.AppendOtherProblems(report.ClaimConditionProblem(c, v1alpha1.ClaimPlaced), mirror.Member{ClusterID: "id"}, "")
		c.Status.Conditions[0].Message = shown.Message
		return c
	}
	denied := mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, "the member rejects it now")
	for name, tc := range map[string]struct {
		root  *corev1.PersistentVolumeClaim
		tried bool
		now   *mirror.Refusal
		want  string
	}{
		"not tried again":                       {root: reported(v1alpha1.ReasonNamespaceRefused, "id"), want: last},
		"not tried again, after another member": {root: afterAnother(reported(v1alpha1.ReasonNamespaceRefused, "id")), want: last},
		"tried again, rejected":                 {reported(v1alpha1.ReasonNamespaceRefused, "id"), true, denied, denied.Message},
		"tried again, created":                  {root: reported(v1alpha1.ReasonNamespaceRefused, "id"), tried: true},
		"another member's report":               {root: reported(v1alpha1.ReasonNamespaceRefused, "other")},
		"a report of another problem":           {root: reported(v1alpha1.ReasonNameTaken, "id")},
		"no report":                             {root: &corev1.PersistentVolumeClaim{}},
	} {
		t.Run(name, func(t *testing.T) {
			link := &member.Link{Member: mirror.Member{ClusterID: "id"}}
			if tc.tried {
				link.NamespaceRejections.SetRejection("shop", tc.now)
			}
			got := ""
			if refusal := rejectionOf(link, tc.root); refusal != nil {
				got = refusal.Message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
