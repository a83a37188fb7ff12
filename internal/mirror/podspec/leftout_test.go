package podspec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

func TestLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"the API server's defaults": {spec: corev1.PodSpec{
			NodeName: "kosmos-a", ServiceAccountName: "default", DeprecatedServiceAccount: "default", SchedulerName: corev1.DefaultSchedulerName,
			Priority: new(int32(0)), PreemptionPolicy: new(corev1.PreemptLowerPriority),
		}},
		"a service account other than default": {
			spec: corev1.PodSpec{ServiceAccountName: "builder", DeprecatedServiceAccount: "builder", AutomountServiceAccountToken: new(true)},
			want: []string{`spec.serviceAccountName "builder" and its token`},
		},
		"an explicit token for the default service account": {
			spec: corev1.PodSpec{ServiceAccountName: "default", AutomountServiceAccountToken: new(true)},
			want: []string{"the service account's token (spec.automountServiceAccountToken)"},
		},
		"several fields": {
			spec: corev1.PodSpec{
				ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "lb"}}, PriorityClassName: "high", Priority: new(int32(9)), SchedulerName: "mine",
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MinDomains: new(int32(3))}},
			},
			want: []string{"spec.readinessGates", `spec.schedulerName "mine"`, `spec.priorityClassName "high" (its ClusterRegistration does not map the class in spec.pods.priorityClasses)`, "spec.topologySpreadConstraints[0].minDomains"},
		},
		"a mapped priority class": {spec: corev1.PodSpec{PriorityClassName: "mapped", Priority: new(int32(9))}},
		"ephemeral containers, which are pushed later": {spec: corev1.PodSpec{
			EphemeralContainers: []corev1.EphemeralContainer{{}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := OmittedFields(&corev1.Pod{Spec: tc.spec}, mirror.Member{PriorityClasses: map[string]string{"mapped": "theirs"}})
			if diff := cmp.Diff(slices.Sorted(slices.Values(tc.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("omitted (-want +got):\n%s", diff)
			}
		})
	}
}
