package podstatus

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

func second(n int64) metav1.Time { return metav1.NewTime(time.Unix(n, 0)) }

func cond(t corev1.PodConditionType, status corev1.ConditionStatus, since int64) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, LastTransitionTime: second(since)}
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Ready: true, Started: mirrortest.PointerTo(true), ContainerID: "cri://" + name,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(5)}},
	}
}

func TestRootPodStatusConditions(t *testing.T) {
	const gate, gate2 = corev1.PodConditionType("example.org/lb"), corev1.PodConditionType("example.org/dns")
	ready := cond(corev1.PodReady, "True", 10)
	notReady := func(since int64, message string) corev1.PodCondition {
		return corev1.PodCondition{
			Type: corev1.PodReady, Status: "False", LastTransitionTime: second(since),
			Reason: "ReadinessGatesNotReady", Message: message,
		}
	}
	cases := map[string]struct {
		gates            []corev1.PodConditionType
		root, leaf, want []corev1.PodCondition
	}{
		"a kubelet's conditions": {
			leaf: []corev1.PodCondition{ready, cond(corev1.PodInitialized, "True", 1), cond(corev1.PodReadyToStartContainers, "True", 2)},
			want: []corev1.PodCondition{ready, cond(corev1.PodInitialized, "True", 1), cond(corev1.PodReadyToStartContainers, "True", 2)},
		},
		"conditions of schedulers and users": {
			root: []corev1.PodCondition{cond("xylem.io/Pushed", "True", 1)},
			leaf: []corev1.PodCondition{cond(corev1.PodScheduled, "True", 1), cond("example.org/mine", "True", 1), cond("xylem.io/Pushed", "True", 1)},
		},
		"a disruption": {
			leaf: []corev1.PodCondition{cond(corev1.DisruptionTarget, "True", 1)},
			want: []corev1.PodCondition{cond(corev1.DisruptionTarget, "True", 1)},
		},
		"a disruption that is no longer true": {
			leaf: []corev1.PodCondition{cond(corev1.DisruptionTarget, "False", 1)},
		},
		"a readiness gate that only the leaf satisfies": {
			gates: []corev1.PodConditionType{gate},
			leaf:  []corev1.PodCondition{ready, cond(gate, "True", 1)},
			want:  []corev1.PodCondition{notReady(10, `corresponding condition of pod readiness gate "example.org/lb" does not exist.`)},
		},
		"an unsatisfied readiness gate": {
			gates: []corev1.PodConditionType{gate, gate2},
			root:  []corev1.PodCondition{cond(gate, "False", 20), cond(gate2, "True", 5)},
			leaf:  []corev1.PodCondition{ready},
			want:  []corev1.PodCondition{notReady(20, `the status of pod readiness gate "example.org/lb" is not "True", but False`)},
		},
		"gates satisfied after the containers were ready": {
			gates: []corev1.PodConditionType{gate, gate2},
			root:  []corev1.PodCondition{cond(gate, "True", 20), cond(gate2, "True", 15)},
			leaf:  []corev1.PodCondition{ready},
			want:  []corev1.PodCondition{cond(corev1.PodReady, "True", 20)},
		},
		"gates satisfied before the containers were ready": {
			gates: []corev1.PodConditionType{gate},
			root:  []corev1.PodCondition{cond(gate, "True", 3)},
			leaf:  []corev1.PodCondition{ready},
			want:  []corev1.PodCondition{ready},
		},
		"a leaf that is not ready keeps its reason": {
			gates: []corev1.PodConditionType{gate},
			leaf:  []corev1.PodCondition{{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady"}},
			want:  []corev1.PodCondition{{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady"}},
		},
		"observed generations are the root's": {
			leaf: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: "True", ObservedGeneration: 1}},
			want: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: "True", ObservedGeneration: 3}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{})
			for _, gate := range c.gates {
				root.Spec.ReadinessGates = append(root.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
			}
			root.Status.Conditions = c.root
			got := TranslatePodStatus(root, &corev1.Pod{Status: corev1.PodStatus{Conditions: c.leaf}}, mirrortest.Member)
			if diff := cmp.Diff(c.want, got.Conditions); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A leaf that is being deleted is not ready in the host, unless the root is being deleted, too.
func TestReadyOfDeletedLeaf(t *testing.T) {
	requested := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	deleted := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(requested.Add(30*time.Second))), new(int64(30))
	}
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: "True"}
	for name, c := range map[string]struct {
		leaf               corev1.PodCondition
		leafGoes, rootGoes bool
		want               corev1.PodCondition
	}{
		"neither":         {leaf: ready, want: ready},
		"both":            {leaf: ready, leafGoes: true, rootGoes: true, want: ready},
		"the root":        {leaf: ready, rootGoes: true, want: ready},
		"an unready leaf": {leaf: unready, leafGoes: true, want: unready},
		"the leaf": {leaf: ready, leafGoes: true, want: corev1.PodCondition{
			Type: corev1.PodReady, Status: "False", Reason: "LeafPodEvicted", Message: "the Pod is being evicted or deleted in the member", LastTransitionTime: metav1.NewTime(requested),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root, leaf := mirrortest.NewRootPod(corev1.PodSpec{}), &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{c.leaf}}}
			if c.leafGoes {
				deleted(leaf)
			}
			if c.rootGoes {
				deleted(root)
			}
			if diff := cmp.Diff([]corev1.PodCondition{c.want}, TranslatePodStatus(root, leaf, mirrortest.Member).Conditions); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRootPodStatusIPs(t *testing.T) {
	ips := func(addresses ...string) (list []corev1.PodIP) {
		for _, a := range addresses {
			list = append(list, corev1.PodIP{IP: a})
		}
		return list
	}
	everywhere := mirrortest.Member
	everywhere.PodCIDRs = mirror.AllPodCIDRs
	cases := map[string]struct {
		m      mirror.Member
		status corev1.PodStatus
		want   []corev1.PodIP
	}{
		"none":                         {m: mirrortest.Member},
		"no CIDRs":                     {m: mirrortest.Member, status: corev1.PodStatus{PodIP: "10.8.0.1", PodIPs: ips("10.8.0.1", "fd00::1")}},
		"all":                          {m: everywhere, status: corev1.PodStatus{PodIP: "10.8.0.1", PodIPs: ips("10.8.0.1", "fd00::1")}, want: ips("10.8.0.1", "fd00::1")},
		"one special address":          {m: everywhere, status: corev1.PodStatus{PodIP: "169.254.169.254", PodIPs: ips("169.254.169.254", "fd00::1")}, want: ips("fd00::1")},
		"an address in canonical form": {m: everywhere, status: corev1.PodStatus{PodIPs: ips("FD00:0::1", "fd00::1")}, want: ips("fd00::1")},
		"one address inside the CIDRs": {m: mirrortest.MemberWithCIDRs("10.9.0.0/16", "fd00::/8"), status: corev1.PodStatus{PodIP: "10.8.0.1", PodIPs: ips("10.8.0.1", "fd00::1")}, want: ips("fd00::1")},
		"no address inside the CIDRs":  {m: mirrortest.MemberWithCIDRs("10.9.0.0/16"), status: corev1.PodStatus{PodIP: "10.8.0.1", PodIPs: ips("10.8.0.1")}},
		"not an address":               {m: mirrortest.MemberWithCIDRs("0.0.0.0/0"), status: corev1.PodStatus{PodIPs: ips("x")}},
		"a kubelet before dual stack":  {m: mirrortest.MemberWithCIDRs("10.8.0.0/16"), status: corev1.PodStatus{PodIP: "10.8.0.1"}, want: ips("10.8.0.1")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := TranslatePodStatus(mirrortest.NewRootPod(corev1.PodSpec{}), &corev1.Pod{Status: c.status}, c.m)
			if diff := cmp.Diff(c.want, got.PodIPs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			first := ""
			if len(c.want) > 0 {
				first = c.want[0].IP
			}
			if got.PodIP != first {
				t.Errorf("podIP %q, want the first of podIPs, %q", got.PodIP, first)
			}
		})
	}
}

func TestRootPodStatusContainers(t *testing.T) {
	root := mirrortest.NewRootPod(corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers:     []corev1.Container{{Name: "web"}},
	})
	root.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	leaf := &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: root.Spec.EphemeralContainers}, Status: corev1.PodStatus{
		InitContainerStatuses:      []corev1.ContainerStatus{running("mesh-init"), running("init")},
		ContainerStatuses:          []corev1.ContainerStatus{running("web"), running("proxy")},
		EphemeralContainerStatuses: []corev1.ContainerStatus{running("debug"), running("members")},
	}}
	got := TranslatePodStatus(root, leaf, mirrortest.Member)
	want := corev1.PodStatus{
		Phase:                 corev1.PodPending,
		ObservedGeneration:    3,
		InitContainerStatuses: []corev1.ContainerStatus{running("init")},
		ContainerStatuses:     []corev1.ContainerStatus{running("web")},

		EphemeralContainerStatuses: []corev1.ContainerStatus{running("debug")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Until the leaf has the ephemeral container, the root's generation is not observed.
	leaf.Spec.EphemeralContainers = nil
	if got := TranslatePodStatus(root, leaf, mirrortest.Member); got.ObservedGeneration != 0 {
		t.Errorf("generation %d is observed although the leaf lacks an ephemeral container", got.ObservedGeneration)
	}
}

func TestObservedGeneration(t *testing.T) {
	cases := map[string]struct {
		change func(root, leaf *corev1.Pod)
		want   int64
	}{
		"the leaf is up to date":                                             {func(_, leaf *corev1.Pod) { leaf.Generation, leaf.Status.ObservedGeneration = 4, 4 }, 3},
		"the member's kubelet reports no generation":                         {func(_, leaf *corev1.Pod) { leaf.Generation = 4 }, 3},
		"no kubelet has accepted the leaf":                                   {func(_, leaf *corev1.Pod) { leaf.Status.Phase, leaf.Status.StartTime = corev1.PodPending, nil }, 2},
		"the root's deletion is not pushed yet":                              {func(root, _ *corev1.Pod) { root.DeletionTimestamp = &metav1.Time{} }, 2},
		"the member's kubelet has not observed the leaf's latest generation": {func(_, leaf *corev1.Pod) { leaf.Generation, leaf.Status.ObservedGeneration = 4, 3 }, 2},
		"a change to the root is not pushed yet":                             {func(root, _ *corev1.Pod) { root.Spec.Containers[0].Image = "web:2" }, 2},
		"a resize of the root is not pushed yet": {func(root, _ *corev1.Pod) {
			root.Spec.Containers[0].Resources.Requests = mirrortest.ResourceAmounts("cpu", "2")
		}, 2},
		"a resize of the root is pushed": {func(root, leaf *corev1.Pod) {
			root.Spec.Containers[0].Resources.Requests = mirrortest.ResourceAmounts("cpu", "2")
			leaf.Spec.Containers[0].Resources.Requests = mirrortest.ResourceAmounts("cpu", "2")
		}, 3},
		"a new label does not change the spec": {func(root, _ *corev1.Pod) { root.Labels = map[string]string{"a": "b"} }, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}})
			root.Status.ObservedGeneration = 2
			leaf, err := podspec.TranslatePod(root, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			c.change(root, leaf)
			if got := TranslatePodStatus(root, leaf, mirrortest.Member).ObservedGeneration; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// The generations in conditions are the root's. A kubelet keeps a condition about an earlier resize while it
// observes newer generations of the leaf.
func TestConditionGeneration(t *testing.T) {
	const rootGeneration = 3
	inProgress := func(generation int64) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, ObservedGeneration: generation}
	}
	for name, tc := range map[string]struct {
		shown           []corev1.PodCondition
		observed, about int64 // by the member's kubelet
		want            int64
	}{
		"about the leaf's generation":                           {nil, 7, 7, rootGeneration},
		"the kubelet reports no generation of the status":       {nil, 0, 7, rootGeneration},
		"the kubelet reports no generation of the condition":    {nil, 7, 0, 0},
		"about an earlier generation, which the root shows":     {[]corev1.PodCondition{inProgress(2)}, 7, 6, 2},
		"about an earlier generation, which the root lacks":     {nil, 7, 6, 0},
		"about an earlier generation, and the root shows none":  {[]corev1.PodCondition{inProgress(0)}, 7, 6, 0},
		"about an earlier generation, and the root's is forged": {[]corev1.PodCondition{inProgress(99)}, 7, 6, rootGeneration},
		"about an earlier generation, and the root shows another status": {
			[]corev1.PodCondition{{Type: corev1.PodResizeInProgress, Status: corev1.ConditionFalse, ObservedGeneration: 2}}, 7, 6, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}})
			root.Generation, root.Status.Conditions = rootGeneration, tc.shown
			leaf, err := podspec.TranslatePod(root, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			leaf.Generation = 7
			leaf.Status = corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: tc.observed, Conditions: []corev1.PodCondition{inProgress(tc.about)}}
			got := TranslatePodStatus(root, leaf, mirrortest.Member)
			if diff := cmp.Diff([]corev1.PodCondition{inProgress(tc.want)}, got.Conditions); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			root.Status = got
			if !IsPodStatusCurrent(root, TranslatePodStatus(root, leaf, mirrortest.Member)) {
				t.Error("the second result differs, so Xylem would write the status repeatedly")
			}
		})
	}
}

