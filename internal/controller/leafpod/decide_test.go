package leafpod

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

var (
	here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	now  = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
)

// seen is a Pod that the host has bound here and that runs.
func seen(change ...func(*observed)) observed {
	root := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod-uid", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: here.NodeName, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue, Reason: "Pushed"}}},
	}
	leaf, err := mirror.TranslatePod(root, here)
	if err != nil {
		panic(err)
	}
	leaf.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	o := observed{member: here, root: root, leaf: leaf,
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here.NodeName, Labels: map[string]string{v1alpha1.LabelVirtualNode: "true"}}}}
	for _, c := range change {
		c(&o)
	}
	return o
}

func noLeaf(o *observed) { o.leaf = nil }
func endedSo(p corev1.PodPhase) func(*observed) {
	return func(o *observed) {
		o.last, o.leaf = o.leaf.DeepCopy(), nil
		o.last.Status.Phase = p
	}
}

// evicted: somebody asked for the leaf's deletion in the member, and its
// container ended well, that much later.
func evicted(later time.Duration) func(*observed) {
	return func(o *observed) {
		asked := now.Time
		o.leaf.DeletionTimestamp, o.leaf.DeletionGracePeriodSeconds = &metav1.Time{Time: asked.Add(30 * time.Second)}, ptr.To[int64](30)
		o.leaf.Status.Phase = corev1.PodSucceeded
		o.leaf.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(asked.Add(later))}}}}
	}
}
func notPushed(o *observed)       { o.root.Status.Conditions = nil }
func deleted(o *observed)         { o.root.DeletionTimestamp = &now }
func doesNotFit(o *observed)      { o.root.Spec.NodeSelector = map[string]string{"disk": "fast"} }
func withdrawn(o *observed)       { o.root.Status.Conditions[0].Status = corev1.ConditionFalse }
func on(n string) func(*observed) { return func(o *observed) { o.root.Spec.NodeName = n } }

func phase(p corev1.PodPhase) func(*observed) { return func(o *observed) { o.root.Status.Phase = p } }

func leafPhase(p corev1.PodPhase) func(*observed) {
	return func(o *observed) { o.leaf.Status.Phase = p }
}

// shown: the root shows what the leaf says.
func shown(o *observed) { o.root.Status.Phase, o.root.Status.ObservedGeneration = corev1.PodRunning, 1 }

func daemonSet(o *observed) {
	o.root.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: ptr.To(true)}}
}

func showing(p corev1.PodPhase) decision { return show{corev1.PodStatus{Phase: p}} }

func fails(reason string, leafGone bool) decision {
	return fail{corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}, leafGone}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"deleted, and the leaf ended well before it went: Jobs count it":               {seen(endedSo(corev1.PodSucceeded), deleted), showing(corev1.PodSucceeded)},
		"the leaf ended well and is gone, and the root shows it":                       {seen(endedSo(corev1.PodSucceeded), phase(corev1.PodSucceeded)), nothing{}},
		"evicted in the member, and its containers ended well for that: it has failed": {seen(evicted(0)), fails(reasonEvicted, false)},
		"it had ended well before it was removed in the member":                        {seen(evicted(-time.Minute)), showing(corev1.PodSucceeded)},
		"deleted by the user, and its containers ended well":                           {seen(evicted(0), deleted), showing(corev1.PodSucceeded)},
		"no root": {observed{member: here}, nothing{}},
		"an early leaf runs: the scheduler has the word":                {seen(on("")), nothing{}},
		"an early leaf vanished: no failure of a Pod that is not bound": {seen(on(""), noLeaf), nothing{}},
		"an early leaf's root is deleted: the API server removes it":    {seen(on(""), noLeaf, deleted), nothing{}},
		"the Pod is on another node":                                    {seen(on("worker-1"), noLeaf), nothing{}},
		"the leaf runs: it is shown":                                    {seen(), showing(corev1.PodRunning)},
		"the leaf runs and is shown: at rest (I5)":                      {seen(shown), nothing{}},
		"the leaf ran to its end":                                       {seen(shown, leafPhase(corev1.PodSucceeded)), showing(corev1.PodSucceeded)},
		"the leaf failed in the member":                                 {seen(shown, leafPhase(corev1.PodFailed)), showing(corev1.PodFailed)},
		"the Pod is being deleted, its leaf still runs":                 {seen(deleted), showing(corev1.PodRunning)},
		"a leaf came back from a restore: what has ended stays ended":   {seen(phase(corev1.PodFailed)), nothing{}},
		"a Job's Pod has succeeded, its leaf came back: it stays":       {seen(phase(corev1.PodSucceeded)), nothing{}},

		"the leaf vanished: Failed, once that is proven, and never run again": {seen(noLeaf, shown), fails(reasonLeafVanished, true)},
		"the leaf vanished after the end was shown: at rest (I5)":             {seen(noLeaf, phase(corev1.PodSucceeded)), nothing{}},
		"the leaf vanished after the failure was shown: at rest (I5)":         {seen(noLeaf, phase(corev1.PodFailed)), nothing{}},
		"deleted by the user, and the leaf is gone: its end is shown":         {seen(noLeaf, shown, deleted), fails(reasonTerminated, true)},
		"deleted by the user before it was pushed: its end is shown":          {seen(noLeaf, notPushed, deleted), fails(reasonTerminated, true)},
		"a DaemonSet's Pod is deleted: its end is shown":                      {seen(noLeaf, notPushed, daemonSet, deleted), fails(reasonTerminated, true)},
		"deleted by the user after its end was shown":                         {seen(noLeaf, phase(corev1.PodFailed), deleted), nothing{}},

		"not pushed yet: it waits for its leaf":                       {seen(noLeaf, notPushed), nothing{}},
		"withdrawn before it was bound, and bound then: it waits":     {seen(noLeaf, withdrawn), nothing{}},
		"put here by hand, and does not fit: Failed, as by a kubelet": {seen(noLeaf, notPushed, doesNotFit), fails(mirror.ReasonNodeAffinity, false)},
		"does not fit, and the node is not there yet":                 {seen(noLeaf, notPushed, doesNotFit, func(o *observed) { o.node = nil }), nothing{}},
		"a DaemonSet's Pod is not admitted, and not failed either":    {seen(noLeaf, notPushed, doesNotFit, daemonSet), nothing{}},
		"it runs, and labels changed since: kubelets do not evict":    {seen(shown, doesNotFit), nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.observed), decisions); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// decisions are compared by type and, as far as the user sees them, by phase
// and reason: mirror tests the statuses.
var decisions = cmp.Options{
	cmp.AllowUnexported(show{}, fail{}),
	cmp.Comparer(func(a, b corev1.PodStatus) bool { return a.Phase == b.Phase && a.Reason == b.Reason }),
}

// The user has to know where to look:
// what is said of a vanished leaf names the member.
func TestVanishedNamesTheMember(t *testing.T) {
	d, ok := decide(seen(noLeaf, shown)).(fail)
	if !ok || !strings.Contains(d.status.Message, "member "+here.Registration) {
		t.Errorf("decision is %#v", d)
	}
}
