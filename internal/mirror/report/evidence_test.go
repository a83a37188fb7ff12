package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

var failing = mirror.Member{Registration: "cluster38", ClusterID: "id38"}

func TestProvisioningProblem(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	event := func(message string, after time.Duration, change ...func(*corev1.Event)) corev1.Event {
		e := corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "leaf-uid"},
			Reason:         "ProvisioningFailed", Message: message, LastTimestamp: metav1.NewTime(at.Add(after)),
		}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	of := func(uid types.UID) func(*corev1.Event) {
		return func(e *corev1.Event) { e.InvolvedObject.UID = uid }
	}
	rpc := func(code string) string {
		return `failed to provision volume with StorageClass "fast": rpc error: code = ` + code + ` desc = sorry`
	}
	failed := func(words string) *mirror.Refusal {
		return &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: `member "cluster38" cannot provision the volume: ` + words}
	}
	for name, test := range map[string]struct {
		events []corev1.Event
		want   *mirror.Refusal
	}{
		"no event":                        {},
		"the driver's error":              {[]corev1.Event{event(rpc("Internal"), 0)}, failed(rpc("Internal"))},
		"the driver is unavailable":       {[]corev1.Event{event(rpc("Unavailable"), 0)}, nil},
		"the requested size is too large": {[]corev1.Event{event(rpc("OutOfRange"), 0)}, failed(rpc("OutOfRange"))},
		"an error without a code":         {[]corev1.Event{event("no connection to the driver", 0)}, nil},
		"a missing class":                 {[]corev1.Event{event(`storageclass.storage.k8s.io "fast" not found`, 0)}, failed(`storageclass.storage.k8s.io "fast" not found`)},
		"out of space":                    {[]corev1.Event{event(rpc("ResourceExhausted"), 0)}, &mirror.Refusal{Reason: v1alpha1.ReasonOutOfSpace, Message: `member "cluster38" has no capacity for the volume: ` + rpc("ResourceExhausted")}},
		"slow provisioning":               {[]corev1.Event{event(rpc("DeadlineExceeded"), 0)}, nil},
		"slow provisioning: the operation is in progress": {[]corev1.Event{event(rpc("Aborted"), 0)}, nil},
		"slow provisioning after an error":                {[]corev1.Event{event(rpc("DeadlineExceeded"), time.Minute), event(rpc("Internal"), 0)}, nil},
		"an error after slow provisioning":                {[]corev1.Event{event(rpc("Internal"), time.Minute), event(rpc("DeadlineExceeded"), 0)}, failed(rpc("Internal"))},
		"an event on an earlier leaf":                     {[]corev1.Event{event(rpc("Internal"), 0, of("earlier"))}, nil},
		"an event with another reason":                    {[]corev1.Event{event(rpc("Internal"), 0, func(e *corev1.Event) { e.Reason = "ProvisioningCleanupFailed" })}, nil},
		"an event on another kind of object":              {[]corev1.Event{event(rpc("Internal"), 0, func(e *corev1.Event) { e.InvolvedObject.Kind = "Pod" })}, nil},
		"control characters":                              {[]corev1.Event{event("\x1b[2Jcode = Internal", 0)}, failed("[2Jcode = Internal")},
		"events of the events.k8s.io API": {[]corev1.Event{
			event(rpc("Internal"), 0),
			event(rpc("NotFound"), 0, func(e *corev1.Event) {
				e.LastTimestamp, e.EventTime = metav1.Time{}, metav1.NewMicroTime(at)
				e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at.Add(time.Second))}
			}),
		}, failed(rpc("NotFound"))},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf-uid"}}
			got := ProvisioningProblem(leaf, test.events, failing)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got != nil && StillProvisioning(leaf, test.events) {
				t.Error("reported as failed, although a call may still be creating the volume")
			}
		})
	}
}