// shownPod returns a root Pod with a mirrored status and fields of other owners.
func shownPod(want corev1.PodStatus) *corev1.Pod {
	root := mirrortest.NewRootPod(corev1.PodSpec{})
	root.Status = *want.DeepCopy()
	root.Status.QOSClass = corev1.PodQOSBurstable
	root.Status.NominatedNodeName = "kosmos-cluster38"
	root.Status.Conditions = append([]corev1.PodCondition{
		cond(corev1.PodScheduled, "True", 1), cond("xylem.io/Pushed", "True", 1), cond("example.org/lb", "True", 1),
	}, root.Status.Conditions...)
	return root
}

func someStatus() corev1.PodStatus {
	return corev1.PodStatus{
		Phase:              corev1.PodRunning,
		Message:            "m",
		HostIP:             "192.0.2.1",
		HostIPs:            []corev1.HostIP{{IP: "192.0.2.1"}},
		PodIP:              "10.8.0.1",
		PodIPs:             []corev1.PodIP{{IP: "10.8.0.1"}},
		StartTime:          mirrortest.PointerTo(second(3)),
		ObservedGeneration: 3,
		Conditions:         []corev1.PodCondition{cond(corev1.PodReady, "True", 4), cond(corev1.PodInitialized, "True", 2)},
		ContainerStatuses:  []corev1.ContainerStatus{running("web")},
	}
}

