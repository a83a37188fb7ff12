package deregistration

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
)

// What a member reported about a claim that it no longer has would hide why the claim waits (I6).
func TestForgetReports(t *testing.T) {
	reported := func(name, by, placed string, status corev1.ConditionStatus) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{v1alpha1.AnnotationReportedBy: by, v1alpha1.AnnotationPlacedIn: placed}}}
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: status, Reason: v1alpha1.ReasonRefusedByMember}}
		return c
	}
	var forgotten []string
	r := &Deregisterer{
		Client: host{claims: []corev1.PersistentVolumeClaim{
			reported("withdrawn", leftID, "", corev1.ConditionFalse), reported("moved", leftID, "another", corev1.ConditionFalse),
			reported("kept", leftID, leftID, corev1.ConditionFalse), reported("theirs", "another", "", corev1.ConditionFalse),
			reported("solved", leftID, "", corev1.ConditionTrue),
		}},
		Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)),
		ReportPlaced: func(_ context.Context, _ *guarded.HostWriter, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, _ time.Time) error {
			if clusterID != leftID || problem != nil {
				t.Errorf("reported %v for cluster %q", problem, clusterID)
			}
			forgotten = append(forgotten, claim.Name)
			return nil
		},
	}
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: leftID}}
	if err := r.removeOutdatedReports(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if want := []string{"withdrawn", "moved"}; !slices.Equal(forgotten, want) {
		t.Errorf("forgot the reports on %v, want %v", forgotten, want)
	}
}
