package leafevent

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
)

var (
	now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	m   = mirror.Member{Registration: "cluster38", ClusterID: "3f0c", NodeName: "kosmos-cluster38", HostID: "host"}
)

func pods(o *observed) (leaf, root *corev1.Pod) {
	leaf, _ = o.leaf.(*corev1.Pod)
	root, _ = o.root.(*corev1.Pod)
	return leaf, root
}

func ofPod(change ...func(*observed)) observed {
	root := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "root"}, Spec: corev1.PodSpec{NodeName: m.NodeName}}
	leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "leaf"}}
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	o := observed{member: m, leaf: leaf, root: root, now: now, event: &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: "web.17", UID: "event"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team", Name: "web", UID: "leaf", FieldPath: "spec.containers{c}"},
		Type:           corev1.EventTypeWarning, Reason: "BackOff", Message: "back-off restarting failed container",
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-7"},
		FirstTimestamp: metav1.NewTime(now.Add(-time.Minute)), LastTimestamp: metav1.NewTime(now.Add(-30 * time.Second)), Count: 3,
	}}
	for _, c := range change {
		c(&o)
	}
	return o
}

func ofClaim(change ...func(*corev1.PersistentVolumeClaim)) observed {
	o := ofPod()
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "root"}}
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "leaf"}}
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	for _, c := range change {
		c(root)
	}
	o.event.InvolvedObject.Kind = "PersistentVolumeClaim"
	o.leaf, o.root = leaf, root
	return o
}

// chosen returns the PV controller's event on a leaf claim for which Xylem chose a volume.
func chosen(phase corev1.PersistentVolumeClaimPhase, change ...func(*observed)) observed {
	o := ofClaim(func(root *corev1.PersistentVolumeClaim) {
		root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: m.ClusterID}
	})
	o.event.Reason = failedBinding
	if leaf, ok := o.leaf.(*corev1.PersistentVolumeClaim); ok {
		leaf.Spec.VolumeName, leaf.Status.Phase = "pv-7", phase
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func TestJudge(t *testing.T) {
	young := func(o *observed) { o.event.LastTimestamp = metav1.NewTime(now.Add(-time.Second)) }
	for name, tc := range map[string]struct {
		observed observed
		want     relevance
	}{
		"an event on a leaf Pod": {ofPod(), relevant},
		"the event is gone":      {observed{now: now}, ignored},
		"the leaf claim cannot be bound to the chosen volume yet":   {chosen(corev1.ClaimPending, young), unsettled},
		"the leaf claim is now bound to the chosen volume":          {chosen(corev1.ClaimBound, young), ignored},
		"the leaf claim still cannot be bound to the chosen volume": {chosen(corev1.ClaimPending), relevant},
		"another event on a claim with a chosen volume":             {chosen(corev1.ClaimPending, young, func(o *observed) { o.event.Reason = "ProvisioningFailed" }), relevant},
		"a Normal event":                           {ofPod(func(o *observed) { o.event.Type = corev1.EventTypeNormal }), ignored},
		"an event on another kind of object":       {ofPod(func(o *observed) { o.event.InvolvedObject.Kind = "Node" }), ignored},
		"the event is too old":                     {ofPod(func(o *observed) { o.event.LastTimestamp = metav1.NewTime(now.Add(-maxEventAge)) }), ignored},
		"an event on an object that is not a leaf": {ofPod(func(o *observed) { o.leaf, o.root = nil, nil }), ignored},
		"the leaf is not in the cache yet":         {ofPod(young, func(o *observed) { o.leaf, o.root = nil, nil }), unsettled},
		"an event on an earlier leaf":              {ofPod(func(o *observed) { o.event.InvolvedObject.UID = "earlier" }), ignored},
		"the root is gone":                         {ofPod(func(o *observed) { o.root = nil }), ignored},
		"the root was re-created":                  {ofPod(func(o *observed) { _, root := pods(o); root.UID = "anew" }), ignored},
		"the stamp names another host": {ofPod(func(o *observed) {
			leaf, _ := pods(o)
			leaf.Labels[v1alpha1.LabelHost] = "else"
		}), ignored},
		"the stamp names a Pod on another node": {ofPod(func(o *observed) {
			_, root := pods(o)
			root.Spec.NodeName = "worker-1"
		}), ignored},
		"the stamp names a Pod in another namespace": {ofPod(func(o *observed) {
			leaf, _ := pods(o)
			leaf.Annotations[v1alpha1.AnnotationRoot] = "other/web"
		}), ignored},
		"the Pod is nominated to this member": {ofPod(func(o *observed) {
			_, root := pods(o)
			root.Spec.NodeName, root.Status.NominatedNodeName = "", m.NodeName
		}), relevant},
		"the Pod was nominated to this member and bound elsewhere": {ofPod(func(o *observed) {
			_, root := pods(o)
			root.Spec.NodeName, root.Status.NominatedNodeName = "worker-1", m.NodeName
		}), ignored},
		"a claim placed in this member": {ofClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: m.ClusterID}
		}), relevant},
		"a claim placed in another member": {ofClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: "else"}
		}), ignored},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeRelevance(tc.observed); got != tc.want {
				t.Errorf("judged %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRepeated(t *testing.T) {
	want := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: hostEventName("web", "3f0c", "event"),
			Labels: map[string]string{v1alpha1.LabelManagedBy: "xylem", v1alpha1.LabelClusterID: "3f0c"},
		},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "team", Name: "web", UID: "root", FieldPath: "spec.containers{c}"},
		Type:           corev1.EventTypeWarning, Reason: "BackOff", Message: `member "cluster38": back-off restarting failed container`,
		Source:         corev1.EventSource{Component: "kubelet", Host: "kosmos-cluster38"},
		FirstTimestamp: metav1.NewTime(now.Add(-time.Minute)), LastTimestamp: metav1.NewTime(now.Add(-30 * time.Second)), Count: 3,
	}
	got := newHostEvent(ofPod())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if updatedEvent(got, newHostEvent(ofPod())) != nil {
		t.Error("an unchanged event is written again")
	}
	more := ofPod(func(o *observed) { o.event.Count = 4 })
	if after := updatedEvent(got, newHostEvent(more)); after == nil || after.Count != 4 {
		t.Errorf("a higher count is written as %v, want an event with count 4", after)
	}
	long := newHostEvent(ofPod(func(o *observed) { o.event.Message = strings.Repeat("ü", 2000) }))
	if len(long.Message) > messageLimit {
		t.Errorf("the message has %d bytes, want at most %d", len(long.Message), messageLimit)
	}
}

