package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// A member that no longer has the volume that a claim requests removes its own report, and no other
// member's.
func TestReportsOnRequestedVolumes(t *testing.T) {
	here := mirror.Member{ClusterID: "id38", NodeName: "kosmos-cluster38"}
	for name, tc := range map[string]struct {
		asked      bool
		rivals     []string
		reportedBy string
		want       bool
	}{
		"the member has the volume":                             {asked: true, want: true},
		"other members have it, too":                            {asked: true, rivals: []string{"cluster39"}},
		"the member does not have it":                           {},
		"the member no longer has it, and has reported on it":   {reportedBy: "id38", want: true},
		"the member does not have it, and another has reported": {reportedBy: "id39"},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
			if tc.reportedBy != "" {
				metav1.SetMetaDataAnnotation(&root.ObjectMeta, v1alpha1.AnnotationReportedBy, tc.reportedBy)
				root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse}}
			}
			c := Claim{Root: root, Observed: &volume.Observed{Placement: &volume.Placement{RivalMembers: tc.rivals}}}
			if tc.asked {
				c.Observed.Placement.RequestedVolume = &corev1.PersistentVolume{}
			}
			if got := c.PlacedConditionOwnedBy(here); got != tc.want {
				t.Errorf("Reports returned %t", got)
			}
		})
	}
}

// A host PV is diverted if it represents the leaf claim's volume and Kubernetes cannot bind the root to
// it. An earlier volume with the same name does not count.
func TestDiverted(t *testing.T) {
	here := mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host"}
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root"}}
	leaf := func(uid types.UID) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nfs-1", UID: uid}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "share"}
		return pv
	}
	host := func(of types.UID, ref *corev1.ObjectReference) corev1.PersistentVolume {
		pv := hostpv.TranslateVolume(leaf(of), root, corev1.PersistentVolumeReclaimRetain, here)
		pv.Spec.ClaimRef = ref
		return *pv
	}
	other := &corev1.ObjectReference{Namespace: "shop", Name: "other", UID: "other"}
	for name, tc := range map[string]struct {
		host corev1.PersistentVolume
		want bool
	}{
		"no claimRef":                                       {host("leaf", nil), true},
		"the claimRef names another claim":                  {host("leaf", other), true},
		"the claimRef names an earlier claim":               {host("leaf", &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "earlier"}), true},
		"the claimRef names the claim":                      {host("leaf", &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "root"}), false},
		"the PV is reserved for the claim":                  {host("leaf", &corev1.ObjectReference{Namespace: "shop", Name: "data"}), false},
		"an earlier volume with the name, of another claim": {host("earlier", other), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findDivertedVolume([]corev1.PersistentVolume{tc.host}, leaf("leaf"), root) != nil; got != tc.want {
				t.Errorf("diverted: %t", got)
			}
		})
	}
}

// The member that has the claim's leaf claim or diverted host PV reports on a claim that is not placed.
func TestReportsOnUnplacedClaims(t *testing.T) {
	here := mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38"}
	leaf := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	for name, tc := range map[string]struct {
		named    string
		leaf     *corev1.PersistentVolumeClaim
		observed volume.Observed
		places   volume.Placement
		want     bool
	}{
		"no leaf claim":                        {named: "pv-1"},
		"the leaf claim has the volume":        {named: "pv-1", leaf: leaf, want: true},
		"the leaf claim has another volume":    {named: "pv-2", leaf: leaf},
		"the claim is bound in another member": {named: "pv-1", leaf: leaf, places: volume.Placement{BoundOutsideMember: true}},
		"the claim is bound to a promise":      {named: "pv-1", leaf: leaf, observed: volume.Observed{Promise: &corev1.PersistentVolume{}}},
		"the host PV's claimRef names another": {named: "pv-1", places: volume.Placement{Diverted: &corev1.PersistentVolume{}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: tc.named}}
			s := tc.observed
			s.Member, s.Root, s.LeafClaim, s.Placement = here, root, tc.leaf, &tc.places
			c := Claim{Root: root, Leaf: tc.leaf, Observed: &s}
			if got := c.PlacedConditionOwnedBy(here); got != tc.want {
				t.Errorf("Reports returned %t", got)
			}
		})
	}
}
