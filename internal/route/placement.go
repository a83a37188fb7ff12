package route

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// Placement contains the fields of a root or leaf claim that determine where its volume is or will
// be.
type Placement struct {
	uid, owner                              types.UID
	root                                    string
	deleting                                bool
	volume                                  string
	selected, placed, reassigned, attempted string
	problem                                 mirror.Refusal
	reporter                                mirror.Reporter
	promiseHasDisk                          bool
	copyPhase                               corev1.PersistentVolumeClaimPhase
}

// PlacementOfClaim returns the Placement of a claim, for PartChanged.
func PlacementOfClaim(claim *corev1.PersistentVolumeClaim) Placement {
	p := Placement{
		uid: claim.UID, owner: ptr.Deref(metav1.GetControllerOfNoCopy(claim), metav1.OwnerReference{}).UID, root: claim.Annotations[v1alpha1.AnnotationRootUID], deleting: claim.DeletionTimestamp != nil, volume: claim.Spec.VolumeName,
		selected: claim.Annotations[AnnSelectedNode], placed: claim.Annotations[v1alpha1.AnnotationPlacedIn],
		reassigned: claim.Annotations[v1alpha1.AnnotationSteeredTo], attempted: claim.Annotations[v1alpha1.AnnotationTried],
		problem: ptr.Deref(report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced), mirror.Refusal{}), reporter: mirror.ReporterOfRoot(claim), promiseHasDisk: report.PromiseHasDisk(claim),
	}
	if claim.Annotations[v1alpha1.AnnotationCopyOf] != "" {
		p.copyPhase = claim.Status.Phase // Pods wait until the copy of a shared volume is bound
	}
	return p
}
