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

func (r *reconciler) eventProblem(on client.Object, problem *mirror.Refusal) {
	r.Recorder.Eventf(on, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

func (r *reconciler) eventWithdrawn(root *corev1.PersistentVolumeClaim) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonPlacementWithdrawn, "Withdraw",
		"withdrawn from member %q before a volume was bound there", r.Registration)
}

func (r *reconciler) eventGrown(root *corev1.PersistentVolumeClaim, to resource.Quantity) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonExpansionPushed, "Expand", "requested member %q to expand the volume to %s", r.Registration, to.String())
}

// eventModified: class is the member's name of the class, empty where the change is canceled.
func (r *reconciler) eventModified(root *corev1.PersistentVolumeClaim, class string) {
	if class == "" {
		r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
			"asked member %q to cancel the change of the volume's attributes", r.Registration)
		return
	}
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonModificationPushed, "Modify",
		"asked member %q to give the volume the attributes of its VolumeAttributesClass %q", r.Registration, class)
}

func (r *reconciler) eventAdopted(root *corev1.PersistentVolumeClaim, volume string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"the claim now has volume %q in member %q, which an earlier claim of its name had", volume, r.Registration)
}

func (r *reconciler) eventHeldBack(root *corev1.PersistentVolumeClaim, turn backlog.Turn) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonHeldBack, "Push",
		"not placed in member %q yet: Xylem places claims as fast as the host's PV controller binds volumes. It has %s to bind; claims that wait for this member: %d",
		r.Registration, text.Count(turn.Volumes, "volume"), turn.Claims)
}
