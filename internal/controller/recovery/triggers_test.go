package recovery

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
)

// waiter is a cache that lists one Pod without a node as the user of any claim. The Pod also uses
// claim "more".
type waiter struct{ client.Reader }

func (waiter) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := into.(*corev1.PodList); ok {
		pods.Items = []corev1.Pod{{Spec: corev1.PodSpec{Volumes: []corev1.Volume{uses("more")}}}}
	}
	return nil
}

func uses(claim string) corev1.Volume {
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	return corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}
}

// A bound claim enqueues the claims that wait with it. It is itself enqueued if it has recovery's
// annotations.
func TestOfClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		claim func(*observed)
		want  []string
	}{
		"unbound": {unchanged, []string{"data"}},
		"bound":   {bound, []string{"more"}},
		"bound in the member to which it was reassigned": {func(o *observed) { bound(o); annotated(v1alpha1.AnnotationSteeredTo, here.NodeName)(o) }, []string{"data", "more"}},
		"bound after other members were tried":           {func(o *observed) { bound(o); annotated(v1alpha1.AnnotationTried, "{}")(o) }, []string{"data", "more"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Link: &member.Link{Member: here, Host: waiter{}}}
			var got []string
			for _, request := range r.claimToSiblings(t.Context(), strandedClaim(tc.claim).Claim.Root) {
				if !slices.Contains(got, request.Name) {
					got = append(got, request.Name)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("enqueues %q, want %q", got, tc.want)
			}
		})
	}
}

// Pods that Xylem does not push do not determine where claims can go.
func TestWaiting(t *testing.T) {
	daemon := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"pending":                          {corev1.Pod{}, true},
		"bound":                            {corev1.Pod{Spec: corev1.PodSpec{NodeName: here.NodeName}}, false},
		"being deleted":                    {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, false},
		"finished":                         {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
		"owned by a DaemonSet":             {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: daemon}}, false},
		"owned by a DaemonSet, but pushed": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: daemon}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}}}, true},
	} {
		if got := podWaitsForScheduler(&tc.pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
