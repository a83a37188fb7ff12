package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestMoverNamesAreValid(t *testing.T) {
	for _, claim := range []string{"data", strings.Repeat("a", 253), strings.Repeat("a", 199) + ".b" + strings.Repeat("c", 50)} {
		r := &Record{ID: "abcde", Run: "fghij", Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}}
		for _, role := range []Role{Reader, Writer} {
			if wrong := validation.IsDNS1123Subdomain(MoverName(r, role)); len(wrong) > 0 {
				t.Errorf("%q is not a valid name: %v", MoverName(r, role), wrong)
			}
		}
	}
}

func TestTolerations(t *testing.T) {
	got := tolerations([]corev1.Taint{
		{Key: "kosmos.io/node", Value: "true", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: v1alpha1.TaintMemberAway, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	})
	want := []corev1.Toleration{{Key: "kosmos.io/node", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