func TestPodStatusCurrent(t *testing.T) {
	cases := map[string]struct {
		root func(*corev1.PodStatus)
		want func(*corev1.PodStatus)
		is   bool
	}{
		"equal": {is: true},
		"conditions in another order": {is: true, root: func(s *corev1.PodStatus) {
			s.Conditions[3], s.Conditions[4] = s.Conditions[4], s.Conditions[3]
		}},
		"a probe time that another writer set": {is: true, root: func(s *corev1.PodStatus) { s.Conditions[3].LastProbeTime = second(9) }},
		"a disruption that the host reported": {is: true, root: func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, cond(corev1.DisruptionTarget, "True", 1))
		}},
		"a disruption that the root lacks": {want: func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, cond(corev1.DisruptionTarget, "True", 1))
		}},
		"another phase":           {want: func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded }},
		"another transition time": {want: func(s *corev1.PodStatus) { s.Conditions[0].LastTransitionTime = second(5) }},
		"a missing condition":     {want: func(s *corev1.PodStatus) { s.Conditions = s.Conditions[:1] }},
		"an additional condition": {want: func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, cond(corev1.ContainersReady, "True", 4))
		}},
		"another condition":     {want: func(s *corev1.PodStatus) { s.Conditions[1] = cond(corev1.ContainersReady, "True", 2) }},
		"a missing message":     {want: func(s *corev1.PodStatus) { s.Message = "" }},
		"no address":            {want: func(s *corev1.PodStatus) { s.PodIP, s.PodIPs = "", nil }},
		"another restart count": {want: func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount++ }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := someStatus()
			root := shownPod(want)
			if c.root != nil {
				c.root(&root.Status)
			}
			if c.want != nil {
				c.want(&want)
			}
			if got := IsPodStatusCurrent(root, want); got != c.is {
				t.Errorf("got %v, want %v", got, c.is)
			}
		})
	}
}

