package clusterregistration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// announceConnection emits an event on the registration when its Connected condition changes.
func (r *Reconciler) announceConnection(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionConnected)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionConnected)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason || is.Reason == v1alpha1.ReasonConnecting {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue && is.Reason == v1alpha1.ReasonConnected {
		kind = corev1.EventTypeNormal
	}
	r.Recorder.Eventf(after, nil, kind, is.Reason, "Connect", "%s", is.Message)
}

// announcedReasons contains the reasons of the Ready condition that require an admin to act, or that
// report what a deregistration is waiting for.
var announcedReasons = []string{v1alpha1.ReasonConfirmationNeeded, v1alpha1.ReasonMemberUnreachable, v1alpha1.ReasonDraining}

// announceWaiting emits an event on the registration when its deregistration has to wait. When the
// member is away, it emits an event that reports how long the Pods are kept, and what happens
// afterwards.
func (r *Reconciler) announceWaiting(before, after *v1alpha1.ClusterRegistration) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionNodeReady} {
		was := meta.FindStatusCondition(before.Status.Conditions, kind)
		is := meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || is.Status == metav1.ConditionTrue || was != nil && was.Reason == is.Reason && was.Status == is.Status {
			continue
		}
		if kind == v1alpha1.ConditionReady && slices.Contains(announcedReasons, is.Reason) || kind == v1alpha1.ConditionNodeReady && is.Reason == v1alpha1.ReasonMemberAway {
			r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Wait", "%s", is.Message)
		}
	}
}

// announceStuckDeletions emits an event on the registration when deletions are stuck, and again when the
// message about them changes.
func (r *Reconciler) announceStuckDeletions(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionDeletionsProgressing)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionDeletionsProgressing)
	if is == nil || is.Reason != v1alpha1.ReasonStuckDeletion || was != nil && was.Message == is.Message {
		return
	}
	r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Delete", "%s", is.Message)
}

func (r *Reconciler) emitOrphanedVolume(cr *v1alpha1.ClusterRegistration, o account.Orphan) {
	todo := "To use the volume again, re-create claim " + o.Root.String() + " with spec.volumeName: " + o.Volume
	if o.Root.Namespace == "" {
		todo = "To use the volume again, create a PersistentVolume for it, as `kubectl xylem adopt` does"
	}
	switch o.Reason {
	case account.SurplusVolume:
		todo = "Check which of the claim's volumes contains the data that you need"
	case account.WithdrawnLate:
		todo = "No Pod ever used the volume"
	}
	// Relate the event to the volume, because the recorder merges events that differ only in their
	// note.
	volume := &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: o.Volume, UID: o.UID}
	r.Recorder.Eventf(cr, volume, corev1.EventTypeWarning, v1alpha1.ReasonOrphanedVolume, "Account",
		"volume %q in the member has no root: %s. Xylem keeps its data. %s. To delete the volume, set its reclaim policy to Delete in the member, and delete its claim there if it has one", o.Volume, o.Message, todo)
}