func TestConsumerProblem(t *testing.T) {
	type side struct {
		kind    corev1.PodConditionType
		status  corev1.ConditionStatus
		reason  string
		message string
	}
	pod := func(s side) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: s.kind, Status: s.status, Reason: s.reason, Message: s.message}}}}
	}
	by := func(reporter string, s side) *corev1.Pod {
		p := pod(s)
		p.Annotations = map[string]string{v1alpha1.AnnotationReportedBy: reporter}
		return p
	}
	noNode := side{corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/3 nodes are available"}
	for name, test := range map[string]struct {
		root, leaf *corev1.Pod
		want       string
	}{
		"no leaf and no condition":                  {root: &corev1.Pod{}},
		"no suitable node":                          {root: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, leaf: pod(noNode), want: `LeafPodUnschedulable: member "cluster38" has no node for Pod "web": 0/3 nodes are available`},
		"a nominated node":                          {root: &corev1.Pod{}, leaf: func() *corev1.Pod { p := pod(noNode); p.Status.NominatedNodeName = "n1"; return p }()},
		"bound to a node":                           {root: &corev1.Pod{}, leaf: func() *corev1.Pod { p := pod(noNode); p.Spec.NodeName = "n1"; return p }()},
		"a scheduler error":                         {root: &corev1.Pod{}, leaf: pod(side{corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulerError, "timeout"})},
		"the leaf has scheduling gates":             {root: &corev1.Pod{}, leaf: pod(side{corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "gated"})},
		"scheduled":                                 {root: &corev1.Pod{}, leaf: pod(side{corev1.PodScheduled, corev1.ConditionTrue, "", ""})},
		"the member refuses the Pod":                {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonRefusedByMember, "member cluster38 refuses to create the Pod: quota"}), want: `PodRefusedByMember: Pod "web": member cluster38 refuses to create the Pod: quota`},
		"the namespace is not admitted":             {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonNamespaceNotAdmitted, "the namespace lacks the label team=a"}), want: `NamespaceNotAdmitted: Pod "web": the namespace lacks the label team=a`},
		"a foreign Pod has the name":                {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonNameTaken, "member cluster38 has a Pod of its own"}), want: `PodRefusedByMember: Pod "web": member cluster38 has a Pod of its own`},
		"another member refuses the Pod":            {root: by("another", side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonRefusedByMember, "member cluster39 refuses to create the Pod: quota"})},
		"the Pod's claim is refused":                {root: by(failing.ClusterID+"/data", side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonRefusedByMember, "claim data: member cluster38 refuses to create the claim: quota"})},
		"an update is refused, but the leaf exists": {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonRefusedByMember, "member cluster38 refuses to update the Pod: quota"}), leaf: &corev1.Pod{}},
		"every member refuses the Pod":              {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonPodUnsupported, "member cluster38 and all others"})},
		"the Pod was withdrawn":                     {root: by(failing.ClusterID, side{v1alpha1.PodPushed, corev1.ConditionFalse, "Withdrawn", "member cluster38 "})},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if problem := ConsumerProblem(test.root, test.leaf, failing); problem != nil {
				got = problem.Reason + ": " + problem.Message
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMayBeProvisioning(t *testing.T) {
	requested := map[string]string{volumehelpers.AnnStorageProvisioner: "disk.example.com"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		failure     string // empty if there is none
		want        bool
	}{
		"the claim waits for a consumer": {},
		"the first call":                 {annotations: requested, want: true},
		"the call timed out":             {annotations: requested, failure: "rpc error: code = DeadlineExceeded desc = slow", want: true},
		"the call failed":                {annotations: requested, failure: "rpc error: code = Internal desc = no"},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf", Annotations: tc.annotations}}
			var events []corev1.Event
			if tc.failure != "" {
				events = append(events, corev1.Event{
					InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: leaf.UID},
					Reason:         eventProvisioningFailed, Message: tc.failure,
				})
			}
			if got := MayBeProvisioning(leaf, events); got != tc.want {
				t.Errorf("a call may be in progress: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestStillProvisioning(t *testing.T) {
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf"}}
	for message, want := range map[string]bool{
		"": false, // no event
		"rpc error: code = Unavailable desc = connection refused": true,
		"rpc error: code = Aborted desc = pending":                true,
		"no connection to the driver":                             true,
		"rpc error: code = Internal desc = no":                    false,
		`storageclass.storage.k8s.io "fast" not found`:            false,
	} {
		t.Run(message, func(t *testing.T) {
			var events []corev1.Event
			if message != "" {
				events = append(events, corev1.Event{
					InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: leaf.UID},
					Reason:         "ProvisioningFailed", Message: message,
				})
			}
			if got := StillProvisioning(leaf, events); got != want {
				t.Errorf("a call may be in progress: %t, want %t", got, want)
			}
		})
	}
}
