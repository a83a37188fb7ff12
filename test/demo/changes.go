package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// annotationSelectedNode is where the scheduler says which node a claim's first
// consumer goes to.
const annotationSelectedNode = "volume.kubernetes.io/selected-node"

// event is what kind of change it was that somebody may want to find again.
type event string

// Events that times are taken from.
const (
	created event = "created"
	bound   event = "bound"
	running event = "running"
	gone    event = "gone"
	other   event = ""
)

// change is one thing worth a line that happened to an object.
type change struct {
	event event
	text  string
}

// changeList collects the changes between two states of an object.
type changeList []change

func (l *changeList) add(e event, format string, args ...any) {
	*l = append(*l, change{e, fmt.Sprintf(format, args...)})
}

// differ adds a line when a value became another one; gone values get the second format.
func (l *changeList) differ(old, now, appeared, vanished string) {
	switch {
	case old == now:
	case now == "":
		l.add(other, "%s", fmt.Sprintf(vanished, old))
	default:
		l.add(other, "%s", fmt.Sprintf(appeared, now))
	}
}

// claimChanges returns what happened to a claim; old is nil for a new one. names
// are the clusters' by their ID.
func claimChanges(old, now *corev1.PersistentVolumeClaim, names map[string]string) []change {
	var l changeList
	what := "claim " + now.Name
	if old == nil {
		l.add(created, "%s created", what)
		old = &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		old.Spec.Resources.Requests = now.Spec.Resources.Requests
	}
	if request := now.Spec.Resources.Requests.Storage(); request.Cmp(*old.Spec.Resources.Requests.Storage()) != 0 {
		l.add(other, "%s asks for %s", what, request)
	}
	l.differ(old.Annotations[annotationSelectedNode], now.Annotations[annotationSelectedNode],
		what+" selected-node %s", what+" selected-node %s removed")
	l.differ(member(names, old.Annotations[v1alpha1.AnnotationPlacedIn]), member(names, now.Annotations[v1alpha1.AnnotationPlacedIn]),
		what+" placed-in %s", what+" placed-in %s removed")
	if blocked := claimBlocked(now); blocked != claimBlocked(old) && blocked != "" {
		l.add(other, "%s cannot be pushed: %s", what, blocked)
	}
	capacity := now.Status.Capacity.Storage()
	switch {
	case now.Status.Phase != old.Status.Phase && now.Status.Phase == corev1.ClaimBound:
		l.add(bound, "%s BOUND", what)
	case now.Status.Phase != old.Status.Phase && now.Status.Phase != "":
		l.add(other, "%s %s", what, now.Status.Phase)
	case !capacity.IsZero() && capacity.Cmp(*old.Status.Capacity.Storage()) != 0:
		l.add(other, "%s has %s", what, capacity)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		l.add(other, "%s to be deleted", what)
	}
	return l
}

// member is the name of a cluster, or its ID if that is nobody's.
func member(names map[string]string, id string) string {
	if name, ok := names[id]; ok {
		return name
	}
	return id
}

// claimBlocked is why a claim is not pushed, if it is not.
func claimBlocked(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPlaced && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// podChanges returns what happened to a Pod; old is nil for a new one.
func podChanges(old, now *corev1.Pod) []change {
	var l changeList
	what := "Pod " + shortPod(now)
	if old == nil {
		l.add(created, "%s created", what)
		old = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	}
	l.differ(old.Status.NominatedNodeName, now.Status.NominatedNodeName, what+" nominated for %s", "")
	l.differ(old.Spec.NodeName, now.Spec.NodeName, what+" on %s", "")
	switch {
	case now.Status.Phase == old.Status.Phase:
	case now.Status.Phase == corev1.PodRunning:
		l.add(running, "%s RUNNING, %s", what, now.Status.PodIP)
	case now.Status.Phase != "":
		l.add(other, "%s %s %s", what, now.Status.Phase, now.Status.Reason)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		l.add(other, "%s to be deleted", what)
	}
	return l
}

// shortPod leaves the template's hash out of the name of a Deployment's Pod.
func shortPod(pod *corev1.Pod) string {
	hash := pod.Labels["pod-template-hash"]
	if before, after, found := strings.Cut(pod.Name, "-"+hash+"-"); hash != "" && found {
		return before + "-…-" + after
	}
	return pod.Name
}

// volumeChanges returns what happened to a volume; old is nil for a new one.
func volumeChanges(old, now *corev1.PersistentVolume) []change {
	var l changeList
	what := "volume " + shortVolume(now.Name)
	if old == nil {
		l.add(created, "%s created (%s)", what, now.Spec.PersistentVolumeReclaimPolicy)
		old = &corev1.PersistentVolume{Spec: *now.Spec.DeepCopy()}
		old.Labels = nil
	}
	stamped := now.Labels[v1alpha1.LabelHost] != "" && old.Labels[v1alpha1.LabelHost] == ""
	policy := now.Spec.PersistentVolumeReclaimPolicy != old.Spec.PersistentVolumeReclaimPolicy
	switch {
	case stamped:
		l.add(other, "%s stamped, %s", what, now.Spec.PersistentVolumeReclaimPolicy)
	case policy:
		l.add(other, "%s policy %s", what, now.Spec.PersistentVolumeReclaimPolicy)
	}
	if capacity := now.Spec.Capacity.Storage(); capacity.Cmp(*old.Spec.Capacity.Storage()) != 0 {
		l.add(other, "%s has %s", what, capacity)
	}
	if now.Status.Phase != old.Status.Phase && now.Status.Phase == corev1.VolumeReleased {
		l.add(other, "%s Released", what)
	}
	return l
}

// shortVolume cuts the UID in the name of a volume.
func shortVolume(name string) string {
	const keep = len("pvc-ad86ef86")
	if strings.HasPrefix(name, "pvc-") && len(name) > keep {
		return name[:keep] + "…"
	}
	return name
}

// diskChange returns the line of a call to the CSI driver.
func diskChange(e ledger.Entry) change {
	disk := "disk of " + e.ClaimName
	size := resource.NewQuantity(e.CapacityBytes, resource.BinarySI)
	switch {
	case e.Code != ledger.OK:
		return change{other, fmt.Sprintf("%s: %s failed: %s", disk, e.Method, e.Message)}
	case e.Repeated:
		return change{other, fmt.Sprintf("%s: %s asked again", disk, e.Method)}
	case e.Method == ledger.CreateVolume:
		return change{created, fmt.Sprintf("%s MADE, %s", disk, size)}
	case e.Method == ledger.ExpandVolume:
		return change{other, fmt.Sprintf("%s GROWN to %s", disk, size)}
	case e.Method == ledger.DeleteVolume:
		return change{gone, disk + " REMOVED"}
	default:
		return change{other, fmt.Sprintf("%s: %s", disk, e.Method)}
	}
}