func TestFailedPodStatus(t *testing.T) {
	waiting := corev1.ContainerStatus{Name: "late", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
	done := corev1.ContainerStatus{Name: "init", Ready: true, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}
	ended := func(name, id string, since metav1.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, ContainerID: id, Started: mirrortest.PointerTo(false), State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{
				Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
				ExitCode: 137, ContainerID: id, StartedAt: since,
			},
		}}
	}
	failed := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: "False", Reason: "PodFailed", ObservedGeneration: 3}
	}
	cases := map[string]struct{ root, want corev1.PodStatus }{
		"never admitted": {
			root: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{cond(corev1.PodScheduled, "True", 1)}},
			want: corev1.PodStatus{
				Phase: corev1.PodFailed, Reason: "Lost", Message: "gone", ObservedGeneration: 3,
				Conditions: []corev1.PodCondition{failed(corev1.PodReady), failed(corev1.ContainersReady)},
			},
		},
		"running": {
			root: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "10.8.0.1", PodIPs: []corev1.PodIP{{IP: "10.8.0.1"}}, StartTime: mirrortest.PointerTo(second(1)),
				QOSClass: corev1.PodQOSBurstable,
				Conditions: []corev1.PodCondition{
					cond(corev1.PodInitialized, "True", 2), cond(corev1.PodReady, "True", 3), cond(corev1.DisruptionTarget, "True", 4),
					cond("xylem.io/Pushed", "True", 1),
				},
				InitContainerStatuses: []corev1.ContainerStatus{done},
				ContainerStatuses:     []corev1.ContainerStatus{running("web"), waiting, done},
			},
			want: corev1.PodStatus{
				Phase: corev1.PodFailed, Reason: "Lost", Message: "gone", ObservedGeneration: 3,
				PodIP: "10.8.0.1", PodIPs: []corev1.PodIP{{IP: "10.8.0.1"}}, StartTime: mirrortest.PointerTo(second(1)),
				Conditions: []corev1.PodCondition{
					cond(corev1.PodInitialized, "True", 2), failed(corev1.PodReady), cond(corev1.DisruptionTarget, "True", 4), failed(corev1.ContainersReady),
				},
				InitContainerStatuses: []corev1.ContainerStatus{done},
				ContainerStatuses:     []corev1.ContainerStatus{ended("web", "cri://web", second(5)), ended("late", "", metav1.Time{}), done},
			},
		},
		"not initialized, so waiting containers have not run": {
			root: corev1.PodStatus{
				Phase:                 corev1.PodPending,
				Conditions:            []corev1.PodCondition{cond(corev1.PodInitialized, "False", 2), cond(corev1.PodReady, "False", 3)},
				InitContainerStatuses: []corev1.ContainerStatus{running("init")},
				ContainerStatuses:     []corev1.ContainerStatus{waiting},
			},
			want: corev1.PodStatus{
				Phase: corev1.PodFailed, Reason: "Lost", Message: "gone", ObservedGeneration: 3,
				Conditions: []corev1.PodCondition{
					cond(corev1.PodInitialized, "False", 2),
					{Type: corev1.PodReady, Status: "False", Reason: "PodFailed", ObservedGeneration: 3, LastTransitionTime: second(3)},
					failed(corev1.ContainersReady),
				},
				InitContainerStatuses: []corev1.ContainerStatus{ended("init", "cri://init", second(5))},
				ContainerStatuses:     []corev1.ContainerStatus{waiting},
			},
		},
		"already finished": {
			root: corev1.PodStatus{Phase: corev1.PodSucceeded, Reason: "Completed"},
			want: corev1.PodStatus{Phase: corev1.PodSucceeded, Reason: "Completed"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{})
			root.Status = c.root
			got := FailedPodStatus(root, "Lost", "gone")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// Once written with a time, the status is final and does not change.
			own := root.Status.QOSClass
			root.Status = WithTransitionTimes(got, second(99))
			root.Status.QOSClass = own
			if again := FailedPodStatus(root, "Other", "again"); !IsPodStatusCurrent(root, again) {
				t.Errorf("the second result differs: %+v", again)
			}
			for _, c := range root.Status.Conditions {
				if c.LastTransitionTime.IsZero() {
					t.Errorf("condition %s has no time", c.Type)
				}
			}
		})
	}
}

