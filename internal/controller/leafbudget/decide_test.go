package leafbudget

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

// rootBudget returns a host budget that requires two healthy Pods and counts three.
func rootBudget(change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "budget-uid", Generation: 3},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromString("30%")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			UnhealthyPodEvictionPolicy: new(policyv1.IfHealthyBudget),
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 3, DesiredHealthy: 2, CurrentHealthy: 3, ExpectedPods: 3, DisruptionsAllowed: 1},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func leafBudget(minAvailable int32, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := mirror.TranslateBudget(rootBudget(), mirrortest.Member, minAvailable)
	for _, f := range change {
		f(b)
	}
	return b
}

func TestTranslateBudget(t *testing.T) {
	want := policyv1.PodDisruptionBudgetSpec{
		MinAvailable:               new(intstr.FromInt32(2)),
		Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", v1alpha1.LabelHost: mirrortest.HostID}},
		UnhealthyPodEvictionPolicy: new(policyv1.IfHealthyBudget),
	}
	if diff := cmp.Diff(want, leafBudget(2).Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	everything := rootBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })
	if diff := cmp.Diff(map[string]string{v1alpha1.LabelHost: mirrortest.HostID}, mirror.TranslateBudget(everything, mirrortest.Member, 1).Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("an empty selector: -want +got:\n%s", diff)
	}
	if policy := leafBudget(0).Spec.UnhealthyPodEvictionPolicy; *policy != policyv1.AlwaysAllow {
		t.Errorf("if no Pod is required in the member, unhealthy ones may be evicted %s, want AlwaysAllow", *policy)
	}
}

func TestRequiredHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		host   *policyv1.PodDisruptionBudget
		counts healthyCounts
		want   int32
	}{
		"all Pods in the member":                   {rootBudget(), healthyCounts{}, 2},
		"one Pod elsewhere":                        {rootBudget(), healthyCounts{healthyElsewhere: 1}, 1},
		"enough Pods elsewhere":                    {rootBudget(), healthyCounts{healthyElsewhere: 5}, 0},
		"a Pod is ready only in the member":        {rootBudget(), healthyCounts{countedOnlyInMember: 1}, 3},
		"enough elsewhere, one only ready here":    {rootBudget(), healthyCounts{healthyElsewhere: 5, countedOnlyInMember: 1}, 1},
		"the host allows no disruption":            {rootBudget(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed, b.Status.CurrentHealthy = 0, 1 }), healthyCounts{}, 2},
		"a new spec that the host has not counted": {rootBudget(func(b *policyv1.PodDisruptionBudget) { b.Generation++ }), healthyCounts{}, allowNoEvictions},
		"the host expects no Pods":                 {rootBudget(func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 0 }), healthyCounts{}, allowNoEvictions},
		"the host cannot count": {rootBudget(func(b *policyv1.PodDisruptionBudget) {
			b.Status.DesiredHealthy = 0
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason}}
		}), healthyCounts{}, allowNoEvictions},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requiredHealthy(tc.host, tc.counts); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	unstamped := leafBudget(1, func(b *policyv1.PodDisruptionBudget) { b.Labels, b.Annotations = nil, nil })
	uncounted := func(b *policyv1.PodDisruptionBudget) { b.Generation++ }
	recreated := func(b *policyv1.PodDisruptionBudget) { b.UID = "newer" }
	labelled := func(b *policyv1.PodDisruptionBudget) { b.Labels["theirs"] = "kept" }
	for name, tc := range map[string]struct {
		observed
		want    decision
		problem string
	}{
		"no budget in either cluster":                      {observed: observed{leafPods: 1}, want: doNothing{}},
		"a budget for no Pods here":                        {observed: observed{host: rootBudget()}, want: doNothing{}},
		"a budget for Pods here":                           {observed: observed{host: rootBudget(), leafPods: 2}, want: createBudget{leafBudget(2)}},
		"a new budget that the host hasn't counted":        {observed: observed{host: rootBudget(uncounted), leafPods: 2}, want: doNothing{}},
		"a current leaf budget":                            {observed: observed{host: rootBudget(), sameName: leafBudget(2), leafPods: 2}, want: doNothing{}},
		"a current leaf budget with a label of the member": {observed: observed{host: rootBudget(), sameName: leafBudget(2, labelled), leafPods: 2}, want: doNothing{}},
		"a Pod elsewhere":                                  {observed: observed{host: rootBudget(), sameName: leafBudget(2), leafPods: 2, healthyCounts: healthyCounts{healthyElsewhere: 1}}, want: updateBudget{leafBudget(1)}},
		"a changed budget that the host hasn't counted":    {observed: observed{host: rootBudget(uncounted), sameName: leafBudget(2), leafPods: 2}, want: updateBudget{leafBudget(allowNoEvictions)}},
		"a re-created budget":                              {observed: observed{host: rootBudget(recreated), sameName: leafBudget(2), leafPods: 2}, want: updateBudget{leafBudget(2, func(b *policyv1.PodDisruptionBudget) { b.Annotations[v1alpha1.AnnotationRootUID] = "newer" })}},
		"Pods elsewhere that were counted a moment ago":    {observed: observed{host: rootBudget(), sameName: leafBudget(1), leafPods: 2, countDueIn: time.Second}, want: waitForCount{time.Second}},
		"the last Pod is gone":                             {observed: observed{host: rootBudget(), sameName: leafBudget(2)}, want: deleteBudget{}},
		"the host budget is gone":                          {observed: observed{sameName: leafBudget(2), leafPods: 2}, want: deleteBudget{rootGone: true}},
		"a leaf budget that is being deleted": {observed: observed{host: rootBudget(), leafPods: 2, sameName: leafBudget(2, func(b *policyv1.PodDisruptionBudget) {
			b.DeletionTimestamp = &metav1.Time{}
		})}, want: doNothing{}},
		"a budget of the member with the same name":   {observed: observed{host: rootBudget(), sameName: unstamped, leafPods: 2}, want: reportNotEnforced{}, problem: `the member has its own PodDisruptionBudget "shop/db", so a drain of nodes in member "cluster38" does not respect this budget. Use another name, or ask the member's admin to delete that budget`},
		"a budget of the member, and no Pods":         {observed: observed{host: rootBudget(), sameName: unstamped}, want: doNothing{}},
		"a budget of the member, and no host budget":  {observed: observed{sameName: unstamped, leafPods: 2}, want: doNothing{}},
		"a budget of the member for the same Pods":    {observed: observed{host: rootBudget(), ownBudget: "mine", leafPods: 2}, want: reportNotEnforced{}, problem: `the member has its own PodDisruptionBudget "mine" for the same Pods, so a drain of nodes in member "cluster38" does not respect this budget. Two budgets for one Pod would block its eviction forever. If the member should enforce this budget instead, ask the member's admin to delete that one`},
		"a later budget of the member for these Pods": {observed: observed{host: rootBudget(), sameName: leafBudget(2), ownBudget: "mine", leafPods: 2}, want: reportNotEnforced{deleteLeaf: true}, problem: `the member has its own PodDisruptionBudget "mine" for the same Pods, so a drain of nodes in member "cluster38" does not respect this budget. Two budgets for one Pod would block its eviction forever. If the member should enforce this budget instead, ask the member's admin to delete that one`},
		"a selector with a label that leaves lack": {observed: observed{leafPods: 2, host: rootBudget(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelManagedBy, Operator: metav1.LabelSelectorOpExists}}}
		})}, want: reportNotEnforced{}, problem: `its selector uses the label "app.kubernetes.io/managed-by", which Pods have only in the host, so a drain of nodes in member "cluster38" does not respect this budget. Select the Pods by other labels`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.member = mirrortest.Member
			if tc.problem != "" {
				want := tc.want.(reportNotEnforced)
				want.problem = &mirror.Refusal{Reason: v1alpha1.ReasonBudgetNotEnforced, Message: tc.problem}
				tc.want = want
			}
			got := decideBudgetAction(tc.observed)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(createBudget{}, updateBudget{}, waitForCount{}, deleteBudget{}, reportNotEnforced{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if changed, ok := got.(updateBudget); ok { // I5: after the write, nothing is left to do
				tc.sameName = changed.leaf
				if again := decideBudgetAction(tc.observed); again != (doNothing{}) {
					t.Errorf("after the update, the decision is %#v, want doNothing", again)
				}
			}
		})
	}
}

func TestPodCounts(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
	for name, tc := range map[string]struct {
		pod           corev1.Pod
		healthy, open bool
	}{
		"new":      {corev1.Pod{}, false, false},
		"ready":    {corev1.Pod{Status: corev1.PodStatus{Conditions: ready(corev1.ConditionTrue)}}, true, false},
		"unready":  {corev1.Pod{Status: corev1.PodStatus{Conditions: ready(corev1.ConditionFalse)}}, false, false},
		"deleting": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Status: corev1.PodStatus{Conditions: ready(corev1.ConditionTrue)}}, false, false},
		"with a readiness gate": {corev1.Pod{
			Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "lb"}}}, Status: corev1.PodStatus{Conditions: ready(corev1.ConditionTrue)},
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if healthy, open := isHealthyPod(&tc.pod), hasOpenReadinessGate(&tc.pod); healthy != tc.healthy || open != tc.open {
				t.Errorf("healthy %t, open gate %t; want %t, %t", healthy, open, tc.healthy, tc.open)
			}
		})
	}
}
