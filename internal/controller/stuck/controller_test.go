package stuck

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/news"
)

// Of thousands of stuck objects, only a few are reported at a time. Each is reported once,
// again when its cause changes, and before the host deletes the event.
func TestReportsAreLimited(t *testing.T) {
	recorder := events.NewFakeRecorder(10 * maxReportsAtOnce)
	clock := clocktesting.NewFakeClock(now.Time)
	w := &Watcher{Recorder: recorder, Deletions: account.NewStuckDeletions(), Clock: clock}
	cr := &v1alpha1.ClusterRegistration{}
	cr.Name = "member-01"
	late := make([]candidate, 2*maxReportsAtOnce+1)
	for i := range late {
		pod := &corev1.Pod{}
		pod.UID = types.UID(fmt.Sprint(i))
		late[i] = candidate{object: pod, Deletion: account.Deletion{Cause: formatCause(account.CauseUnknown, "first")}}
	}
	look := func() (first, second int) {
		still := map[types.UID]lastEvent{}
		w.reportDeletions(cr, late, still)
		w.lastEvents = still
		for len(recorder.Events) > 0 {
			if strings.Contains(<-recorder.Events, "first") {
				first++
			} else {
				second++
			}
		}
		return first, second
	}
	if first, _ := look(); first != maxReportsAtOnce {
		t.Errorf("reported %d objects at first, want %d", first, maxReportsAtOnce)
	}
	for i := range maxReportsAtOnce {
		late[i].Cause = formatCause(account.CauseUnknown, "second")
	}
	if first, second := look(); first != maxReportsAtOnce || second != 0 {
		t.Errorf("then reported %d objects with the first cause and %d with the second, want those that were not reported before", first, second)
	}
	if first, second := look(); first != 1 || second != maxReportsAtOnce-1 {
		t.Errorf("then reported %d objects with the first cause and %d with the second, want the last new one, and changed causes", first, second)
	}
	look()
	if first, second := look(); first+second > 0 {
		t.Errorf("reported %d objects again", first+second)
	}
	clock.Step(news.RepeatInterval)
	if first, second := look(); first+second != maxReportsAtOnce {
		t.Errorf("reported %d objects again before the host deletes their events, want %d", first+second, maxReportsAtOnce)
	}
	if known := w.Deletions.StuckDeletions(cr.Name); known.Count != len(late) {
		t.Errorf("counted %d objects, want %d", known.Count, len(late))
	}
}

// podsOf is a reader that lists the same Pods for each query.
type podsOf struct {
	client.Reader
	pods []corev1.Pod
}

func (p podsOf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.PodList).Items = p.pods
	return nil
}

type explainsPods struct{ account.DeletionExplainer }

func (explainsPods) ExplainDeletion(_ context.Context, kind string, key types.NamespacedName) account.DeletionCause {
	if kind != kindPod {
		return noCause
	}
	return formatCause(account.CausePending, "the kubelet has not terminated Pod %q yet", key)
}

// A claim whose Pods are being deleted has the cause of these Pods' deletion, so that the advice is not
// to delete them again.
func TestCauseOfUsedClaim(t *testing.T) {
	connected := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "member-01"}}
	connected.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}}
	never := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "member-01"}}
	node := connected.NodeName()
	for name, tc := range map[string]struct {
		cr   *v1alpha1.ClusterRegistration
		pods []corev1.Pod
		want account.DeletionCause
	}{
		"the member is away": {never, []corev1.Pod{userPod("web", node, "data", true)},
			formatCause(account.CauseAway, "in use by Pod shop/web, which is being deleted: member \"member-01\" was never connected. `kubectl describe clusterregistration` shows why")},
		"the member's kubelet is dead": {connected, []corev1.Pod{userPod("web", node, "data", true)},
			formatCause(account.CausePending, `in use by Pod shop/web, which is being deleted: in member "member-01", the kubelet has not terminated Pod "shop/web" yet`)},
		"the Pod is on another node": {never, []corev1.Pod{userPod("web", "worker-1", "data", true)},
			formatCause(account.CausePending, `in use by Pod shop/web, which is being deleted: the kubelet of node "worker-1" has not terminated Pod "shop/web" yet. Check that node`)},
		"another Pod is not being deleted": {never, []corev1.Pod{userPod("web", node, "data", true), userPod("db", node, "data", false)},
			formatCause(account.CauseUsed, "in use by Pod shop/db. Delete these Pods")},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Finalizers: []string{"kubernetes.io/pvc-protection"}}}
			w := &Watcher{Client: podsOf{pods: tc.pods}, Clock: clocktesting.NewFakeClock(now.Add(time.Hour))}
			c := candidate{Deletion: account.Deletion{Kind: kindClaim, Key: client.ObjectKeyFromObject(claim)}, object: claim}
			got, err := w.causeOfDeletion(t.Context(), tc.cr, explainsPods{}, c)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestOfPod(t *testing.T) {
	pod := userPod("web", "n", "data", true)
	if got := causeOfPodDeletion(&pod, now.Add(-time.Minute)).Text; got != `the grace period of Pod "shop/web" ends at 2026-11-20T12:00:00Z` {
		t.Error(got)
	}
	if got := causeOfPodDeletion(&pod, now.Add(time.Minute)).Text; got != `the kubelet of node "n" has not terminated Pod "shop/web" yet. Check that node` {
		t.Error(got)
	}
	pod.Finalizers = []string{"example.com/backup"}
	if got := causeOfPodDeletion(&pod, now.Time).Text; got != `Pod "shop/web" is blocked by finalizers of other programs (example.com/backup). Check the controllers that set these finalizers` {
		t.Error(got)
	}
}
