package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUsing(t *testing.T) {
	pod := func(name, claim, id string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if id != "" {
			p.Labels = LabelsOfMove(id)
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	ephemeral := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job"}}
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	pods := []corev1.Pod{pod("a", "data", ""), pod("b", "other", ""), pod("mine", "data", "abcde"), pod("another-move", "data", "fghij"), ephemeral}
	if diff := cmp.Diff([]string{"a", "another-move"}, podsUsing(pods, "abcde", "data")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"job"}, podsUsing(pods, "", "job-scratch")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
