package stuck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

var now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func ago(d time.Duration) time.Time { return now.Add(-d) }

func pvOf(claim string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1-suffix"}}
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
	}
	return pv
}

func TestOverdue(t *testing.T) {
	deletion := func(kind, namespace, name string, since time.Duration, member bool) account.Deletion {
		return account.Deletion{Kind: kind, Key: types.NamespacedName{Namespace: namespace, Name: name}, Since: ago(since), InMember: member}
	}
	host := candidate{Deletion: deletion(kindVolume, "", "pv-1-suffix", time.Hour, false), object: pvOf("data"), leaf: "pv-1"}
	pod := candidate{Deletion: deletion(kindPod, "shop", "web", 10*time.Minute, false), object: &corev1.Pod{}}
	fresh := candidate{Deletion: deletion(kindPod, "shop", "web", time.Minute, false), object: &corev1.Pod{}}
	leaf := func(kind, namespace, name string) candidate {
		return candidate{Deletion: deletion(kind, namespace, name, 5*time.Minute, true)}
	}
	for name, tc := range map[string]struct {
		host, leaves []candidate
		want         []string
	}{
		"none":                                {},
		"a deletion that is not overdue yet":  {host: []candidate{fresh}},
		"the oldest deletion comes first":     {host: []candidate{pod, host}, want: []string{"/pv-1-suffix", "shop/web"}},
		"leaves of overdue roots are omitted": {host: []candidate{host, pod}, leaves: []candidate{leaf(kindVolume, "", "pv-1"), leaf(kindClaim, "shop", "data"), leaf(kindPod, "shop", "web")}, want: []string{"/pv-1-suffix", "shop/web"}},
		"overdue leaves whose roots are not being deleted are included": {host: []candidate{host}, leaves: []candidate{leaf(kindClaim, "shop", "other"), leaf(kindVolume, "", "pv-2")}, want: []string{"/pv-1-suffix", "/pv-2", "shop/other"}},
		"an overdue leaf is included although its root is not overdue":  {host: []candidate{fresh}, leaves: []candidate{leaf(kindPod, "shop", "web")}, want: []string{"shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range overdueDeletions(tc.host, tc.leaves, now.Time, 2*time.Minute) {
				got = append(got, c.Key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAway(t *testing.T) {
	for name, tc := range map[string]struct {
		condition *metav1.Condition
		want      string
	}{
		"never connected": {nil, "member \"cluster38\" was never connected. `kubectl describe clusterregistration` shows why"},
		"connected":       {&metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}, ""},
		"unreachable": {&metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable},
			`member "cluster38" has not been connected since 2026-11-20T12:00:00Z (Unreachable). Xylem continues when the member is connected again`},
		"suspended": {&metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHostRestored},
			`destruction in member "cluster38" is suspended (HostRestored). Confirm the restore as described in the Connected condition of its ClusterRegistration`},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
			if tc.condition != nil {
				tc.condition.Type, tc.condition.LastTransitionTime = v1alpha1.ConditionConnected, now
				cr.Status.Conditions = []metav1.Condition{*tc.condition}
			}
			if got := causeOfAwayMember(cr); got.Text != tc.want {
				t.Error(got)
			}
		})
	}
}

func TestWaitsFor(t *testing.T) {
	const pvc = "kubernetes.io/pvc-protection"
	used := formatCause(account.CauseUsed, "in use by Pod shop/web. Delete these Pods")
	for name, tc := range map[string]struct {
		finalizers []string
		used       account.DeletionCause
		want       string
		released   bool // but not being deleted
	}{
		"no known cause":                      {nil, noCause, "", false},
		"Xylem's own finalizer":               {[]string{v1alpha1.FinalizerLeafVolume}, noCause, "", false},
		"Pods":                                {[]string{pvc}, used, used.Text, false},
		"Pods that do not block the deletion": {nil, used, "", false},
		"other finalizers are named in the message": {[]string{pvc, "example.com/backup"}, noCause, "blocked by finalizers of other programs (example.com/backup). Check the controllers that set these finalizers", false},
		"Kubernetes": {[]string{"kubernetes.io/pv-protection"}, noCause, "still in use, according to Kubernetes. Find the Pod that uses the volume", false},
		"every PV has this finalizer, even if nothing uses it": {[]string{"kubernetes.io/pv-protection"}, noCause, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers}}
			if !tc.released {
				obj.DeletionTimestamp = &metav1.Time{}
			}
			if got := causeOfFinalizers(obj, tc.used); got.Text != tc.want {
				t.Error(got)
			}
		})
	}
}

func userPod(name, node, claim string, deleting bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.NodeName = node
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	if deleting {
		p.DeletionTimestamp = &now
	}
	return p
}

func TestUsers(t *testing.T) {
	got := blockingPodsOf([]corev1.Pod{
		userPod("b", "n", "data", false), userPod("ends-b", "n", "data", true), userPod("a", "n", "data", false), userPod("ends-a", "n", "data", true),
		userPod("waits", "", "data", false), userPod("waits-and-ends", "", "data", true), userPod("other", "n", "else", false),
	}, client.ObjectKey{Namespace: "shop", Name: "data"})
	if diff := cmp.Diff("Pod shop/a, Pod shop/b", namesOfPods(got.staying)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("Pod shop/ends-a, Pod shop/ends-b", namesOfPods(got.ending)); diff != "" {
		t.Error(diff)
	}
}

// The advice to delete Pods names only those that are not being deleted. If all are being deleted,
// the cause is what delays their deletion.
func TestUsed(t *testing.T) {
	away := formatCause(account.CauseAway, "the member is away")
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want account.DeletionCause
	}{
		"no Pod":                     {},
		"a Pod":                      {[]corev1.Pod{userPod("web", "n", "data", false)}, formatCause(account.CauseUsed, "in use by Pod shop/web. Delete these Pods")},
		"a Pod that is deleted":      {[]corev1.Pod{userPod("web", "n", "data", true)}, formatCause(account.CauseAway, "in use by Pod shop/web, which is being deleted: the member is away")},
		"Pods that are deleted":      {[]corev1.Pod{userPod("web", "n", "data", true), userPod("db", "n", "data", true)}, formatCause(account.CauseAway, "in use by Pod shop/db, Pod shop/web, which are being deleted: the member is away")},
		"one of two Pods is deleted": {[]corev1.Pod{userPod("web", "n", "data", true), userPod("db", "n", "data", false)}, formatCause(account.CauseUsed, "in use by Pod shop/db. Delete these Pods")},
	} {
		t.Run(name, func(t *testing.T) {
			got := blockingPodsOf(tc.pods, client.ObjectKey{Namespace: "shop", Name: "data"}).causeOfUse(away)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
