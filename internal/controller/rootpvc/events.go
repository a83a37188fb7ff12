package rootpvc

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/wording"
)

// EventClaimProblem emits an event about a claim's problem on an object.
func (r *reporter) EventClaimProblem(on client.Object, problem *mirror.Refusal) {
	r.link.Recorder.Eventf(on, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

// EventClaimWithdrawn reports that the claim was withdrawn from this member.
func (r *reporter) EventClaimWithdrawn(root *corev1.PersistentVolumeClaim) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonPlacementWithdrawn, "Withdraw",
		"withdrawn from member %q before a volume was bound there", r.link.Registration)
}

// EventExpansionRequested reports that Xylem has requested the expansion of the volume in the member.
func (r *reporter) EventExpansionRequested(root *corev1.PersistentVolumeClaim, to resource.Quantity) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonExpansionPushed, "Expand", "asked member %q to expand the volume to %s", r.link.Registration, to.String())
}

// EventAttributesModified reports a change to the volume's attributes. class is the member's class, or empty
// if the change is canceled.
func (r *reporter) EventAttributesModified(root *corev1.PersistentVolumeClaim, class string) {
	if class == "" {
		r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
			"asked member %q to cancel the change to the volume's attributes", r.link.Registration)
		return
	}
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
		"asked member %q to give the volume the attributes of its VolumeAttributesClass %q", r.link.Registration, class)
}

// EventVolumeAdopted reports that the claim has adopted an earlier claim's volume.
func (r *reporter) EventVolumeAdopted(root *corev1.PersistentVolumeClaim, volume string) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"the claim now uses volume %q in member %q, which belonged to an earlier claim of the same name", volume, r.link.Registration)
}

// EventPlacementHeldBack reports that the claim waits because the host has many volumes to bind.
func (r *reporter) EventPlacementHeldBack(root *corev1.PersistentVolumeClaim, admission backlog.Admission) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonHeldBack, "Push",
		"not placed in member %q yet: Xylem places claims only as fast as the host's PV controller binds volumes. That controller still has %s to bind. Claims waiting for this member: %d",
		r.link.Registration, wording.CountNoun(admission.Volumes, "volume"), admission.Claims)
}
