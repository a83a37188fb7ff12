package leafbudget

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/news"
)

// podLister lists the same Pods each time, and counts the lists.
type podLister struct {
	client.Reader

	pods  []corev1.Pod
	lists int
}

func (l *podLister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	list.(*corev1.PodList).Items = l.pods
	return nil
}

// healthyPod returns a healthy Pod on a node.
func healthyPod(node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// A budget whose status changes a hundred times in ten seconds causes no live lists if its Pods are in members only, and
// otherwise one in each interval.
func TestLiveCounts(t *testing.T) {
	const changes, interval = 100, 100 * time.Millisecond
	here, otherMember, hostNode := healthyPod("here"), healthyPod("other"), healthyPod("node")
	for name, tc := range map[string]struct {
		cached, live []corev1.Pod
		// elsewhere is the last count.
		elsewhere int32
		lists     int
	}{
		"in this member":       {[]corev1.Pod{here, here}, []corev1.Pod{here, here}, 0, 0},
		"in two members":       {[]corev1.Pod{here, otherMember}, []corev1.Pod{here, otherMember}, 1, 0},
		"also on a host's own": {[]corev1.Pod{here, otherMember}, []corev1.Pod{here, otherMember, hostNode}, 2, 10},
		"the cache lags":       {[]corev1.Pod{here, otherMember, otherMember}, []corev1.Pod{here, otherMember}, 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			cached, live := &podLister{pods: tc.cached}, &podLister{pods: tc.live}
			r := &reconciler{
				Link:       &member.Link{Member: mirror.Member{NodeName: "here"}, Host: cached, HostLive: live, Clock: clock},
				liveCounts: news.NewDurations[types.NamespacedName](clock),
			}
			host := rootBudget()
			host.Status.CurrentHealthy = int32(len(tc.live))
			for i := range changes {
				elsewhere, dueIn, err := r.countHealthyElsewhere(t.Context(), host, labels.Everything())
				if err != nil {
					t.Fatal(err)
				}
				if dueIn == 0 && elsewhere != tc.elsewhere {
					t.Errorf("change %d: %d Pods are healthy elsewhere, want %d", i, elsewhere, tc.elsewhere)
				}
				if dueIn < 0 || dueIn >= liveCountInterval {
					t.Errorf("change %d: the next count is due in %s, want less than %s", i, dueIn, liveCountInterval)
				}
				clock.SetTime(clock.Now().Add(interval))
			}
			if live.lists != tc.lists {
				t.Errorf("%d live lists after %d changes, want %d", live.lists, changes, tc.lists)
			}
		})
	}
}
