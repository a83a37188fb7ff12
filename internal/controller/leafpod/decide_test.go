package leafpod

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

var (
	here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	now  = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
)

// seen returns a running Pod that is bound to this member.
func seen(change ...func(*observed)) observed {
	root := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod-uid", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: here.NodeName, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue, Reason: "Pushed"}}},
	}
	leaf, err := podspec.TranslatePod(root, here)
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
		o.endedLeaf, o.leaf = o.leaf.DeepCopy(), nil
		o.endedLeaf.Status.Phase = p
	}
}

// evicted marks the leaf as deleted in the member. Its container succeeds after the given duration.
func evicted(later time.Duration) func(*observed) {
	return func(o *observed) {
		asked := now.Time
		o.leaf.DeletionTimestamp, o.leaf.DeletionGracePeriodSeconds = &metav1.Time{Time: asked.Add(30 * time.Second)}, ptr.To[int64](30)
		o.leaf.Status.Phase = corev1.PodSucceeded
		o.leaf.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(asked.Add(later))}}}}
	}
}
func notPushed(o *observed)  { o.root.Status.Conditions = nil }
func deleted(o *observed)    { o.root.DeletionTimestamp = &now }
func doesNotFit(o *observed) { o.root.Spec.NodeSelector = map[string]string{"disk": "fast"} }
func leaving(o *observed)    { o.member.Leaving = true }
func withdrawn(o *observed)  { o.root.Status.Conditions[0].Status = corev1.ConditionFalse }

// reported sets the condition to False, although a leaf ran for the root.
func reported(o *observed) {
	withdrawn(o)
	metav1.SetMetaDataAnnotation(&o.root.ObjectMeta, v1alpha1.AnnotationLeafUID, "leaf-uid")
}

func on(n string) func(*observed) { return func(o *observed) { o.root.Spec.NodeName = n } }

func phase(p corev1.PodPhase) func(*observed) { return func(o *observed) { o.root.Status.Phase = p } }

func leafPhase(p corev1.PodPhase) func(*observed) {
	return func(o *observed) { o.leaf.Status.Phase = p }
}

// shown sets the root's status to that of the leaf.
func shown(o *observed) { o.root.Status.Phase, o.root.Status.ObservedGeneration = corev1.PodRunning, 1 }

func daemonSet(o *observed) {
	o.root.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: ptr.To(true)}}
}

func showing(p corev1.PodPhase) decision { return showStatus{corev1.PodStatus{Phase: p}} }

func fails(reason string, leafPodGone bool) decision {
	return failPod{status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}, leafPodGone: leafPodGone}
}

func stranded(o *observed) { o.stranded = &mirror.Refusal{Reason: v1alpha1.ReasonVolumeElsewhere} }

// waitsFor sets a promise that cannot be fulfilled in this member. The timeout expires after
// the given duration.
func waitsFor(left time.Duration) func(*observed) {
	return func(o *observed) {
		o.now = now.Time
		o.unmet = &unmetPromise{claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, problem: &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "no"}, deadline: now.Add(left)}
	}
}

func failPlacement() decision {
	return failPod{status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: v1alpha1.ReasonPlacementFailed}, unmet: "data"}
}

