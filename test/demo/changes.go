package main

import (
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// annotationSelectedNode is the annotation with the node that the scheduler selected for a claim's
// first consumer.
const annotationSelectedNode = "volume.kubernetes.io/selected-node"

// event is the kind of a change. The demo measures the times between events.
type event string

// Events that the demo measures. other is any other change.
const (
	created event = "created"
	bound   event = "bound"
	running event = "running"
	gone    event = "gone"
	other   event = ""
)

// change is a change to an object. The timeline shows minor changes only in detailed scenes.
type change struct {
	event event
	text  string
	minor bool
}

// changeList collects the changes between two states of an object.
type changeList []change

func (l *changeList) add(e event, format string, args ...any) {
	*l = append(*l, change{event: e, text: fmt.Sprintf(format, args...)})
}

// detail adds a minor change.
func (l *changeList) detail(e event, format string, args ...any) {
	*l = append(*l, change{event: e, text: fmt.Sprintf(format, args...), minor: true})
}

// differ adds a change if a field's value was changed or removed.
func (l *changeList) differ(what, field, old, now string, minor bool) {
	switch {
	case old == now:
		return
	case now == "":
		l.add(other, "%s %s %s removed", what, field, old)
	case minor:
		l.detail(other, "%s %s %s", what, field, now)
	default:
		l.add(other, "%s %s %s", what, field, now)
	}
}

// claimChanges returns the changes to a claim. old is nil for a new claim. names maps the clusters'
// IDs to their names. The steps of a member's own scheduler are omitted.
func claimChanges(old, now *corev1.PersistentVolumeClaim, names map[string]string, host bool) []change {
	var l changeList
	what := "claim " + now.Name
	if old == nil {
		l.detail(created, "%s created", what)
		old = &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		old.Spec.Resources.Requests = now.Spec.Resources.Requests
	}
	if request := now.Spec.Resources.Requests.Storage(); request.Cmp(*old.Spec.Resources.Requests.Storage()) != 0 {
		l.add(other, "%s requests %s", what, request)
	}
	if host {
		l.differ(what, "selected-node", old.Annotations[annotationSelectedNode], now.Annotations[annotationSelectedNode], true)
	}
	l.differ(what, "placed-in",
		member(names, old.Annotations[v1alpha1.AnnotationPlacedIn]), member(names, now.Annotations[v1alpha1.AnnotationPlacedIn]), false)
	if blocked := claimBlocked(now); blocked != claimBlocked(old) && blocked != "" {
		l.add(other, "%s cannot be pushed: %s", what, blocked)
	}
	if stands := promiseOf(now); stands != promiseOf(old) && stands != "" {
		l.add(other, "%s: promise %s", what, stands)
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
		l.detail(other, "%s deleting", what)
	}
	return l
}

// member returns the name of a cluster, or its ID if the name is unknown.
func member(names map[string]string, id string) string {
	if name, ok := names[id]; ok {
		return name
	}
	return id
}

// claimBlocked returns why a claim is not pushed, or "".
func claimBlocked(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPlaced && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// promiseOf returns the state of a claim's promise, or "".
func promiseOf(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPromise {
			return c.Reason
		}
	}
	return ""
}

// podChanges returns the changes to a Pod. old is nil for a new Pod.
func podChanges(old, now *corev1.Pod) []change {
	var l changeList
	what := "Pod " + shortPod(now)
	if old == nil {
		l.detail(created, "%s created", what)
		old = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	}
	if old.Spec.NodeName == "" && now.Spec.NodeName != "" {
		l.detail(other, "%s on %s", what, now.Spec.NodeName)
	}
	switch {
	case now.Status.Phase == old.Status.Phase:
	case now.Status.Phase == corev1.PodRunning:
		l.add(running, "%s RUNNING", what)
	case now.Status.Phase != "":
		l.detail(other, "%s %s %s", what, now.Status.Phase, now.Status.Reason)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		l.detail(other, "%s deleting", what)
	}
	return l
}

// shortPod returns the name of a Deployment's Pod without the template's hash.
func shortPod(pod *corev1.Pod) string {
	hash := pod.Labels["pod-template-hash"]
	if before, after, found := strings.Cut(pod.Name, "-"+hash+"-"); hash != "" && found {
		return before + "…" + after
	}
	return pod.Name
}

// volumeChanges returns the changes to a volume. old is nil for a new volume.
func volumeChanges(old, now *corev1.PersistentVolume) []change {
	var l changeList
	what := "volume " + shortVolume(now.Name)
	if old == nil {
		l.detail(created, "%s created", what)
		old = &corev1.PersistentVolume{Spec: *now.Spec.DeepCopy()}
		old.Labels = nil
	}
	stamped := now.Labels[v1alpha1.LabelHost] != "" && old.Labels[v1alpha1.LabelHost] == ""
	policy := now.Spec.PersistentVolumeReclaimPolicy != old.Spec.PersistentVolumeReclaimPolicy
	switch {
	case stamped:
		l.detail(other, "%s stamped, %s", what, now.Spec.PersistentVolumeReclaimPolicy)
	case policy:
		l.add(other, "%s policy %s", what, now.Spec.PersistentVolumeReclaimPolicy)
	}
	if capacity := now.Spec.Capacity.Storage(); capacity.Cmp(*old.Spec.Capacity.Storage()) != 0 {
		l.add(other, "%s has %s", what, capacity)
	}
	if now.Status.Phase != old.Status.Phase && now.Status.Phase == corev1.VolumeReleased {
		l.detail(other, "%s Released", what)
	}
	return l
}

// shortVolume shortens the UID in the name of a volume.
func shortVolume(name string) string {
	const keep = len("ad86ef86")
	if uid, found := strings.CutPrefix(name, "pvc-"); found && len(uid) > keep {
		return uid[:keep] + "…"
	}
	return name
}

// snapshotChanges returns the changes to a VolumeSnapshot. old is nil for a new VolumeSnapshot.
func snapshotChanges(old, now *snapshotv1.VolumeSnapshot) []change {
	var l changeList
	what := "snapshot " + now.Name
	if old == nil {
		l.detail(created, "%s created", what)
		old = &snapshotv1.VolumeSnapshot{}
	}
	if fails := snapshotFails(now); fails != snapshotFails(old) && fails != "" {
		l.add(other, "%s: %s", what, fails)
	}
	if isReady(now) && !isReady(old) {
		l.add(bound, "%s READY, %s", what, now.Status.RestoreSize)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		l.detail(other, "%s deleting", what)
	}
	return l
}

// isReady reports whether a snapshot can be restored.
func isReady(s *snapshotv1.VolumeSnapshot) bool {
	return s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false)
}

