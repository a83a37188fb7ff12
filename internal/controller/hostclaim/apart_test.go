package hostclaim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// host_claim does not remove a selection that a connected member's root_pvc and recovery depend on.
// It removes a selection only if its node represents no member, or a disconnected member to which
// nothing was written.
func TestKeepsSelectionOfAConnectedMember(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	kinds := map[string]selectedNodeKind{"": noNode, "node-a": virtualNode, "node-b": virtualNode, "worker": hostNode, "gone": missingNode}
	taken := 0
	for node, kind := range kinds {
		for _, placed := range []string{"", "id-a", "id-b", "elsewhere"} {
			for flags := range 32 {
				members := []placement.Candidate{memberOf("a"), memberOf("b")}
				members[0].Connection = placement.Connection{Connected: flags&1 != 0, Connecting: flags&2 != 0}
				members[1].Connection = placement.Connection{Connected: flags&4 != 0, Connecting: flags&8 != 0}
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: map[string]string{}}}
				claim.Spec.StorageClassName, claim.Status.Phase = ptr.To("disk"), corev1.ClaimPending
				if node != "" {
					claim.Annotations[route.AnnSelectedNode] = node
				}
				if placed != "" {
					claim.Annotations[v1alpha1.AnnotationPlacedIn] = placed
				}
				if flags&16 != 0 {
					claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaceable, Status: corev1.ConditionFalse,
						Reason: v1alpha1.ReasonMemberAway, LastTransitionTime: metav1.NewTime(now.Add(-24 * time.Hour))}}
				}
				if !decideForClaim(observed{claim: claim, class: class, selectedNode: kind, memberHasClass: func(string, string) bool { return false },
					members: members, now: now}).unselect {
					continue
				}
				taken++
				for _, m := range members {
					if m.NodeName == node && (m.Connected || m.ClusterID == placed) {
						t.Errorf("host_claim removes the selection of member %s: %+v, placed in %q", m.Registration, m, placed)
					}
				}
			}
		}
	}
	if taken == 0 {
		t.Error("host_claim never removes a selection")
	}
}
