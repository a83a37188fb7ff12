package why

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// memberOfSnapshot returns the cluster ID of the member that has a snapshot, or "".
func memberOfSnapshot(s *inspect.SnapshotFacts) string {
	if s.Content == nil {
		return ""
	}
	return snapshot.ContentPlacedIn(s.Content)
}

// snapshot adds the error in a snapshot's status. It has no reason, so the reason is that of the event
// with the same message.
func (w *walk) snapshot(n *inspect.Node) {
	s := w.facts.Snapshot.Snapshot
	if s.Status == nil || s.Status.Error == nil {
		return
	}
	message, reason := inspect.Plain(ptr.Deref(s.Status.Error.Message, "")), ""
	for i := range n.Events {
		if n.Events[i].Message == message {
			reason = n.Events[i].Reason
		}
	}
	w.addCause(n, stageVolume, cmp.Or(reason, inspect.SnapshotFailed), message, ptr.Deref(s.Status.Error.Time, metav1.Time{}))
}

// describeSnapshotWait returns what a snapshot waits for and what the user can do.
func (w *walk) describeSnapshotWait(s *inspect.SnapshotFacts) (waits, toDo string) {
	for i := range w.facts.Claims {
		if c := w.facts.Claims[i].Claim; c != nil && c.Status.Phase != corev1.ClaimBound {
			return fmt.Sprintf("claim %q is not bound yet", c.Name), fmt.Sprintf("Run `kubectl xylem why pvc %s -n %s`.", c.Name, c.Namespace)
		}
	}
	switch id := memberOfSnapshot(s); {
	case s.Snapshot.Status == nil || ptr.Deref(s.Snapshot.Status.BoundVolumeSnapshotContentName, "") == "":
		return "the snapshot-controller has not created a VolumeSnapshotContent yet", "Check that the host's snapshot-controller runs, and that the snapshot's class exists."
	case s.Content == nil:
		return fmt.Sprintf("the state of VolumeSnapshotContent %q could not be read", *s.Snapshot.Status.BoundVolumeSnapshotContentName), "Ask an admin to run this command, because only admins can read VolumeSnapshotContents."
	case s.Content.Spec.Driver != v1alpha1.ProvisionerName:
		return fmt.Sprintf("driver %q has not taken the snapshot yet", inspect.Plain(s.Content.Spec.Driver)), ""
	case id == "":
		return "the snapshot has not been sent to the member of its claim yet", ""
	default:
		return "the snapshot has not been taken" + w.describeMember(id) + " yet", ""
	}
}
