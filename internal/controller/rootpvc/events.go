package rootpvc

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/text"
)

// EventProblem emits an event about a claim's problem on an object.
func (r *reporter) EventProblem(on client.Object, problem *mirror.Refusal) {
	r.link.Recorder.Eventf(on, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

// EventWithdrawn reports that the claim was withdrawn from this member.
func (r *reporter) EventWithdrawn(root *corev1.PersistentVolumeClaim) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonPlacementWithdrawn, "Withdraw",
		"withdrawn from member %q before a volume was bound there", r.link.Registration)
}

// EventGrown reports that Xylem has requested the expansion of the volume in the member.
func (r *reporter) EventGrown(root *corev1.PersistentVolumeClaim, to resource.Quantity) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonExpansionPushed, "Expand", "asked member %q to expand the volume to %s", r.link.Registration, to.String())
}

// EventModified reports a change to the volume's attributes. class is the member's class, or empty
// if the change is canceled.
func (r *reporter) EventModified(root *corev1.PersistentVolumeClaim, class string) {
	if class == "" {
		r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
			"asked member %q to cancel the change to the volume's attributes", r.link.Registration)
		return
	}
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
		"asked member %q to give the volume the attributes of its VolumeAttributesClass %q", r.link.Registration, class)
}

// EventAdopted reports that the claim has adopted an earlier claim's volume.
func (r *reporter) EventAdopted(root *corev1.PersistentVolumeClaim, volume string) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"the claim now uses volume %q in member %q, which belonged to an earlier claim of the same name", volume, r.link.Registration)
}

// EventHeldBack reports that the claim waits because the host has many volumes to bind.
func (r *reporter) EventHeldBack(root *corev1.PersistentVolumeClaim, admission backlog.Admission) {
	r.link.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonHeldBack, "Push",
		"not placed in member %q yet: Xylem places claims only as fast as the host's PV controller binds volumes. That controller still has %s to bind. Claims waiting for this member: %d",
		r.link.Registration, text.Count(admission.Volumes, "volume"), admission.Claims)
}
