package sharing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
)

// Observed is a shared volume and its copy in one member. A nil field means that the object does not
// exist.
type Observed struct {
	Place placement.Member
	// Host is the host PV. Class is its class in the host.
	Host  *corev1.PersistentVolume
	Class *storagev1.StorageClass
	// MemberClass is the member's class for the copy. It is set only if CopyClass selects one.
	MemberClass *storagev1.StorageClass
	// Claim and Volume are the member's objects with the names of the copy. Xylem may not have created
	// them.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// WantedByPod means that a Pod in the member needs the copy.
	WantedByPod bool
}

// Step is the next step for a copy.
type Step string

// The steps. Ready means that Pods can use the copy.
const (
	None         Step = "None"
	Ready        Step = "Ready"
	Record       Step = "Record"
	CreateClaim  Step = "CreateClaim"
	CreateVolume Step = "CreateVolume"
	SetRetain    Step = "SetRetain"
	DeleteClaim  Step = "DeleteClaim"
	DeleteVolume Step = "DeleteVolume"
	DropRecord   Step = "DropRecord"
)

// NextCopyStep returns the next step, or the reason why a wanted copy cannot be created.
func NextCopyStep(o Observed) (Step, *mirror.Refusal) {
	claim, claimed := o.claimCopyStamp()
	volume, made := o.volumeCopyStamp()
	switch {
	case (claimed || made) && o.canRecordCopy():
		return Record, nil // the host was restored; record the copy first, so that no other member destroys the volume
	case made && !o.WantedByPod && !proof.IsLeafRetained(o.Volume):
		return SetRetain, nil // before the claim is deleted, so that the member does not destroy the volume through its copy
	case claimed && (!proof.IsCopyNeeded(o.Host, claim) || o.Claim.Status.Phase == corev1.ClaimLost):
		return unlessDeleting(o.Claim, DeleteClaim), o.refusalWhileReplacing() // the member keeps a claim that a Pod uses
	case made && (!claimed || !proof.IsCopyNeeded(o.Host, volume) || !o.volumeNamesClaim()):
		return unlessDeleting(o.Volume, DeleteVolume), o.refusalWhileReplacing()
	case !hostpv.MayCopySharedVolume(o.Host):
		return o.nextStepUnshared(claimed || made)
	case !o.WantedByPod:
		return None, nil
	}
	return o.nextCreationStep(claimed, made)
}

func unlessDeleting(obj metav1.Object, step Step) Step {
	if obj.GetDeletionTimestamp() != nil {
		return None
	}
	return step
}

// refusalWhileReplacing reports, for a copy that a Pod needs, that an earlier one must be gone first.
func (o Observed) refusalWhileReplacing() *mirror.Refusal {
	if !o.WantedByPod || o.Host == nil {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "member %q still has an earlier copy that must be removed before the copy of volume %q can be created. Xylem removes it once no Pod in that member uses it", o.Place.Registration, o.Host.Name)
}

// nextStepUnshared returns the next step if the host PV is gone, or is not bound to a claim.
func (o Observed) nextStepUnshared(exists bool) (Step, *mirror.Refusal) {
	switch {
	case !exists && o.isRecordObsolete():
		return DropRecord, nil
	case o.WantedByPod && o.Host != nil && hostpv.IsAbandonedVolume(o.Host):
		return None, mirror.NewRefusal(v1alpha1.ReasonVolumeUnreachable, "volume %q was abandoned (%s), so member %q gets no copy of it. Use another claim", o.Host.Name, v1alpha1.AnnotationAbandon, o.Place.Registration)
	}
	return None, nil
}

