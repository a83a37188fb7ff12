package clusterregistration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/wording"
)

// NamespaceContents counts a namespace's claims and Pods in a member.
type NamespaceContents struct{ Claims, Pods int }

// NamespaceAdmission is the input of the NamespacesAdmitted condition.
type NamespaceAdmission struct {
	// HostNamespaces is the number of the host's namespaces. Admitted is the number of those that the rules
	// admit.
	HostNamespaces, Admitted int
	// LeftContents contains, by name, the namespaces that the rules do not admit but that still have objects
	// in the member.
	LeftContents map[string]NamespaceContents
	// LiftedDenials are the default patterns of denied namespaces that spec.namespaces.deny replaces.
	LiftedDenials []string
}

// AdmittedCondition returns the NamespacesAdmitted condition.
func (a NamespaceAdmission) AdmittedCondition() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionNamespacesAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNamespacesAdmitted,
		Message: fmt.Sprintf("spec.namespaces admits %d of the host's %s, and the member has no claims or Pods from other namespaces", a.Admitted, wording.CountNoun(a.HostNamespaces, "namespace"))}
	switch {
	case len(a.LeftContents) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted
		c.Message = fmt.Sprintf("the member has claims or Pods from namespaces that spec.namespaces does not admit: %s. Xylem leaves these claims and Pods in the member, and creates no others. Delete them, or change spec.namespaces or the labels of the namespaces", firstNamespaces(a.LeftContents))
	case a.Admitted == 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonNoNamespaceAdmitted
		c.Message = fmt.Sprintf("spec.namespaces admits none of the host's %s: no Pod or claim can go to the member. Change spec.namespaces, or label a namespace as spec.namespaces.matchLabels requires", wording.CountNoun(a.HostNamespaces, "namespace"))
	}
	if len(a.LiftedDenials) > 0 {
		c.Message += fmt.Sprintf(". spec.namespaces.deny %s. To deny them again, add these patterns", placement.LiftedDenialsText(a.LiftedDenials))
	}
	return c
}

// firstNamespaces lists the namespaces that have the most objects in the member.
func firstNamespaces(left map[string]NamespaceContents) string {
	names := slices.SortedFunc(maps.Keys(left), func(a, b string) int {
		return cmp.Or(cmp.Compare(left[b].Claims, left[a].Claims), cmp.Compare(left[b].Pods, left[a].Pods), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%q (%s, %s)", name, wording.CountNoun(left[name].Claims, "claim"), wording.CountNoun(left[name].Pods, "Pod"))
	}
	return wording.FirstNames(names, namesListed, ", ")
}
