package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestSilence(t *testing.T) {
	const after = 2 * time.Minute
	now := time.Unix(1_800_000_000, 0)
	silent := &mirror.Refusal{Reason: v1alpha1.ReasonProvisionerSilent, Message: `member "cluster38" asked provisioner "ebs.csi.aws.com" for the volume, and the provisioner has reported nothing for 2m. Ask the member's admin to check that the driver's controller runs, and that StorageClass "gp3" names the right provisioner`}
	requestedAt := func(ago time.Duration) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-ago)))}}
		}
	}
	failure := func(ago time.Duration, message string) []corev1.Event {
		return []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "leaf"}, Reason: eventProvisioningFailed, Message: message,
			LastTimestamp: metav1.NewTime(now.Add(-ago)),
		}}
	}
	since := func(ago time.Duration, events []corev1.Event) []corev1.Event {
		events[0].FirstTimestamp = metav1.NewTime(now.Add(-ago))
		return events
	}
	idle := &mirror.Refusal{Reason: v1alpha1.ReasonControllerManagerSilent, Message: `member "cluster38" has not requested the volume from a provisioner for 2m. Ask the member's admin to check that its kube-controller-manager runs`}
	slowly := &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningSlow, Message: `member "cluster38" has not provisioned the volume for more than 2m, and tries again. The last failure: rpc error: code = DeadlineExceeded desc = slow`}
	dead := *silent
	dead.Message = strings.Replace(dead.Message, "2m", "12m", 1)
	const slow = "rpc error: code = DeadlineExceeded desc = slow"
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		events []corev1.Event
		want   *mirror.Refusal
		again  time.Duration
	}{
		"requested long ago":                 {requestedAt(after), nil, silent, 0},
		"requested recently":                 {requestedAt(30 * time.Second), nil, nil, 90 * time.Second},
		"the member's clock is ahead":        {requestedAt(-time.Hour), nil, nil, after},
		"no managed fields: the leaf is old": {func(*corev1.PersistentVolumeClaim) {}, nil, silent, 0},
		"no managed fields: the leaf is new": {func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(now) }, nil, nil, after},
		"not requested for a long time":      {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, nil, idle, 0},
		"a node was selected a moment ago": {func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{volumehelpers.AnnSelectedNode: "node-1"}
			requestedAt(time.Second)(c)
		}, nil, nil, after - time.Second},
		"bound":                               {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" }, nil, nil, 0},
		"deleted":                             {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.NewTime(now)) }, nil, nil, 0},
		"the provisioner reports a failure":   {requestedAt(time.Hour), failure(time.Hour, "rpc error: code = Internal desc = no"), nil, 0},
		"the provisioner reports a slow call": {requestedAt(time.Hour), failure(time.Minute, slow), nil, after - time.Minute},
		"it reports slow calls repeatedly":    {requestedAt(time.Hour), since(after, failure(time.Minute, slow)), slowly, after + maxTimeBetweenRetries - time.Minute},
		"slow calls before the last request":  {requestedAt(time.Minute), since(time.Hour, failure(30*time.Second, slow)), nil, after - time.Minute},
		"it does not retry the slow call":     {requestedAt(time.Hour), failure(after+maxTimeBetweenRetries, slow), &dead, 0},
		"requested again after a slow call":   {requestedAt(after), failure(time.Hour, slow), silent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{UID: "leaf", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Annotations: map[string]string{volumehelpers.AnnStorageProvisioner: "ebs.csi.aws.com"}},
				Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new("gp3")},
			}
			tc.change(leaf)
			got, again := ProvisioningSilence(leaf, tc.events, failing, after, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if again != tc.again {
				t.Errorf("checked again after %s, want %s", again, tc.again)
			}
		})
	}
	if ReasonFailsClaim(v1alpha1.ReasonProvisionerSilent) {
		t.Error("silence is evidence that no volume will be created (I3)")
	}
}

func TestSilentScheduler(t *testing.T) {
	const after = 2 * time.Minute
	now := time.Unix(1_800_000_000, 0)
	silent := &mirror.Refusal{Reason: v1alpha1.ReasonSchedulerSilent, Message: `the scheduler "default-scheduler" of member "cluster38" has not processed Pod "web" for 2m. Ask the member's admin to check that this scheduler runs`}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   *mirror.Refusal
		again  time.Duration
	}{
		"created long ago": {func(*corev1.Pod) {}, silent, 0},
		"created recently": {func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now) }, nil, after},
		"scheduled":        {func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }, nil, 0},
		"nominated":        {func(p *corev1.Pod) { p.Status.NominatedNodeName = "node-1" }, nil, 0},
		"the scheduler has reported": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.NewTime(now.Add(-after))}}
			tc.change(leaf)
			got, again := SchedulerSilence(leaf, failing, after, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if again != tc.again {
				t.Errorf("checked again after %s, want %s", again, tc.again)
			}
		})
	}
	if got, again := SchedulerSilence(nil, failing, after, now); got != nil || again != 0 {
		t.Errorf("without a leaf Pod: %v, again after %s", got, again)
	}
}