// snapshotFails returns the error in a VolumeSnapshot's status, or "".
func snapshotFails(s *snapshotv1.VolumeSnapshot) string {
	if s.Status == nil || s.Status.Error == nil {
		return ""
	}
	return ptr.Deref(s.Status.Error.Message, "")
}

// diskChange returns the change for a call to the CSI driver.
func diskChange(e ledger.Entry) change {
	disk := "disk of " + e.ClaimName
	size := resource.NewQuantity(e.CapacityBytes, resource.BinarySI)
	switch {
	case e.Code != ledger.OK:
		return change{text: fmt.Sprintf("%s: %s failed: %s", disk, e.Method, e.Message)}
	case e.Repeated:
		return change{text: fmt.Sprintf("%s: %s repeated", disk, e.Method)}
	case e.Method == ledger.CreateSnapshot:
		return change{text: "snapshot of " + disk + " CREATED"}
	case e.Method == ledger.DeleteSnapshot:
		return change{event: gone, text: "snapshot of " + disk + " DELETED"}
	case e.Method == ledger.CreateVolume && e.Source != "":
		return change{event: created, text: fmt.Sprintf("%s CREATED from its source, %s", disk, size)}
	case e.Method == ledger.CreateVolume:
		return change{event: created, text: fmt.Sprintf("%s CREATED, %s", disk, size)}
	case e.Method == ledger.ExpandVolume:
		return change{text: fmt.Sprintf("%s EXPANDED to %s", disk, size)}
	case e.Method == ledger.DeleteVolume:
		return change{event: gone, text: disk + " DELETED"}
	default:
		return change{text: fmt.Sprintf("%s: %s", disk, e.Method)}
	}
}
