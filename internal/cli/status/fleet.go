package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// Kind is the kind, in model.APIVersion, of the object that -o json and -o yaml print. Within a
// version, fields are added but never renamed or removed.
const Kind = "FleetStatus"

// Fleet contains the state of all members.
type Fleet struct {
	metav1.TypeMeta `json:",inline"`
	// Leaderless explains why no manager is the leader, so that the members' states may be outdated. It
	// is empty if a manager is the leader, or if this is not known.
	Leaderless string   `json:"leaderless,omitempty"`
	Members    []Member `json:"members"`
	// Pods lists the Pods that wait because of Xylem or a member, oldest first.
	Pods []Pod `json:"pods,omitempty"`
	// Provisioned counts volumes that still exist, by the creation time of their PersistentVolumes in the
	// host.
	Provisioned Throughput `json:"provisioned"`
	// Missing lists what could not be read.
	Missing []inspect.Missing `json:"missing,omitempty"`
}

// DeepCopyObject makes a Fleet a runtime.Object for kubectl's printers. A Fleet never changes,
// so copies may share their contents.
func (f *Fleet) DeepCopyObject() runtime.Object {
	shared := *f
	return &shared
}

// Member is the state of one registration.
type Member struct {
	Name string `json:"name"`
	// Ready is the status of the registration's condition Ready, and Reason is its reason.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason"`
	// Version is the member's Kubernetes version.
	Version string `json:"version,omitempty"`
	Node    string `json:"node"`
	// Nodes and NodesReady count the virtual nodes of a member with spec.nodes. Node is then the last part of their names.
	Nodes      int                   `json:"nodes,omitempty"`
	NodesReady int                   `json:"nodesReady,omitempty"`
	Volumes    v1alpha1.VolumeCounts `json:"volumes"`
	// TokenExpires is when the manager's token expires. It is not set for other credentials.
	TokenExpires *metav1.Time `json:"tokenExpires,omitempty"`
	Created      metav1.Time  `json:"created"`
	// Problems are the conditions that an admin must check.
	Problems []inspect.Condition `json:"problems,omitempty"`

	hasGroups bool
	nodeNames []string
}

// Pod is a waiting Pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reason and Message are from Xylem's condition.
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Since   metav1.Time `json:"since"`
}

// Throughput counts the volumes that were created within each period.
type Throughput struct {
	TenMinutes int `json:"tenMinutes"`
	Hour       int `json:"hour"`
	Day        int `json:"day"`
}

// countVolume adds a volume of the given age.
func (t *Throughput) countVolume(age time.Duration) {
	const day = 24 * time.Hour
	if age <= 10*time.Minute {
		t.TenMinutes++
	}
	if age <= time.Hour {
		t.Hour++
	}
	if age <= day {
		t.Day++
	}
}

// memberOfRegistration returns the printed state of a registration.
func memberOfRegistration(r *v1alpha1.ClusterRegistration) Member {
	m := Member{
		Name: r.Name, Node: r.NodeName(), nodeNames: []string{r.NodeName()}, hasGroups: len(r.Spec.Nodes) > 0, Version: inspect.Plain(r.Status.KubernetesVersion), Volumes: r.Status.Volumes,
		TokenExpires: r.Status.TokenExpires, Created: r.CreationTimestamp, Reason: string(metav1.ConditionUnknown),
	}
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil {
		m.Ready, m.Reason = ready.Status == metav1.ConditionTrue, inspect.Plain(ready.Reason)
	}
	m.Problems = inspect.RegistrationProblems(r)
	return m
}

// waitingPod returns the printed state of a Pod, and false if Xylem reports nothing about it.
func waitingPod(pod *corev1.Pod) (Pod, bool) {
	for _, c := range pod.Status.Conditions {
		ours := c.Type == v1alpha1.PodPlaceable || c.Type == v1alpha1.PodPushed || c.Type == v1alpha1.PodAPIAccess || c.Type == corev1.PodReady && c.Reason == v1alpha1.ReasonMemberAway
		if ours && c.Status == corev1.ConditionFalse {
			return Pod{pod.Namespace, pod.Name, inspect.Plain(c.Reason), inspect.Plain(c.Message), c.LastTransitionTime}, true
		}
	}
	return Pod{}, false
}

// sortByAge sorts the Pods by age, oldest first.
func sortByAge(pods []Pod) {
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
