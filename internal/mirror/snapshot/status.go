package snapshot

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// errorLimit is the maximum length, in bytes, of an error message in a status.
const errorLimit = 4096

// HostSnapshotHandle returns the handle for the host content's status.
func HostSnapshotHandle(clusterID, leaf string) string { return clusterID + "/" + leaf }

// MirroredStatus returns the status of a host content, mirrored from its leaf content.
func MirroredStatus(content, leaf *snapshotv1.VolumeSnapshotContent, m mirror.Member) *snapshotv1.VolumeSnapshotContentStatus {
	reported := leaf.Status
	if reported == nil {
		reported = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	handle := SnapshotHandleOf(leaf)
	status := &snapshotv1.VolumeSnapshotContentStatus{
		CreationTime: fields.ClonePointer(reported.CreationTime),
		RestoreSize:  fields.ClonePointer(reported.RestoreSize),
		ReadyToUse:   ptr.To(handle != "" && ptr.Deref(reported.ReadyToUse, false)),
	}
	if status.RestoreSize != nil && *status.RestoreSize < 0 {
		status.RestoreSize = nil
	}
	if handle != "" {
		status.SnapshotHandle = ptr.To(HostSnapshotHandle(m.ClusterID, leaf.Name))
	}
	if reported.Error != nil {
		status.Error = plainError(reported.Error)
	}
	if content.Status == nil && handle == "" && status.Error == nil {
		return nil
	}
	return status
}

// StatusWithoutContent returns the status of a host content whose leaf has no content yet. It contains the
// error that the member's snapshot-controller reports on the leaf.
func StatusWithoutContent(content *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContentStatus {
	status := WaitingStatus(content)
	if leaf.Status == nil || leaf.Status.Error == nil {
		return status
	}
	if status == nil {
		status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	status.ReadyToUse, status.Error = ptr.To(false), plainError(leaf.Status.Error)
	return status
}

func plainError(reported *snapshotv1.VolumeSnapshotError) *snapshotv1.VolumeSnapshotError {
	return &snapshotv1.VolumeSnapshotError{Time: reported.Time.DeepCopy(), Message: ptr.To(mirror.PlainText(ptr.Deref(reported.Message, ""), errorLimit))}
}

// FailedStatus returns the status of a host content with a problem. It sets readyToUse to false,
// and keeps the other fields, and the time when the same message was first reported.
func FailedStatus(content *snapshotv1.VolumeSnapshotContent, problem *mirror.Refusal, now time.Time) *snapshotv1.VolumeSnapshotContentStatus {
	status := &snapshotv1.VolumeSnapshotContentStatus{}
	if content.Status != nil {
		status = content.Status.DeepCopy()
	}
	message := mirror.PlainText(problem.Message, errorLimit)
	if status.Error == nil || ptr.Deref(status.Error.Message, "") != message {
		status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.NewTime(now).Rfc3339Copy()), Message: &message}
	}
	status.ReadyToUse = ptr.To(false)
	return status
}

// WaitingStatus returns the status of a host content that has nothing in the member yet.
func WaitingStatus(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContentStatus {
	if content.Status == nil {
		return nil
	}
	status := content.Status.DeepCopy()
	status.Error = nil
	return status
}
