package why

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// selectable returns a Pod on a node.
func selectable(name, node string, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "db"}}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestOfService(t *testing.T) {
	here, elsewhere := selectable("db-0", memberNode, corev1.ConditionTrue), selectable("db-0", "node-1", corev1.ConditionTrue)
	client := selectable("client", memberNode, corev1.ConditionTrue)
	client.Labels = nil
	routed := func(s *selection) { s.Registrations[0].Spec.Node.PodCIDRs = []string{v1alpha1.AllPodCIDRs} }
	for name, tc := range map[string]struct {
		pods   []corev1.Pod
		change func(*selection)
		want   Verdict
		says   []string
	}{
		"on the host's own nodes":       {pods: []corev1.Pod{elsewhere}, want: Well, says: []string{`Service "shop/db" has endpoints for its clients (1 ready endpoint in the host)`}},
		"in a member":                   {pods: []corev1.Pod{here}, change: routed, want: Well},
		"no Pods":                       {want: Problem, says: []string{"no Pod has the labels of its selector (app=db)", "Correct the selector"}},
		"no Pod is ready":               {pods: []corev1.Pod{selectable("db-0", "node-1", corev1.ConditionFalse)}, want: Problem, says: []string{"none of its Pods is ready (db-0)", "why pod db-0 -n shop"}},
		"clients in the host":           {pods: []corev1.Pod{here}, want: Problem, says: []string{"clients outside member", "spec.node.podCIDRs", "ask the host's admin to set it"}},
		"clients in a member":           {pods: []corev1.Pod{elsewhere, client}, want: Problem, says: []string{"it has no endpoints in member", "spec.services.reachable", "run a Pod of the Service in the member"}},
		"clients in a member reach all": {pods: []corev1.Pod{elsewhere, client}, change: func(s *selection) { s.Registrations[0].Spec.Services.Reachable = []string{"10.0.0.0/8"} }, want: Well},
		"an opt-out": {pods: []corev1.Pod{here}, change: func(s *selection) {
			routed(s)
			s.service.Annotations = map[string]string{v1alpha1.AnnotationReflect: "false"}
		}, want: Problem, says: []string{"do not resolve its name, because it has the annotation xylem.io/reflect=false", "Remove the annotation"}},
		"an external name": {pods: []corev1.Pod{client}, change: func(s *selection) {
			s.service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}
		}, want: Problem, says: []string{"of type ExternalName", `Use "db.example.com" in these Pods`}},
		"no Services in the member": {pods: []corev1.Pod{here}, change: func(s *selection) {
			routed(s)
			s.Registrations[0].Spec.Services.Reflect = v1alpha1.ReflectNoServices
		}, want: Problem, says: []string{"spec.services.reflect", "set it to All"}},
		"an earlier role": {pods: []corev1.Pod{here}, change: func(s *selection) {
			routed(s)
			s.Registrations[0].Status.Conditions = append(s.Registrations[0].Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServicesForbidden})
		}, want: Problem, says: []string{"does not let Xylem create Services", "Upgrade the chart xylem-member"}},
		"a quota": {pods: []corev1.Pod{here}, change: func(s *selection) {
			routed(s)
			s.events = []corev1.Event{{Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonRefusedByMember, Message: "exceeded quota. Ask the member's admin to change the quota"}}
		}, want: Problem, says: []string{"exceeded quota", "Ask the member's admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := selection{
				Facts:   &inspect.Facts{Registrations: []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}},
				service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}}},
				pods:    tc.pods, slices: []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{}}}},
			}
			if tc.change != nil {
				tc.change(&s)
			}
			check(t, s.diagnose(), tc.want, tc.says...)
		})
	}
}

func TestOfBudget(t *testing.T) {
	ready, unready := selectable("db-0", memberNode, corev1.ConditionTrue), selectable("db-1", "node-1", corev1.ConditionFalse)
	budget := func(healthy, required int32, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Generation: 1}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
			Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 2, CurrentHealthy: healthy, DesiredHealthy: required, DisruptionsAllowed: max(0, healthy-required)},
		}
		for _, f := range change {
			f(b)
		}
		return b
	}
	for name, tc := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		others []policyv1.PodDisruptionBudget
		pods   []corev1.Pod
		events []corev1.Event
		want   Verdict
		says   []string
	}{
		"an eviction is allowed": {budget: budget(2, 1), pods: []corev1.Pod{ready, ready}, want: Well, says: []string{`PodDisruptionBudget "shop/db" allows 1 eviction now (2 of 2 Pods healthy, 1 required)`}},
		"a Pod is not ready":     {budget: budget(1, 1), pods: []corev1.Pod{ready, unready}, want: Problem, says: []string{"requires 1 healthy Pod, and has 1. Not ready: db-1", "why pod db-1 -n shop"}},
		"all Pods are required":  {budget: budget(2, 2), pods: []corev1.Pod{ready, ready}, want: Problem, says: []string{"requires 2 healthy Pods, and has 2", "Add replicas"}},
		"it selects no Pods":     {budget: budget(0, 0), want: Problem, says: []string{"protects nothing"}},
		"it is new":              {budget: budget(2, 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), pods: []corev1.Pod{ready}, want: Problem, says: []string{"has counted its Pods", "Wait"}},
		"its Pods have no controller": {budget: budget(0, 0, func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "found no controller ref for pod"}}
		}), pods: []corev1.Pod{ready}, want: Problem, says: []string{"found no controller ref", "Set spec.minAvailable to a number"}},
		"two budgets":             {budget: budget(2, 1), others: []policyv1.PodDisruptionBudget{*budget(2, 1, func(b *policyv1.PodDisruptionBudget) { b.Name = "all" })}, pods: []corev1.Pod{ready}, want: Problem, says: []string{`PodDisruptionBudget "all" selects Pod "db-0", too`, "Change one of their selectors"}},
		"a member's own budget":   {budget: budget(2, 1), pods: []corev1.Pod{ready}, events: []corev1.Event{{Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonBudgetNotEnforced, Message: "the member has its own. Use another name"}}, want: Problem, says: []string{"the member has its own", "Use another name"}},
		"an event that is normal": {budget: budget(2, 1), pods: []corev1.Pod{ready}, events: []corev1.Event{{Type: corev1.EventTypeNormal, Reason: "X", Message: "x"}}, want: Well},
	} {
		t.Run(name, func(t *testing.T) {
			s := selection{
				Facts:  &inspect.Facts{Registrations: []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}},
				budget: tc.budget, others: tc.others, pods: tc.pods, events: tc.events,
			}
			check(t, s.diagnose(), tc.want, tc.says...)
		})
	}
}

func TestParseSelecting(t *testing.T) {
	for _, args := range [][]string{{"svc/db"}, {"Service", "db"}, {"pdb", "db"}, {"poddisruptionbudget/db"}} {
		if kind, name := parseSelecting(args); kind == "" || name != "db" {
			t.Errorf("%q is %s %q", args, kind, name)
		}
	}
	for _, args := range [][]string{{"pod/db"}, {"svc"}, {"svc", ""}, {"svc/"}, {"db", "svc", "x"}} {
		if kind, _ := parseSelecting(args); kind != "" {
			t.Errorf("%q is a %s, want none", args, kind)
		}
	}
}
