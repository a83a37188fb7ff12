package timeline

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// StepName is the name of a step. The names must not change, because the output of `kubectl xylem why` contains them.
type StepName string

// The steps, in order.
const (
	// Selected lasts from the claim's creation until the scheduler selects a node for it. If the
	// scheduler selects nodes repeatedly, the last time counts. Claims that do not wait for a Pod
	// lack this step.
	Selected StepName = "selected"
	// Placed lasts until Xylem records the member on the claim.
	Placed StepName = "placed"
	// LeafCreated lasts until Xylem creates the leaf claim.
	LeafCreated StepName = "leaf-created"
	// Provisioned lasts until the member's provisioner creates the leaf PV.
	Provisioned StepName = "provisioned"
	// Mirrored lasts until Xylem creates the host PV.
	Mirrored StepName = "mirrored"
	// Bound lasts until the host's PV controller binds the claim to the host PV.
	Bound StepName = "bound"
	// PodBound lasts from when the claim is bound, or the Pod is created if that is later, until the
	// scheduler binds the Pod.
	PodBound StepName = "pod-bound"
	// PodRunning lasts until all of the Pod's containers have started.
	PodRunning StepName = "pod-running"
)

// Side is the cluster in which a step takes place.
type Side string

// Sides.
const (
	Host   Side = "host"
	Member Side = "member"
)

// Objects contains the objects for one claim. A nil field means that the object does not exist or
// was not read.
type Objects struct {
	// Claim, Volume and Pod are the claim, its volume, and a Pod that uses it, in the host.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	Pod    *corev1.Pod
	// LeafClaim and LeafVolume are their counterparts in the member.
	LeafClaim  *corev1.PersistentVolumeClaim
	LeafVolume *corev1.PersistentVolume
}

// Step is one step of a claim, with its start and end.
type Step struct {
	Name StepName `json:"name"`
	// Side is the cluster that the step waits for.
	Side Side `json:"side"`
	// Start and End have a resolution of one second.
	Start metav1.Time `json:"start"`
	End   metav1.Time `json:"end"`
}

// Duration returns the duration of the step.
func (s Step) Duration() time.Duration { return s.End.Sub(s.Start.Time) }

// StepsOfClaim returns a claim's known steps, in order.
func StepsOfClaim(o Objects) []Step {
	if o.Claim == nil {
		return nil
	}
	created, leafCreated := o.Claim.CreationTimestamp.Time, creationTimeOf(o.LeafClaim)
	placed := timeUnlessAfter(AnnotationWrittenAt(o.Claim, v1alpha1.AnnotationPlacedIn), leafCreated)
	selected := timeUnlessAfter(AnnotationWrittenAt(o.Claim, storagehelpers.AnnSelectedNode), placed, leafCreated)
	// Without selected-node, Xylem places the claim as soon as it exists.
	placing := selected
	if o.Claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
		placing = created
	}
	provisioned, mirrored, bound := creationTimeOf(o.LeafVolume), creationTimeOf(o.Volume), volumeBoundAt(o.Volume)
	var podBound, running, scheduling time.Time
	if o.Pod != nil {
		podBound, running = podScheduledAt(o.Pod), podRunningSince(o.Pod)
		scheduling = bound
		if at := o.Pod.CreationTimestamp.Time; !bound.IsZero() && at.After(bound) {
			scheduling = at
		}
	}
	var steps []Step
	for _, s := range []struct {
		name       StepName
		side       Side
		start, end time.Time
	}{
		{Selected, Host, created, selected},
		{Placed, Host, placing, placed},
		{LeafCreated, Host, placed, leafCreated},
		{Provisioned, Member, leafCreated, provisioned},
		{Mirrored, Host, provisioned, mirrored},
		{Bound, Host, mirrored, bound},
		{PodBound, Host, scheduling, podBound},
		{PodRunning, Member, podBound, running},
	} {
		if s.start.IsZero() || s.end.IsZero() || s.end.Before(s.start) || s.start.Before(created) {
			continue
		}
		steps = append(steps, Step{s.name, s.side, metav1.NewTime(s.start), metav1.NewTime(s.end)})
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.Start.Compare(b.Start.Time) })
	return steps
}

// OldestPod returns the Pod whose steps count for the claim: the oldest one.
func OldestPod(pods []*corev1.Pod) *corev1.Pod {
	var first *corev1.Pod
	for _, pod := range pods {
		if pod != nil && (first == nil || pod.CreationTimestamp.Before(&first.CreationTimestamp)) {
			first = pod
		}
	}
	return first
}

func creationTimeOf[T any, P interface {
	*T
	metav1.Object
}](object P) time.Time {
	if object == nil {
		return time.Time{}
	}
	return object.GetCreationTimestamp().Time
}

// timeUnlessAfter drops a time from managedFields that is later than a step that must have followed. In
// that case, the same manager has written other fields since then.
func timeUnlessAfter(at time.Time, following ...time.Time) time.Time {
	for _, next := range following {
		if !next.IsZero() && at.After(next) {
			return time.Time{}
		}
	}
	return at
}

// AnnotationWrittenAt returns when an annotation was written, according to the claim's managedFields. It
// returns zero if the time is unknown.
func AnnotationWrittenAt(claim *corev1.PersistentVolumeClaim, annotation string) time.Time {
	var at time.Time
	for _, entry := range claim.ManagedFields {
		if entry.Time == nil || entry.Subresource != "" || !WroteAnnotation(entry, annotation) {
			continue
		}
		if at.IsZero() || entry.Time.Time.Before(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// WroteAnnotation reports whether the manager of an entry of managedFields wrote an annotation last.
func WroteAnnotation(entry metav1.ManagedFieldsEntry, annotation string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, owns := fields.Metadata.Annotations["f:"+annotation]
	return owns
}

// volumeBoundAt returns when the volume became Bound.
func volumeBoundAt(pv *corev1.PersistentVolume) time.Time {
	if pv == nil || pv.Status.Phase != corev1.VolumeBound || pv.Status.LastPhaseTransitionTime == nil {
		return time.Time{}
	}
	return pv.Status.LastPhaseTransitionTime.Time
}

func podScheduledAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// podRunningSince returns when the Pod's last container started. It returns zero if a container has
// not started, or has restarted, because its first start is then unknown.
func podRunningSince(pod *corev1.Pod) time.Time {
	var last time.Time
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		return last
	}
	for _, c := range pod.Status.ContainerStatuses {
		var started time.Time
		switch {
		case c.RestartCount > 0:
		case c.State.Running != nil:
			started = c.State.Running.StartedAt.Time
		case c.State.Terminated != nil:
			started = c.State.Terminated.StartedAt.Time
		}
		if started.IsZero() {
			return time.Time{}
		}
		if started.After(last) {
			last = started
		}
	}
	return last
}
