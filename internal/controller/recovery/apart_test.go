package recovery

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// recovery writes only to claims for which this member is selected, and only while root_pvc, on
// whose report it depends, has no step for those claims.
func TestWritesOnlyWhileRootPVCWaits(t *testing.T) {
	moved := 0
	for _, selected := range []string{"", here.NodeName, "kosmos-second"} {
		for _, placed := range []string{"", here.ClusterID, "id2"} {
			for _, steered := range []string{"", here.NodeName} {
				for flags := range 32 {
					leaf, fails, offered, agreed, bound := flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0
					o := seen(annotated(route.AnnSelectedNode, selected), annotated(v1alpha1.AnnotationPlacedIn, placed), annotated(v1alpha1.AnnotationSteeredTo, steered), noEvidence)
					if bound {
						o.Claim.Root.Spec.VolumeName = "pvc-1"
					}
					if !agreed {
						o.Pods[0].Status.NominatedNodeName = ""
					}
					plan := lifecycle.NextPlan(planOf(o, leaf, fails, offered, agreed))
					if plan.Step == lifecycle.None && plan.Report != nil { // Unselect only emits an event, and sets no condition
						o.Claim.Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse,
							Reason: plan.Report.Reason, LastTransitionTime: metav1.NewTime(now.Add(-timeout - truncationAllowance))}}
					}
					o.ClaimGroup[0] = *o.Claim
					var claims []observedClaim
					switch d := decideWhenRequested(o).(type) {
					case moveClaims:
						claims = d.Claims
					case freeClaims:
						claims = d.Claims
					default:
						continue
					}
					moved++
					if plan.Step != lifecycle.None {
						t.Errorf("recovery reassigns a claim for which root_pvc's next step is %s: %+v", plan.Step, o.Claim.Root.Annotations)
					}
					for _, c := range claims {
						if c.Root.Annotations[route.AnnSelectedNode] != here.NodeName || c.Root.Spec.VolumeName != "" {
							t.Errorf("recovery reassigns a claim that is bound, or for which this member is not selected: %+v", c.Root)
						}
					}
				}
			}
		}
	}
	if moved == 0 {
		t.Error("recovery never reassigns a claim")
	}
}

// planOf returns root_pvc's observation of the claim.
func planOf(o observed, leaf, fails, offered, agreed bool) *volume.Observed {
	root := o.Claim.Root
	s := &volume.Observed{Member: here, Root: root, Placement: &volume.Placement{MemberObjects: placement.MemberObjects{
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: here.HostID}}},
	}}}
	s.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	if offered {
		s.Placement.MemberObjects.Classes = []string{"disk"}
	}
	if leaf && root.Annotations[v1alpha1.AnnotationPlacedIn] == here.ClusterID {
		s.LeafClaim, s.Origin = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}, mirror.OriginForRoot(here.HostID, root)
		if fails {
			s.Placement.Attempt.ProvisioningProblem = &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "no"}
		}
	}
	s.Placement.Attempt.Consumers = []volume.Consumer{{Name: "web", AboutToBindHere: agreed}}
	return s
}