func TestStatusApply(t *testing.T) {
	root := mirrortest.NewRootPod(corev1.PodSpec{})
	root.Status.Reason = "SomebodySaid"
	root.Status.Message = "this"
	got := PodStatusApplyBody(root, corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Message:    "m",
		Conditions: []corev1.PodCondition{cond(corev1.PodReady, "True", 0)},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", RestartCount: 2,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
		}},
	})
	want := map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"namespace": "shop", "name": "web", "uid": "pod-uid"},
		"status": map[string]any{
			"phase":   "Running",
			"message": "m",
			"reason":  "",
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z",
			}},
			"containerStatuses": []any{map[string]any{
				"name": "web", "restartCount": int64(2), "ready": false, "image": "", "imageID": "",
				"lastState": map[string]any{},
				"state":     map[string]any{"terminated": map[string]any{"exitCode": int64(1)}},
			}},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A hostile member may report anything, of any size. The mirrored status is small and sanitized,
// and the host's API server accepts it (I8).
func TestHostilePodStatus(t *testing.T) {
	root := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	anyAddress := mirror.Member{PodCIDRs: mirror.AllPodCIDRs}
	huge := strings.Repeat("x", 1<<20) + "\x1b[31m\xff"
	leaf := root.DeepCopy()
	leaf.Status = corev1.PodStatus{
		Phase: "Pwned", Message: huge, Reason: huge, HostIP: huge,
		PodIPs: []corev1.PodIP{{IP: huge}, {IP: "10.0.0.1"}, {IP: "10.0.0.1"}},
	}
	mounts := make([]corev1.VolumeMountStatus, 10_000)
	for i := range mounts {
		mounts[i] = corev1.VolumeMountStatus{Name: huge, MountPath: "/" + strings.Repeat("m", i%500)}
	}
	for i := range 10_000 {
		if i == 1 {
			mounts = nil
		}
		leaf.Status.Conditions = append(leaf.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: huge})
		leaf.Status.ContainerStatuses = append(leaf.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: "main", Image: huge, ImageID: huge, ContainerID: huge, VolumeMounts: mounts,
			State:              corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: huge, Reason: huge}},
			AllocatedResources: corev1.ResourceList{corev1.ResourceName(huge): resource.MustParse("1")},
		})
	}
	got := TranslatePodStatus(root, leaf, anyAddress)
	if got.Phase != corev1.PodUnknown || len(got.Conditions) != 1 || len(got.ContainerStatuses) != 1 || len(got.PodIPs) != 1 {
		t.Errorf("phase %s, %d conditions, %d statuses, %d addresses; want Unknown and one of each", got.Phase, len(got.Conditions), len(got.ContainerStatuses), len(got.PodIPs))
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 2*StatusLimit || got.Size() > StatusLimit || strings.Contains(string(raw), `\u001b`) {
		t.Errorf("the status has %d bytes as JSON, and exceeds a limit or contains an escape sequence", len(raw))
	}
	if len(got.ContainerStatuses[0].AllocatedResources) != 0 {
		t.Error("the status has a resource with an invalid name")
	}
	if !IsPodStatusCurrent(&corev1.Pod{Spec: root.Spec, Status: got}, got) {
		t.Error("the second result differs, so Xylem would write the status repeatedly")
	}
}
