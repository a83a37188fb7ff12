package nodes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func virtual(ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", Labels: map[string]string{
		v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelManagedBy: "xylem", v1alpha1.LabelCluster: "a", v1alpha1.LabelClusterID: "id",
	}}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: "the virtual node"}}
	}
	return n
}

// away returns a Node whose member has been away for the given reason.
func away(reason string) *corev1.Node {
	node := virtual(corev1.ConditionFalse)
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: v1alpha1.NodeMemberAway, Status: corev1.ConditionTrue, Reason: reason, Message: "as reported",
	})
	return node
}

func withoutCSINode() *corev1.Node {
	node := virtual(corev1.ConditionTrue)
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: v1alpha1.NodeCSINode, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonCSINodeNameTaken, Message: "as reported",
	})
	return node
}

func TestReadyCondition(t *testing.T) {
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", Labels: map[string]string{v1alpha1.LabelClusterID: "id"}}}
	other := virtual(corev1.ConditionTrue)
	other.Labels[v1alpha1.LabelClusterID] = "other"
	for name, tc := range map[string]struct {
		node      *corev1.Node
		clusterID string
		taken     bool
		status    metav1.ConditionStatus
		reason    string
	}{
		"the member was never connected":      {nil, "", false, metav1.ConditionFalse, v1alpha1.ReasonNotConnected},
		"the Node is not created yet":         {nil, "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"a real node has the name":            {plain, "id", true, metav1.ConditionFalse, v1alpha1.ReasonNodeNameTaken},
		"another cluster's Node has the name": {other, "id", true, metav1.ConditionFalse, v1alpha1.ReasonNodeNameTaken},
		"the member's identity is unknown":    {virtual(corev1.ConditionTrue), "", true, metav1.ConditionFalse, v1alpha1.ReasonNodeNameTaken},
		"the Node has no Ready condition yet": {virtual(""), "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"the Node is not ready":               {virtual(corev1.ConditionFalse), "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"the Node's readiness is unknown":     {virtual(corev1.ConditionUnknown), "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"the Node is ready":                   {virtual(corev1.ConditionTrue), "id", false, metav1.ConditionTrue, v1alpha1.ReasonNodeReady},
		"the member is unreachable":           {away(v1alpha1.ReasonUnreachable), "id", false, metav1.ConditionFalse, v1alpha1.ReasonMemberAway},
		"the CSINode's name is taken":         {withoutCSINode(), "id", false, metav1.ConditionFalse, v1alpha1.ReasonCSINodeNameTaken},
		"the member is being synced":          {away(v1alpha1.ReasonSyncing), "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"the member is being connected":       {away(v1alpha1.ReasonConnecting), "id", false, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			r.Status.ClusterID = tc.clusterID
			got := RegistrationReadyCondition(tc.node, r)
			if diff := cmp.Diff([]string{string(tc.status), tc.reason}, []string{string(got.Status), got.Reason}); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if got.Message == "" || got.Type != v1alpha1.ConditionNodeReady {
				t.Errorf("condition %+v", got)
			}
			if taken := NameTaken(tc.node, tc.clusterID); taken != tc.taken {
				t.Errorf("taken: %t, want %t", taken, tc.taken)
			}
		})
	}
}

// A member with spec.nodes is ready if at least one of its virtual nodes is.
func TestGroupsReadyCondition(t *testing.T) {
	node := func(ready corev1.ConditionStatus) corev1.Node { return *virtual(ready) }
	r := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: "id"}}
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x.kosmos-a"}}
	for name, tc := range map[string]struct {
		nodes   []corev1.Node
		taken   *corev1.Node
		problem string
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"all":             {[]corev1.Node{node(corev1.ConditionTrue), node(corev1.ConditionTrue)}, nil, "", metav1.ConditionTrue, v1alpha1.ReasonNodeReady, "ready nodes: 2 of 2"},
		"one of two":      {[]corev1.Node{node(corev1.ConditionFalse), node(corev1.ConditionTrue)}, nil, "rule 2 matches no node", metav1.ConditionTrue, v1alpha1.ReasonNodeReady, "ready nodes: 1 of 2; rule 2 matches no node"},
		"none":            {[]corev1.Node{*away(v1alpha1.ReasonNoReadyNodes)}, nil, "", metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "ready nodes: 0 of 1: member "},
		"away":            {[]corev1.Node{*away(v1alpha1.ReasonUnreachable)}, nil, "", metav1.ConditionFalse, v1alpha1.ReasonMemberAway, "ready nodes: 0 of 1: member "},
		"no group":        {nil, nil, "rule 1 matches no node", metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "the member has no virtual node"},
		"a name is taken": {[]corev1.Node{node(corev1.ConditionTrue)}, foreign, "", metav1.ConditionFalse, v1alpha1.ReasonNodeNameTaken, `Node "x.kosmos-a" already exists`},
	} {
		got := GroupsReadyCondition(tc.nodes, tc.taken, tc.problem, r)
		if got.Status != tc.status || got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) {
			t.Errorf("%s: %+v, want %s %s %q", name, got, tc.status, tc.reason, tc.message)
		}
	}
}
