package mirror

import (
	"reflect"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// BudgetFieldTable contains the decisions on the fields of a PodDisruptionBudget.
var BudgetFieldTable = fields.Table{
	Title:      "PodDisruptionBudget spec (host to member)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[policyv1.PodDisruptionBudgetSpec](),
	Fields: []fields.Field{
		{Path: "minAvailable", Decision: fields.Translate, Why: "how many Pods in the member must stay healthy: the host's `status.desiredHealthy`, minus the budget's healthy Pods outside the member. It is always a number, because leaf Pods have no controller of which it could be a share"},
		{Path: "maxUnavailable", Decision: fields.Drop, Why: "the host's `status.desiredHealthy` includes it, see minAvailable"},
		{Path: "selector", Decision: fields.Translate, Why: "also requires the host's label, so that the budget never protects, or counts, the member's own Pods"},
		{Path: "unhealthyPodEvictionPolicy", Decision: fields.Translate, Why: "kept; AlwaysAllow if enough Pods outside the member are healthy, because then the host, too, allows the eviction of unhealthy Pods"},
	},
}

// TranslateBudget returns the leaf budget that keeps a number of Pods in a member healthy, including its origin.
func TranslateBudget(root *policyv1.PodDisruptionBudget, m Member, minAvailable int32) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt32(minAvailable)
	leaf := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               &available,
			Selector:                   leafSelector(root.Spec.Selector, m.HostID),
			UnhealthyPodEvictionPolicy: fields.ClonePointer(root.Spec.UnhealthyPodEvictionPolicy),
		},
	}
	// With 0, the eviction API never counts the budget as kept, and protects unhealthy Pods instead.
	if allowed := policyv1.AlwaysAllow; minAvailable == 0 && root.Status.DesiredHealthy > 0 {
		leaf.Spec.UnhealthyPodEvictionPolicy = &allowed
	}
	OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf
}

// leafSelector returns a selector of the leaves of the objects that a selector in the host selects.
func leafSelector(root *metav1.LabelSelector, hostID string) *metav1.LabelSelector {
	leaf := &metav1.LabelSelector{}
	if root != nil {
		leaf = root.DeepCopy()
	}
	leaf.MatchLabels = fields.MergeStringMaps(leaf.MatchLabels, map[string]string{v1alpha1.LabelHost: hostID})
	return leaf
}

// LabelNotOnLeaves returns the first key of a selector that leaves don't have from their roots, or "".
func LabelNotOnLeaves(selector *metav1.LabelSelector) string {
	for key := range selector.MatchLabels {
		if !fields.IsCopiedToLeaf(key) {
			return key
		}
	}
	for _, expression := range selector.MatchExpressions {
		if !fields.IsCopiedToLeaf(expression.Key) {
			return expression.Key
		}
	}
	return ""
}
