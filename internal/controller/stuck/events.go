package stuck

import (
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// eventNotice is an event about a stuck deletion.
type eventNotice struct {
	object client.Object
	cause  account.DeletionCause
	text   string
}

// eventNotices returns the events about a stuck deletion in a member: on the deleted object in the host,
// on the VolumeSnapshot of a deleted content, and on the object that waits for the deletion.
func (c *candidate) eventNotices(member string) []eventNotice {
	since := c.Since.UTC().Format(time.RFC3339)
	var all []eventNotice
	if c.object != nil {
		all = append(all, eventNotice{c.object, c.Cause, fmt.Sprintf("the deletion has been in progress since %s: %s", since, c.Cause.Text)})
	}
	if content, ok := c.object.(*snapshotv1.VolumeSnapshotContent); ok && content.Spec.VolumeSnapshotRef.UID != "" {
		all = append(all, eventNotice{snapshotOfContent(content), c.Cause, fmt.Sprintf("the deletion of VolumeSnapshotContent %q has been in progress since %s: %s", content.Name, since, c.Cause.Text)})
	}
	if c.waitingObject == nil {
		return all
	}
	kind, _, _ := c.remainingLeaf()
	what := "an earlier " + kind + " with this name"
	if c.createdForWaiting {
		what = "this " + kind + "'s counterpart"
	}
	return append(all, eventNotice{c.waitingObject, c.Cause, fmt.Sprintf("member %q still has %s, whose deletion has been in progress since %s: %s", member, what, since, c.Cause.Text)})
}

// snapshotOfContent returns the VolumeSnapshot that a content belongs to, as far as an event needs it.
func snapshotOfContent(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshot {
	ref := content.Spec.VolumeSnapshotRef
	return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
}

// emitStuckDeletion uses the kind of the cause as the event's action, because events that differ only in
// their note count as one.
func (w *Watcher) emitStuckDeletion(n eventNotice) {
	w.Recorder.Eventf(n.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonStuckDeletion, n.cause.Kind, "%s", n.text)
}