func TestOccurrences(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)) }
	micro := func(seconds int) metav1.MicroTime { return metav1.NewMicroTime(at(seconds).Add(5 * time.Microsecond)) }
	for name, tc := range map[string]struct {
		event corev1.Event
		want  occurrence
	}{
		"a core/v1 event":                      {corev1.Event{Count: 2, FirstTimestamp: at(1), LastTimestamp: at(2)}, occurrence{2, at(1).Time, at(2).Time}},
		"an events.k8s.io event":               {corev1.Event{EventTime: micro(1)}, occurrence{1, at(1).Time, at(1).Time}},
		"an events.k8s.io event with a series": {corev1.Event{EventTime: micro(1), Series: &corev1.EventSeries{Count: 7, LastObservedTime: micro(9)}}, occurrence{7, at(1).Time, at(9).Time}},
		"an event without any times":           {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(3)}}, occurrence{1, at(3).Time, at(3).Time}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, occurrenceOf(&tc.event), cmp.AllowUnexported(occurrence{})); diff != "" {
				t.Errorf("occurrences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	long := strings.Repeat("a", 240) + "." + strings.Repeat("b", 12)
	for _, root := range []string{"web", long, strings.Repeat("a", 253)} {
		if name := hostEventName(root, "c", "e"); len(name) > nameLimit || strings.Contains(name, "..") {
			t.Errorf("name %q for an event on %q, want a valid name of at most %d bytes", name, root, nameLimit)
		}
	}
	if hostEventName("web", "c", "e") == hostEventName("web", "c", "f") || hostEventName("web", "c", "e") == hostEventName("web", "d", "e") {
		t.Error("two events have the same name")
	}
}

func TestBudget(t *testing.T) {
	b := newEventBudget()
	for i := range budgetBurst {
		if b.TakeToken("root", now) > 0 {
			t.Fatalf("write %d is rejected", i+1)
		}
	}
	if b.TakeToken("root", now) == 0 {
		t.Error("a write beyond the burst is allowed")
	}
	if b.TakeToken("other", now) > 0 {
		t.Error("the events of one root use up the budget of another")
	}
	if b.TakeToken("root", now.Add(budgetRefill)) > 0 {
		t.Error("the budget is not refilled")
	}
}

// A member with many Pods and claims cannot fill the host's etcd with events.
func TestBudgetOfTheMember(t *testing.T) {
	b := newEventBudget()
	spent := func(at time.Time) (n int) {
		for i := range 2 * guarded.TrackedObjects {
			if b.TakeToken(types.UID(strconv.Itoa(i)), at) == 0 {
				n++
			}
		}
		return n
	}
	if n := spent(now); n != memberBurst {
		t.Errorf("%d writes are allowed at once, want %d", n, memberBurst)
	}
	if n := spent(now.Add(10 * time.Second)); n != 10*memberRate {
		t.Errorf("%d more writes are allowed after 10 s, want %d", n, 10*memberRate)
	}
}
