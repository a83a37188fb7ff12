package clusterregistration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestNamespacesAdmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		NamespaceAdmission
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"only admitted namespaces have objects in the member": {
			NamespaceAdmission{HostNamespaces: 5, Admitted: 2}, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted,
			"spec.namespaces admits 2 of the host's 5 namespaces, and the member has no claims or Pods from other namespaces",
		},
		"the default denials are lifted": {
			NamespaceAdmission{HostNamespaces: 5, Admitted: 5, LiftedDenials: []string{"openshift*", "istio-*"}}, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted,
			"spec.namespaces admits 5 of the host's 5 namespaces, and the member has no claims or Pods from other namespaces. spec.namespaces.deny replaces the default, so the member also accepts namespaces that match openshift*, istio-*. To deny them again, add these patterns",
		},
		"no namespace is admitted": {
			NamespaceAdmission{HostNamespaces: 1}, metav1.ConditionFalse, v1alpha1.ReasonNoNamespaceAdmitted,
			"spec.namespaces admits none of the host's 1 namespace: no Pod or claim can go to the member. Change spec.namespaces, or label a namespace as spec.namespaces.matchLabels requires",
		},
		"one namespace that is not admitted has objects in the member": {
			NamespaceAdmission{HostNamespaces: 5, Admitted: 2, LeftContents: map[string]NamespaceContents{"shop": {Claims: 1, Pods: 2}}}, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted,
			`the member has claims or Pods from namespaces that spec.namespaces does not admit: "shop" (1 claim, 2 Pods). Xylem leaves these claims and Pods in the member, and creates no others. Delete them, or change spec.namespaces or the labels of the namespaces`,
		},
		"no namespace is admitted, and one has objects in the member": {
			NamespaceAdmission{HostNamespaces: 5, LeftContents: map[string]NamespaceContents{"shop": {Pods: 1}}}, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted,
			`the member has claims or Pods from namespaces that spec.namespaces does not admit: "shop" (0 claims, 1 Pod). Xylem leaves these claims and Pods in the member, and creates no others. Delete them, or change spec.namespaces or the labels of the namespaces`,
		},
		"many namespaces that are not admitted have objects in the member": {
			NamespaceAdmission{HostNamespaces: 9, Admitted: 2, LeftContents: map[string]NamespaceContents{"a": {Pods: 1}, "b": {Pods: 3}, "c": {Claims: 1}, "d": {Claims: 4}, "e": {Pods: 1}}}, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted,
			`the member has claims or Pods from namespaces that spec.namespaces does not admit: "d" (4 claims, 0 Pods), "c" (1 claim, 0 Pods), "b" (0 claims, 3 Pods), and 2 more. Xylem leaves these claims and Pods in the member, and creates no others. Delete them, or change spec.namespaces or the labels of the namespaces`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{Type: v1alpha1.ConditionNamespacesAdmitted, Status: tc.status, Reason: tc.reason, Message: tc.message}
			if diff := cmp.Diff(want, tc.AdmittedCondition()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
