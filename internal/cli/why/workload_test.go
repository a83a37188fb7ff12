package why

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// check compares a diagnosis with the expected verdict and with parts of its text.
func check(t *testing.T, d *Diagnosis, want Verdict, says ...string) {
	t.Helper()
	if d.Verdict != want {
		t.Errorf("got verdict %s, want %s: %s", d.Verdict, want, d.Summary)
	}
	for _, part := range says {
		if text := d.Summary + ". " + d.ToDo; !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	if d.Verdict == Problem && d.ToDo == "" {
		t.Error("the diagnosis is a problem without a next step")
	}
}

func TestOfWorkload(t *testing.T) {
	registrations := []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}
	of := func(p *inspect.PodFacts) *inspect.Facts {
		return &inspect.Facts{Now: now.Time, Pod: p, Registrations: registrations}
	}
	runs := of(pod(corev1.PodRunning, memberNode, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}))
	waits := of(pod(corev1.PodPending, ""))
	fails := of(pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Insufficient cpu.")))
	quota := inspect.Condition{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate", Message: `pods "web" is forbidden: exceeded quota: few`}
	for name, tc := range map[string]struct {
		health     inspect.Health
		conditions []inspect.Condition
		pods       []*inspect.Facts
		want       Verdict
		says       []string
	}{
		"ready":       {health: inspect.Good, want: Well, says: []string{`Deployment "shop/web" is ready: 1 of 2 Pods ready`}},
		"no Pods yet": {health: inspect.Waiting, want: Waiting, says: []string{"has not created a Pod yet", "kubectl describe"}},
		"all Pods run, and the Job has not ended": {health: inspect.Waiting, pods: []*inspect.Facts{runs}, want: Waiting, says: []string{`is not ready yet (1 of 2 Pods ready), but no problem is known of its 1 Pod`}},
		"a quota rejects all Pods":                {health: inspect.Bad, conditions: []inspect.Condition{quota}, want: Problem, says: []string{"exceeded quota", "Change the Pod template, the quota"}},
		"a Pod waits":                             {health: inspect.Waiting, pods: []*inspect.Facts{runs, waits}, want: Waiting, says: []string{`(1 of 2 Pods ready): Pod "shop/app" does not run: the scheduler has not chosen a node yet`}},
		"a Pod waits, another cannot run":         {health: inspect.Waiting, pods: []*inspect.Facts{waits, fails}, want: Problem, says: []string{`Pod "shop/app" does not run: 0/1 nodes are available`, "reduce the Pod's requests"}},
		"two Pods cannot run":                     {health: inspect.Waiting, pods: []*inspect.Facts{fails, fails}, want: Problem, says: []string{"Insufficient cpu", "(1 other Pod too: see `kubectl xylem tree deployment/web -n shop --problems`)"}},
		"a quota rejects further Pods":            {health: inspect.Bad, conditions: []inspect.Condition{quota}, pods: []*inspect.Facts{waits}, want: Problem, says: []string{"exceeded quota"}},
	} {
		t.Run(name, func(t *testing.T) {
			owner := &inspect.Node{Kind: "Deployment", Namespace: "shop", Name: "web", Health: tc.health, Conditions: tc.conditions, Details: []string{"1 of 2 Pods ready"}}
			d := DiagnoseWorkload(owner, tc.pods)
			check(t, d, tc.want, tc.says...)
			if d.Evidence[0].Kind != "Deployment" {
				t.Errorf("the evidence begins with %v, want the workload", d.Evidence[0])
			}
		})
	}
}

func TestOfSnapshot(t *testing.T) {
	registrations := []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-1", Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: v1alpha1.ProvisionerName}}
	foreign := content.DeepCopy()
	foreign.Spec.Driver = "disk.example.com"
	const problem = `member "cluster38" has no VolumeSnapshotClass "fast". Create it`
	for name, tc := range map[string]struct {
		status  *snapshotv1.VolumeSnapshotStatus
		content *snapshotv1.VolumeSnapshotContent
		claim   inspect.ClaimFacts
		event   string
		want    Verdict
		says    []string
	}{
		"ready": {
			status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true)}, content: content, claim: boundClaim(), event: problem,
			want: Well, says: []string{`VolumeSnapshot "shop/nightly" is ready to use in member "cluster38"`},
		},
		"no content yet":         {claim: boundClaim(), want: Waiting, says: []string{"snapshot-controller has not created", "Check that the host's snapshot-controller runs"}},
		"the claim is not bound": {claim: pendingClaim(), want: Waiting, says: []string{`claim "data" is not bound yet`, "kubectl xylem why pvc data -n shop"}},
		"being taken": {
			status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-1")}, content: content, claim: boundClaim(),
			want: Waiting, says: []string{`has not been taken in member "cluster38" yet`},
		},
		"the driver of the host takes it": {
			status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-1")}, content: foreign, claim: boundClaim(),
			want: Waiting, says: []string{`driver "disk.example.com" has not taken the snapshot yet`},
		},
		"the user cannot read the content": {
			status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-1")}, claim: boundClaim(),
			want: Waiting, says: []string{`VolumeSnapshotContent "snapcontent-1" could not be read`, "Ask an admin"},
		},
		"the member lacks the class": {
			status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-1"), Error: &snapshotv1.VolumeSnapshotError{Message: new(problem)}},
			claim:  boundClaim(), event: problem, want: Problem, says: []string{`is not ready to use: member "cluster38" has no VolumeSnapshotClass "fast"`, "Create it."},
		},
		"the driver's error": {
			status: &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{Message: new("rpc error: code = Internal")}},
			claim:  boundClaim(), want: Problem, says: []string{"rpc error", "ask the member's admin to check the driver"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &inspect.SnapshotFacts{Snapshot: &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}, Status: tc.status}, Content: tc.content}
			if tc.event != "" {
				s.Events = []corev1.Event{{Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonSnapshotClassNotFound, Message: tc.event, LastTimestamp: metav1.NewTime(now.Add(-time.Second))}}
			}
			check(t, DiagnoseSubject(&inspect.Facts{Now: now.Time, Snapshot: s, Claims: []inspect.ClaimFacts{tc.claim}, Registrations: registrations}), tc.want, tc.says...)
		})
	}
}
