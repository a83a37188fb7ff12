package promise

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	claim *corev1.PersistentVolumeClaim
	// class is the claim's class. It is only set if volume is nil.
	class *storagev1.StorageClass
	// volume is the PV with the name in the claim, or the name that the claim's promise should get. It
	// need not be a promise.
	volume *corev1.PersistentVolume
}

type decision interface{ isDecision() }

type (
	doNothing struct{}
	// createPromise creates the promise.
	createPromise struct{ promise *corev1.PersistentVolume }
	// showCondition sets the claim's condition about its promise.
	showCondition struct {
		status          corev1.ConditionStatus
		reason, message string
	}
)

func (doNothing) isDecision()     {}
func (createPromise) isDecision() {}
func (showCondition) isDecision() {}

func decidePromiseAction(o observed) decision {
	switch {
	case o.claim == nil:
		return doNothing{}
	case o.volume == nil:
		plan := lifecycle.NextPlan(&volume.Observed{Root: o.claim, Class: o.class})
		switch {
		case plan.StepOwnedBy(lifecycle.Promise) == lifecycle.CreatePromise:
			return createPromise{hostpv.CurrentPromiseFor(o.claim, o.class)}
		case plan.Report != nil:
			return showCondition{corev1.ConditionFalse, plan.Report.Reason, plan.Report.Message}
		}
		return doNothing{}
	case o.claim.Spec.VolumeName == "" && o.volume.DeletionTimestamp != nil && hostpv.IsPromise(o.volume) && hostpv.ClaimRefHasUIDOf(o.volume, o.claim):
		return showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, fmt.Sprintf("PersistentVolume %q, the promise for this claim, is being deleted, so the claim cannot be bound to it. "+
			"Delete the claim and create it again", o.volume.Name)}
	case o.claim.Status.Phase == corev1.ClaimLost && o.volume.Name == o.claim.Spec.VolumeName && hostpv.IsPromise(o.volume) && !hostpv.ClaimRefHasUIDOf(o.volume, o.claim):
		return showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, fmt.Sprintf("the claimRef of PersistentVolume %q, the promise for this claim, does not name the claim and its uid, so Kubernetes does not bind the claim to it. "+
			"Unless another claim needs the volume, set the PersistentVolume's spec.claimRef to namespace %q, name %q and uid %q", o.volume.Name, o.claim.Namespace, o.claim.Name, o.claim.UID)}
	case o.volume.Name != o.claim.Spec.VolumeName || !hostpv.IsPromise(o.volume) || !hostpv.ClaimRefHasUIDOf(o.volume, o.claim):
		return doNothing{} // the promise is about to be bound, or the volume is not the claim's promise
	}
	return o.showPromiseState()
}

// showPromiseState returns the decision to show the promise's state in the claim's condition.
func (o observed) showPromiseState() decision {
	placed := o.claim.Annotations[v1alpha1.AnnotationPlacedIn] != ""
	problem := report.ClaimConditionProblem(o.claim, v1alpha1.ClaimPlaced)
	member := o.volume.Labels[v1alpha1.LabelCluster]
	_, leaf, _, fulfilled := hostpv.LeafOfHostVolume(o.volume)
	switch {
	case fulfilled && problem != nil && problem.Reason == v1alpha1.ReasonVolumeLost,
		!fulfilled && placed && problem != nil:
		return showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, fmt.Sprintf("%s: %s", problem.Reason, problem.Message)}
	case fulfilled:
		driver, handle := hostpv.RecordedSourceOf(o.volume)
		return showCondition{corev1.ConditionTrue, v1alpha1.ReasonFulfilled, fmt.Sprintf("volume %q in member %q: driver %q, handle %q",
			leaf, member, driver, handle)}
	case placed && member != "":
		return showCondition{corev1.ConditionFalse, v1alpha1.ReasonPromised, fmt.Sprintf("member %q is provisioning the volume", member)}
	}
	return showCondition{corev1.ConditionFalse, v1alpha1.ReasonPromised, "there is no disk yet: the claim's first Pod determines which member provisions it"}
}
