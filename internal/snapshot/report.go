package snapshot

import (
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/news"
)

// ResolveSource returns the cluster that has a host content's volume, or why Xylem can't take the
// snapshot. The snapshot-controller copies the driver from the class and the handle from the
// claim's volume, but does not check that they match. So ResolveSource does not trust the content alone:
// the VolumeSnapshot's claim must be bound to a member's volume with the content's handle.
func ResolveSource(content *snapshotv1.VolumeSnapshotContent, root *snapshotv1.VolumeSnapshot, source SnapshotSource) (clusterID string, problem *mirror.Refusal) {
	invalid := func(format string, args ...any) (string, *mirror.Refusal) {
		return "", mirror.NewRefusal(v1alpha1.ReasonSnapshotSourceInvalid, format, args...)
	}
	notReady := func(format string, args ...any) (string, *mirror.Refusal) {
		return "", mirror.NewRefusal(v1alpha1.ReasonSnapshotSourceNotReady, format, args...)
	}
	if content.Spec.Source.VolumeHandle == nil || IsContentRenamed(content) {
		return invalid("the snapshot-controller did not create VolumeSnapshotContent %q: Xylem takes snapshots of claims, and does not import snapshots. Create a VolumeSnapshot with source.persistentVolumeClaimName. To use a snapshot that a member retains, restore it in the member", content.Name)
	}
	claimName := SourceClaimKey(root)
	if root == nil {
		return notReady("VolumeSnapshot %q, for which VolumeSnapshotContent %q was created, no longer exists. Delete the content", mirrorsnapshot.RootSnapshotKey(content), content.Name)
	}
	claim, volume := source.Claim, source.Volume
	switch {
	case claimName.Name == "":
		return invalid("VolumeSnapshot %q has no source.persistentVolumeClaimName. Create a VolumeSnapshot of a claim", root.Name)
	case claim == nil:
		return notReady("claim %q no longer exists. Delete the snapshot", claimName.Name)
	case claim.Spec.VolumeName == "":
		return notReady("claim %q is not bound. Start a Pod that uses it", claimName.Name)
	case volume == nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID:
		return notReady("claim %q and PersistentVolume %q are not bound to each other. Check `kubectl describe pvc %s`", claimName.Name, claim.Spec.VolumeName, claimName.Name)
	case volume.Spec.CSI == nil || volume.Spec.CSI.VolumeHandle != *content.Spec.Source.VolumeHandle:
		return invalid("the source of VolumeSnapshotContent %q is not PersistentVolume %q, to which claim %q is bound. Delete the snapshot and create it again", content.Name, volume.Name, claimName.Name)
	}
	cluster, _, _, ours := hostpv.LeafOfHostVolume(volume)
	switch {
	case ours:
		return cluster, nil
	case hostpv.IsUnfulfilledPromise(volume):
		return notReady("claim %q has no disk yet: PersistentVolume %q is a promise. Start a Pod that uses the claim", claimName.Name, volume.Name)
	}
	return invalid("PersistentVolume %q of claim %q has driver %q, but VolumeSnapshotClass %q has driver %q. Use a VolumeSnapshotClass with the volume's driver",
		volume.Name, claimName.Name, volumeDriverOf(volume), ptr.Deref(content.Spec.VolumeSnapshotClassName, ""), content.Spec.Driver)
}

// DriverMismatch returns why no program takes the snapshot of a content with another driver, or nil:
// its source is a volume in a member, but the class in the host has the member's driver.
func DriverMismatch(content *snapshotv1.VolumeSnapshotContent, root *snapshotv1.VolumeSnapshot, source SnapshotSource) *mirror.Refusal {
	volume := source.Volume
	if root == nil || volume == nil || volumeDriverOf(volume) != v1alpha1.ProvisionerName && !hostpv.IsPromise(volume) ||
		ptr.Deref(content.Spec.Source.VolumeHandle, "") != volume.Spec.CSI.VolumeHandle {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotClassMismatch, "VolumeSnapshotClass %q has driver %q, but in the host, claim %q has a volume of driver %q, so no program takes the snapshot. "+
		"Delete the VolumeSnapshot, and create another one with a class of driver %[4]q. If the deletion waits, ask an admin to remove the finalizers of VolumeSnapshotContent %[5]q",
		ptr.Deref(content.Spec.VolumeSnapshotClassName, ""), content.Spec.Driver, source.Claim.Name, v1alpha1.ProvisionerName, content.Name)
}