// nextCreationStep returns the next step for a copy that a Pod needs.
func (o Observed) nextCreationStep(claimed, made bool) (Step, *mirror.Refusal) {
	class, refusal := o.Place.ClassForVolumeCopy(o.Host, o.Class)
	switch {
	case claimed && o.Claim.DeletionTimestamp != nil, made && o.Volume.DeletionTimestamp != nil:
		return None, mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "the copy of volume %q in member %q is being deleted. Xylem creates the copy again once no Pod in that member uses it", o.Host.Name, o.Place.Registration)
	case made && claimed && o.isCopyRecorded() && o.Claim.Spec.VolumeName == o.Volume.Name && o.Claim.Status.Phase == corev1.ClaimBound:
		return Ready, nil
	case refusal != nil:
		return None, refusal
	case o.MemberClass == nil:
		return None, mirror.NewRefusal(v1alpha1.ReasonClassNotFound, "member %q has no StorageClass %q, which determines the mount options and Secrets of the copy of volume %q. Create the StorageClass in the member, or correct spec.storage.shared of ClusterRegistration %[1]q",
			o.Place.Registration, class, o.Host.Name)
	case o.Host.DeletionTimestamp != nil:
		return None, mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "volume %q is being deleted, so member %q gets no copy of it. Use another claim", o.Host.Name, o.Place.Registration)
	case !o.isCopyRecorded():
		return Record, nil
	}
	if taken := o.nameTakenRefusal(claimed, made); taken != nil {
		return None, taken
	}
	return o.nextObjectStep(claimed, made)
}

// nameTakenRefusal reports that another object has the name of the copy's claim or PV.
func (o Observed) nameTakenRefusal(claimed, made bool) *mirror.Refusal {
	switch {
	case o.Claim != nil && !claimed && o.isLeafClaim():
		return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "member %q still has the counterpart of an earlier claim with the name \"%s/%s\". Xylem removes it when the volume of that claim is released, and then creates the copy of volume %q",
			o.Place.Registration, o.Claim.Namespace, o.Claim.Name, o.Host.Name)
	case o.Claim != nil && !claimed:
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a claim \"%s/%s\" that Xylem did not create and does not change. Use another name, or ask the member's admin to delete that claim",
			o.Place.Registration, o.Claim.Namespace, o.Claim.Name)
	case o.Volume != nil && !made:
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a PersistentVolume %q that Xylem did not create and does not change. Ask the member's admin to delete it", o.Place.Registration, o.Volume.Name)
	}
	return nil
}

// nextObjectStep returns the step that creates the next missing object of a copy.
func (o Observed) nextObjectStep(claimed, made bool) (Step, *mirror.Refusal) {
	if claimed && made {
		return None, nil // the member binds them
	}
	if _, refusal := o.newCopyVolume(); refusal != nil {
		return None, refusal
	}
	if !claimed {
		return CreateClaim, nil
	}
	return CreateVolume, nil
}

// isLeafClaim reports whether the claim with the copy's name is a leaf claim.
func (o Observed) isLeafClaim() bool {
	_, ours := mirror.LeafOriginFromHost(o.Place.HostID, o.Claim)
	return ours
}

func (o Observed) claimCopyStamp() (mirror.VolumeCopy, bool) {
	if o.Claim == nil {
		return mirror.VolumeCopy{}, false
	}
	return mirror.VolumeCopyFromHost(o.Place.HostID, o.Claim)
}

func (o Observed) volumeCopyStamp() (mirror.VolumeCopy, bool) {
	if o.Volume == nil {
		return mirror.VolumeCopy{}, false
	}
	return mirror.VolumeCopyFromHost(o.Place.HostID, o.Volume)
}

// isCopyRecorded reports whether the host PV records that the member may have a copy.
func (o Observed) isCopyRecorded() bool {
	return slices.Contains(hostpv.MembersWithCopies(o.Host), o.Place.ClusterID)
}

// canRecordCopy reports whether the host PV lacks the record, the API server allows adding it, and this
// member shares the backend. Otherwise, any member's admin could delay a volume's destruction. The
// copy may be for an earlier host PV of the same volume, or for a claim that is gone.
func (o Observed) canRecordCopy() bool {
	return o.Host != nil && o.Place.SharesVolume(o.Host) && o.Host.DeletionTimestamp == nil && !hostpv.IsAbandonedVolume(o.Host) && !o.isCopyRecorded()
}

// isRecordObsolete reports whether the host PV records a copy that no claim of the host needs.
func (o Observed) isRecordObsolete() bool {
	return o.Host != nil && o.isCopyRecorded() && hostpv.BackendOfVolume(o.Host) != "" && !hostpv.IsClaimedVolume(o.Host)
}

// volumeNamesClaim reports whether the claimRef of the copy's PV is the copy's claim.
func (o Observed) volumeNamesClaim() bool {
	ref := o.Volume.Spec.ClaimRef
	return o.Claim != nil && ref != nil && ref.UID == o.Claim.UID
}