func TestUnmetBy(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", UID: "claim-uid"}}
	promise := hostpv.NewPromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterPlacementTimeout: "10s"}})
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }
	given := func(pause time.Duration) string {
		return fmt.Sprintf(`{"rounds":3,"moved":%d,"until":%d,"members":[{"cluster":"id38"}]}`, now.Unix(), now.Add(pause).Unix())
	}
	for name, tc := range map[string]struct {
		reason string // empty if the claim has no condition
		pod    metav1.Time
		want   time.Duration // from now; 0 if the member can fulfill the promise
		tried  string
	}{
		"no condition":                                                     {"", at(-time.Hour), 0, ""},
		"failed in the member":                                             {v1alpha1.ReasonOutOfSpace, at(-time.Hour), 11 * time.Second, ""},
		"a later Pod gets the whole timeout":                               {v1alpha1.ReasonOutOfSpace, at(20 * time.Second), 31 * time.Second, ""},
		"another reason, which does not concern this member":               {"PlacedElsewhere", at(-time.Hour), 0, ""},
		"the member lacks the class":                                       {v1alpha1.ReasonClassNotFound, at(-time.Hour), 11 * time.Second, ""},
		"failed before, and the backoff has not expired":                   {v1alpha1.ReasonOutOfSpace, at(0), 60 * time.Second, given(time.Minute)},
		"failed before, the backoff has not expired, and the Pod is older": {v1alpha1.ReasonOutOfSpace, at(-time.Hour), 11 * time.Second, given(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claim.DeepCopy()
			claim.Annotations = map[string]string{v1alpha1.AnnotationTried: tc.tried, v1alpha1.AnnotationReportedBy: here.ClusterID}
			if tc.reason != "" {
				claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
					Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: tc.reason, Message: "member cluster38 cannot: no", LastTransitionTime: now}}
			}
			u := unmetPromiseOf(claim, promise, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: tc.pod}}, here)
			var left time.Duration
			if u != nil {
				left = u.deadline.Sub(now.Time)
			}
			if left != tc.want {
				t.Errorf("the timeout expires in %s, want %s", left, tc.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"deleted after the leaf succeeded: Succeeded, so that Jobs count it":     {seen(endedSo(corev1.PodSucceeded), deleted), showing(corev1.PodSucceeded)},
		"the leaf succeeded and was deleted, and the root reports it":            {seen(endedSo(corev1.PodSucceeded), phase(corev1.PodSucceeded)), nothing{}},
		"evicted in the member, and its containers succeeded after that: Failed": {seen(evicted(0)), fails(v1alpha1.ReasonLeafEvicted, false)},
		"the leaf had succeeded before it was deleted in the member":             {seen(evicted(-time.Minute)), showing(corev1.PodSucceeded)},
		"deleted by the user, and the containers succeeded":                      {seen(evicted(0), deleted), showing(corev1.PodSucceeded)},
		"no root": {observed{member: here}, nothing{}},
		"the leaf runs, and the Pod is not bound yet":                                {seen(on("")), nothing{}},
		"the leaf vanished before the Pod was bound: the Pod does not fail":          {seen(on(""), noLeaf), nothing{}},
		"the Pod is deleted before it is bound: the API server removes it":           {seen(on(""), noLeaf, deleted), nothing{}},
		"the Pod is on another node":                                                 {seen(on("worker-1"), noLeaf), nothing{}},
		"the leaf runs: the root reports it":                                         {seen(), showing(corev1.PodRunning)},
		"the leaf runs and the root reports it: no write (I5)":                       {seen(shown), nothing{}},
		"the leaf succeeded":                                                         {seen(shown, leafPhase(corev1.PodSucceeded)), showing(corev1.PodSucceeded)},
		"the leaf failed in the member":                                              {seen(shown, leafPhase(corev1.PodFailed)), showing(corev1.PodFailed)},
		"the Pod is being deleted, and its leaf still runs":                          {seen(deleted), showing(corev1.PodRunning)},
		"a restored member brought a leaf back: the root stays finished":             {seen(phase(corev1.PodFailed)), nothing{}},
		"a Job's Pod has succeeded, and its leaf came back: the root stays finished": {seen(phase(corev1.PodSucceeded)), nothing{}},

		"the disk for which the Pod waits was provisioned elsewhere":                           {seen(noLeaf, notPushed, stranded), fails(v1alpha1.ReasonVolumeElsewhere, true)},
		"the Pod has already failed because its disk was provisioned elsewhere: no write (I5)": {seen(noLeaf, notPushed, stranded, phase(corev1.PodFailed)), nothing{}},
		"a running Pod is not stranded":                                                        {seen(shown, stranded), nothing{}},
		"the leaf vanished: Failed after proof, and never re-created":                          {seen(noLeaf, shown), fails(v1alpha1.ReasonLeafVanished, true)},
		"the leaf vanished, and the condition is False: Failed, and never re-created":          {seen(noLeaf, reported), fails(v1alpha1.ReasonLeafVanished, true)},
		"the leaf vanished after the root succeeded: no write (I5)":                            {seen(noLeaf, phase(corev1.PodSucceeded)), nothing{}},
		"the leaf vanished after the root failed: no write (I5)":                               {seen(noLeaf, phase(corev1.PodFailed)), nothing{}},
		"deleted by the user, and the leaf was deleted: Failed":                                {seen(noLeaf, shown, deleted), fails(v1alpha1.ReasonTerminated, true)},
		"deleted by the user before it was pushed: Failed":                                     {seen(noLeaf, notPushed, deleted), fails(v1alpha1.ReasonTerminated, true)},
		"a DaemonSet's Pod is deleted: Failed":                                                 {seen(noLeaf, notPushed, daemonSet, deleted), fails(v1alpha1.ReasonTerminated, true)},
		"deleted by the user after it had failed":                                              {seen(noLeaf, phase(corev1.PodFailed), deleted), nothing{}},

		"a promise cannot be fulfilled, and an owner re-creates the Pod":       {seen(shown, waitsFor(0)), failPlacement()},
		"a promise cannot be fulfilled, and the leaf was rejected":             {seen(noLeaf, notPushed, waitsFor(0)), failPlacement()},
		"a promise cannot be fulfilled, before the timeout":                    {seen(shown, waitsFor(time.Second)), nothing{}},
		"a promise cannot be fulfilled, and the Pod has failed: no write (I5)": {seen(waitsFor(0), phase(corev1.PodFailed)), nothing{}},
		"a promise cannot be fulfilled, and the Pod is being deleted":          {seen(noLeaf, notPushed, deleted, waitsFor(0)), fails(v1alpha1.ReasonTerminated, true)},

		"not pushed yet: the Pod waits":                                       {seen(noLeaf, notPushed), nothing{}},
		"withdrawn, and then bound: the Pod waits":                            {seen(noLeaf, withdrawn), nothing{}},
		"bound manually, and does not fit: Failed, as a kubelet would set it": {seen(noLeaf, notPushed, doesNotFit), fails(v1alpha1.ReasonNodeAffinity, true)},
		"the member is leaving, and the Pod has no leaf: Failed":              {seen(noLeaf, notPushed, leaving), fails(v1alpha1.ReasonMemberLeaving, true)},
		"the member is leaving, and the Pod's leaf runs":                      {seen(leaving), showing(corev1.PodRunning)},
		"the member is leaving, and a DaemonSet's Pod has no leaf":            {seen(noLeaf, notPushed, leaving, daemonSet), nothing{}},
		"the Pod does not fit, and the node does not exist yet":               {seen(noLeaf, notPushed, doesNotFit, func(o *observed) { o.node = nil }), nothing{}},
		"a DaemonSet's Pod does not fit: it is not set to Failed":             {seen(noLeaf, notPushed, doesNotFit, daemonSet), nothing{}},
		"a running Pod no longer fits: it is not evicted, as on a kubelet":    {seen(shown, doesNotFit), nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decidePodStatus(tc.observed), decisions); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// decisions compares decisions by type, phase and reason. Package podstatus tests the rest of
// the status.
var decisions = cmp.Options{
	cmp.AllowUnexported(showStatus{}, failPod{}),
	cmp.Comparer(func(a, b corev1.PodStatus) bool { return a.Phase == b.Phase && a.Reason == b.Reason }),
}

// The message about a vanished leaf names the member, so that the user knows where to look.
func TestVanishedNamesTheMember(t *testing.T) {
	d, ok := decidePodStatus(seen(noLeaf, shown)).(failPod)
	if !ok || !strings.Contains(d.status.Message, "member "+strconv.Quote(here.Registration)) {
		t.Errorf("decision is %#v, want a message that names the member", d)
	}
}