// IsContentRenamed reports whether a host content's name does not contain the UID of its VolumeSnapshot: the
// snapshot-controller did not create the content, or somebody changed its reference since. The
// member's controllers do not observe such a content.
func IsContentRenamed(content *snapshotv1.VolumeSnapshotContent) bool {
	uid := content.Spec.VolumeSnapshotRef.UID
	return uid == "" || content.Name != mirrorsnapshot.ContentName(uid)
}

// MisreferencedRefusal returns why Xylem neither uses nor destroys the snapshot of a placed content, or nil.
// The VolumeSnapshot that the reference names now may need the snapshot.
func MisreferencedRefusal(content *snapshotv1.VolumeSnapshotContent) *mirror.Refusal {
	if !IsContentRenamed(content) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotSourceInvalid, "somebody changed spec.volumeSnapshotRef of VolumeSnapshotContent %q, so Xylem neither uses nor destroys the snapshot in the member. "+
		"Restore the reference, with uid %q. Or set the annotation %s=true on the VolumeSnapshotContent to keep the snapshot in the member without it, and delete the VolumeSnapshotContent",
		content.Name, mirrorsnapshot.SnapshotUIDFromName(content.Name), v1alpha1.AnnotationAbandon)
}

func volumeDriverOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.Driver
}

// ReportSourceInvalid reports why Xylem can't use the source.
func (s *Observed) ReportSourceInvalid() *mirror.Refusal { return s.Invalid }

// ReportMemberAway reports why the member is unreachable.
func (s *Observed) ReportMemberAway() *mirror.Refusal { return s.Away }

// ReportUnavailable reports why Xylem can't read the member's snapshots.
func (s *Observed) ReportUnavailable() *mirror.Refusal { return s.Unavailable }

// ReportUnmet reports which object the member lacks.
func (s *Observed) ReportUnmet() *mirror.Refusal { return s.Unmet }

// ReportDataStillNeeded reports which claims will be restored from a snapshot that must be destroyed.
func (s *Observed) ReportDataStillNeeded() *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonStillNeeded, "the snapshot is not destroyed yet in member %q, because its data is still needed: %s. "+
		"Xylem destroys it once these claims have their disks: create a Pod for each. Or delete these claims, if nobody needs the data",
		s.Member.Registration, strings.Join(s.ClaimsToRestore, ", "))
}

// ReportSilent reports what the snapshot has been waiting for in the member.
func (s *Observed) ReportSilent() *mirror.Refusal { return s.Silent }

// MemberAwayRefusal reports that a member is not connected. A zero since means that it was never connected.
func MemberAwayRefusal(registration string, since time.Time) *mirror.Refusal {
	if since.IsZero() {
		return mirror.NewRefusal(v1alpha1.ReasonMemberAway, "member %q, which has the claim's volume, was never connected. `kubectl describe clusterregistration %[1]s` shows why. Xylem continues when the member is connected", registration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonMemberAway, "member %q, which has the claim's volume, has not been connected since %s. `kubectl describe clusterregistration %[1]s` shows why. Xylem continues when the member is connected again",
		registration, since.UTC().Format(time.RFC3339))
}

// EmitProblemEvent emits an event about a problem on the VolumeSnapshot, if one is due. It returns when the next
// one is due, or 0.
func (s *Observed) EmitProblemEvent(recorder events.EventRecorder, emitted *news.StateMemory, problem *mirror.Refusal) time.Duration {
	if problem == nil || s.Root == nil {
		emitted.ForgetState(s.Host.UID)
		return 0
	}
	due, again := emitted.EventDue(s.Host.UID, problem.Message)
	if due {
		recorder.Eventf(s.Root, nil, corev1.EventTypeWarning, problem.Reason, "Snapshot", "%s", problem.Message)
	}
	return again
}

// UnregisteredRefusal reports that the cluster is not registered.
func UnregisteredRefusal(clusterID string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonMemberAway, "no ClusterRegistration represents cluster %q, which has the claim's volume. Register the cluster again. If the cluster is lost permanently, set the annotation %s=true on the VolumeSnapshotContent, and delete the snapshot", clusterID, v1alpha1.AnnotationAbandon)
}

// ReportReleased reports that the member keeps the snapshot.
func (s *Observed) ReportReleased() *mirror.Refusal {
	if mirrorsnapshot.IsAbandonedSnapshot(s.Host) {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotAbandoned, "an admin abandoned the snapshot (%s=true on VolumeSnapshotContent %q): Xylem neither destroys nor uses its data. Delete the snapshot, or remove the annotation",
			v1alpha1.AnnotationAbandon, s.Host.Name)
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotAbandoned, "member %q was deregistered: the snapshot's data is still in cluster %q. Register that cluster again, under any name, to restore from the snapshot",
		s.Host.Annotations[v1alpha1.AnnotationClusterGone], mirrorsnapshot.ContentPlacedIn(s.Host))
}

