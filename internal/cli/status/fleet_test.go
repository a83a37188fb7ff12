package status

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

var now = time.Date(2026, 11, 25, 5, 0, 0, 0, time.UTC)

func registration(conditions ...metav1.Condition) *v1alpha1.ClusterRegistration {
	r := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38", CreationTimestamp: metav1.NewTime(now.Add(-50 * time.Hour))}}
	r.Status.Conditions = conditions
	return r
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "the message of " + reason, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
}

func TestMemberOf(t *testing.T) {
	connected := condition(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected)
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	for name, tc := range map[string]struct {
		registration *v1alpha1.ClusterRegistration
		ready        bool
		reason       string
		problems     []string // reasons
	}{
		"a new registration": {registration(), false, "Unknown", nil},
		"a ready member":     {registration(connected, ready), true, v1alpha1.ReasonReady, nil},
		"an away member is reported only once": {registration(
			condition(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable),
			condition(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonMemberAway),
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnreachable),
		), false, v1alpha1.ReasonUnreachable, []string{v1alpha1.ReasonUnreachable}},
		"orphaned volumes": {registration(connected, ready, condition(v1alpha1.ConditionVolumesAccounted, metav1.ConditionFalse, v1alpha1.ReasonOrphanedVolumes)),
			true, v1alpha1.ReasonReady, []string{v1alpha1.ReasonOrphanedVolumes}},
		"a stuck deletion": {registration(connected, ready, condition(v1alpha1.ConditionDeletionsProgressing, metav1.ConditionFalse, v1alpha1.ReasonStuckDeletion)),
			true, v1alpha1.ReasonReady, []string{v1alpha1.ReasonStuckDeletion}},
		"an unknown number of orphans is not a problem": {registration(connected, ready, condition(v1alpha1.ConditionVolumesAccounted, metav1.ConditionUnknown, v1alpha1.ReasonNotLookedAt)),
			true, v1alpha1.ReasonReady, nil},
		"destruction is suspended": {registration(condition(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonHostRestored), ready),
			true, v1alpha1.ReasonReady, []string{v1alpha1.ReasonHostRestored}},
		"a pending confirmation": {registration(connected, condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConfirmationNeeded)),
			false, v1alpha1.ReasonConfirmationNeeded, []string{v1alpha1.ReasonConfirmationNeeded}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memberOfRegistration(tc.registration)
			if m.Ready != tc.ready || m.Reason != tc.reason {
				t.Errorf("got ready %t (%s), want %t (%s)", m.Ready, m.Reason, tc.ready, tc.reason)
			}
			var reasons []string
			for _, p := range m.Problems {
				reasons = append(reasons, p.Reason)
			}
			if strings.Join(reasons, " ") != strings.Join(tc.problems, " ") {
				t.Errorf("got problems %v, want %v", reasons, tc.problems)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	is := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kind, Status: status, Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"no condition":                          {&corev1.Pod{}, false},
		"no node":                               {is(v1alpha1.PodPlaceable, corev1.ConditionFalse, v1alpha1.ReasonNoCapacity), true},
		"pushed":                                {is(v1alpha1.PodPushed, corev1.ConditionTrue, v1alpha1.ReasonPushed), false},
		"not pushed":                            {is(v1alpha1.PodPushed, corev1.ConditionFalse, v1alpha1.ReasonPodUnsupported), true},
		"the member is away":                    {is(corev1.PodReady, corev1.ConditionFalse, v1alpha1.ReasonMemberAway), true},
		"not ready because of its containers":   {is(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady"), false},
		"not scheduled by the host's scheduler": {is(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := waitingPod(tc.pod); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	expired, left := metav1.NewTime(now.Add(-time.Minute)), metav1.NewTime(now.Add(29*24*time.Hour))
	f := &Fleet{
		Members: []Member{
			{Name: "a", Ready: true, Reason: "Ready", Version: "v1.36.3", Node: "kosmos-a", Volumes: v1alpha1.VolumeCounts{Bound: 12, Orphaned: 1}, TokenExpires: &left, Created: metav1.NewTime(now.Add(-48 * time.Hour)),
				Problems: []inspect.Condition{{Type: v1alpha1.ConditionVolumesAccounted, Status: "False", Reason: v1alpha1.ReasonOrphanedVolumes, Message: "one", Since: metav1.NewTime(now.Add(-time.Minute))}}},
			{Name: "b", Reason: "Unreachable", Node: "kosmos-b", TokenExpires: &expired},
			{Name: "c", Ready: true, Reason: "Ready", Node: "kosmos-c"},
		},
		Missing: []inspect.Missing{{What: "PersistentVolumes", Why: "forbidden"}},
	}
	for i := range podsShown + 2 {
		f.Pods = append(f.Pods, Pod{Namespace: "shop", Name: "app-" + string(rune('a'+i)), Reason: "NoCapacity", Since: metav1.NewTime(now.Add(-time.Hour))})
	}
	printed := printedFleet(f)
	for _, want := range []string{
		"2 of 3 ready", "29d left", "expired", "! a: VolumesAccounted=False OrphanedVolumes (60s ago): one",
		"Waiting Pods: 12", "and 2 more", "kubectl xylem why pod app-a -n shop", "! could not read PersistentVolumes: forbidden",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing from\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "provisioned") {
		t.Error("the page shows a throughput, although PersistentVolumes could not be read")
	}
	if printed := printedFleet(&Fleet{Members: f.Members}); !strings.Contains(printed, "Volumes provisioned that still exist: 0 in") {
		t.Errorf("want the volumes that still exist, got: %s", printed)
	}
	if printed := printedFleet(&Fleet{}); !strings.Contains(printed, "kubectl xylem register NAME") {
		t.Errorf("want the next step for a host without members, got: %s", printed)
	}
}

// TestPrintWatched checks the ages of what is younger than a minute.
func TestPrintWatched(t *testing.T) {
	out := &bytes.Buffer{}
	o := &options{watch: true, env: command.NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clocktesting.NewFakeClock(now.Add(45*time.Second)))}
	young := metav1.NewTime(now.Add(30 * time.Second))
	f := &Fleet{Members: []Member{{Name: "a", Created: young}}, Pods: []Pod{{Namespace: "shop", Name: "app", Since: young}}}
	if err := o.printFleet(f); err != nil {
		t.Fatal(err)
	}
	if printed := out.String(); strings.Contains(printed, "<invalid>") || strings.Count(printed, "15s") != 2 || !strings.Contains(printed, "05:00:45") {
		t.Errorf("want ages of 15s at 05:00:45:\n%s", printed)
	}
}

func TestThroughput(t *testing.T) {
	var got Throughput
	for _, age := range []time.Duration{time.Minute, 10 * time.Minute, 11 * time.Minute, 2 * time.Hour, 30 * time.Hour} {
		got.countVolume(age)
	}
	if want := (Throughput{TenMinutes: 2, Hour: 3, Day: 4}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func printedFleet(f *Fleet) string {
	var out strings.Builder
	page{inspect.Page{Out: &out, Now: now}}.printFleet(f)
	return out.String()
}