// ReportNameTaken reports that a foreign object has the leaf's name.
func (s *Observed) ReportNameTaken() *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a VolumeSnapshot %q that Xylem did not create and does not change. Use another name, or delete that VolumeSnapshot in the member", s.Member.Registration, s.Origin.Root)
}

// earlierLeafRefusal reports that the leaf of an earlier VolumeSnapshot has the leaf's name.
func (s *Observed) earlierLeafRefusal() *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q still has VolumeSnapshot %q of an earlier snapshot with this name. Xylem takes this snapshot when that object is gone. Ask the member's admin what blocks its deletion, or use another name",
		s.Member.Registration, s.Origin.Root)
}

// ReportLeafUnstamped reports that the leaf has lost its stamp. Its content is then not destroyed either,
// because the member's admin may have taken the leaf over.
func (s *Observed) ReportLeafUnstamped() *mirror.Refusal {
	const what = "somebody removed or changed the labels and annotations by which Xylem recognizes VolumeSnapshot %q in member %q, so Xylem neither changes nor destroys the snapshot. " +
		"Ask the member's admin to restore them: labels %s=%s and %s=%s, annotations %s=%s and %s=%s"
	args := []any{
		s.Origin.Root, s.Member.Registration, v1alpha1.LabelHost, s.Member.HostID, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue,
		v1alpha1.AnnotationRoot, s.Origin.Root, v1alpha1.AnnotationRootUID, s.UID,
	}
	if s.HasRootEnded() {
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, what+". Or delete that VolumeSnapshot in the member. The deletion of the VolumeSnapshot in the host then continues", args...)
	}
	return mirror.NewRefusal(v1alpha1.ReasonNameTaken, what, args...)
}

// ReportSnapshotReplaced reports that the member has a different snapshot with this name.
func (s *Observed) ReportSnapshotReplaced() *mirror.Refusal {
	const what = "in member %q, the snapshot with the name %q is not the one that was taken. Xylem neither uses nor destroys either snapshot. "
	if s.HasRootEnded() {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotReplaced, what+"Delete the VolumeSnapshot in the member once nobody needs its data. The deletion of the VolumeSnapshot in the host then continues", s.Member.Registration, s.Origin.Root)
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotReplaced, what+"Rescue the data that you need in the member, then delete the VolumeSnapshot in the host and take another snapshot", s.Member.Registration, s.Origin.Root)
}

// ReportSnapshotLost reports that the snapshot no longer exists in the member.
func (s *Observed) ReportSnapshotLost() *mirror.Refusal {
	record := s.LeafRecord()
	if record.Content == "" {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotLost, "somebody deleted VolumeSnapshot %q in member %q before the snapshot was ready. Delete the VolumeSnapshot in the host too, and take another snapshot", s.Origin.Root, s.Member.Registration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotLost, "member %q no longer has VolumeSnapshotContent %q. The snapshot may still exist under handle %q of driver %q. Rescue the data in the member, then delete the VolumeSnapshot in the host",
		s.Member.Registration, mirrorsnapshot.LeafContentName(s.Host), record.Handle, s.Host.Annotations[v1alpha1.AttributeDriver])
}

// ReportLeafLost reports that the snapshot cannot be restored, although its content exists.
func (s *Observed) ReportLeafLost() *mirror.Refusal {
	const what = "somebody deleted VolumeSnapshot %q in member %q. Xylem keeps its VolumeSnapshotContent %q, but cannot restore from it"
	if s.HasRootEnded() {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotLost, what, s.Origin.Root, s.Member.Registration, s.Content.Name)
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotLost, what+". Take another snapshot, then delete this one", s.Origin.Root, s.Member.Registration, s.Content.Name)
}

// ReportContentEnding reports that the host content is being deleted although its root is not.
func (s *Observed) ReportContentEnding() *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotTerminating, "somebody deleted VolumeSnapshotContent %q before the snapshot was taken. The deletion cannot be undone: delete the VolumeSnapshot, and take another snapshot", s.Host.Name)
}

// ReportSnapshotTerminating reports that the snapshot is being deleted in the member.
func (s *Observed) ReportSnapshotTerminating() *mirror.Refusal {
	const what = "somebody deleted the snapshot %q in member %q. Xylem keeps its data. The deletion cannot be undone"
	if s.HasRootEnded() {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotTerminating, what, s.Origin.Root, s.Member.Registration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotTerminating, what+": take another snapshot, then delete this one", s.Origin.Root, s.Member.Registration)
}
