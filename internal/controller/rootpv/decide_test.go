package rootpv

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

const (
	deletes = corev1.PersistentVolumeReclaimDelete
	retains = corev1.PersistentVolumeReclaimRetain
)

var (
	here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	now  = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	root = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
)

// seen returns a Released host PV with policy Delete on both sides. Its leaf PV and leaf claim
// are still as they were while the volume was in use.
func seen(change ...func(*volume.Observed)) *volume.Observed {
	leaf := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: retains,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	origin := mirror.OriginForRoot(here.HostID, root)
	origin.StampLeaf(leaf)
	leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(deletes)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim-uid", ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	origin.StampLeaf(claim)
	host := hostpv.TranslateVolume(leaf, root, deletes, here)
	host.UID = "host-pv-uid"
	host.Status.Phase = corev1.VolumeReleased
	s := &volume.Observed{Member: here, Host: host, Name: leaf.Name, UID: leaf.UID, Leaf: leaf, LeafStamped: true, Stamp: origin, LeafClaim: claim, Origin: origin}
	for _, c := range change {
		c(s)
	}
	if s.Host.Spec.ClaimRef != nil && s.Host.Spec.ClaimRef.UID == root.UID && !hostpv.IsReleasedOrFailed(s.Host) {
		s.Root = root.DeepCopy()
		s.Root.Spec.VolumeName = s.Host.Name
		s.Root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}
	}
	return s
}

func phase(p corev1.PersistentVolumePhase) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Status.Phase = p }
}

func hostPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Spec.PersistentVolumeReclaimPolicy = p }
}

// gave sets the policy that the leaf PV originally had in the member.
func gave(policy string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = policy }
}

func leafPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Spec.PersistentVolumeReclaimPolicy = p }
}

func hostDeleted(s *volume.Observed)  { s.Host.DeletionTimestamp = &now }
func leafDeleted(s *volume.Observed)  { s.Leaf.DeletionTimestamp = &now }
func claimDeleted(s *volume.Observed) { s.LeafClaim.DeletionTimestamp = &now }
func noLeaf(s *volume.Observed)       { s.Leaf, s.LeafStamped, s.Stamp = nil, false, mirror.Origin{} }
func noClaim(s *volume.Observed)      { s.LeafClaim = nil }
func unstamped(s *volume.Observed)    { s.LeafStamped, s.Stamp = false, mirror.Origin{} }
func recycles(s *volume.Observed)     { hostPolicy(corev1.PersistentVolumeReclaimRecycle)(s) }
func noClaimRef(s *volume.Observed)   { s.Host.Spec.ClaimRef, s.LeafClaim = nil, nil }
func leafReleased(s *volume.Observed) { s.Leaf.Status.Phase = corev1.VolumeReleased }

// recreated replaces the mirrored leaf PV with one that has the same name and another UID.
func recreated(policy corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) {
		s.Recreated = s.Leaf.DeepCopy()
		s.Recreated.UID, s.Recreated.Spec.PersistentVolumeReclaimPolicy = "recreated", policy
		noLeaf(s)
	}
}

// staleClaim means that the leaf PV is still bound to the leaf claim of an earlier root.
func staleClaim(s *volume.Observed) {
	s.Holder, s.LeafClaim = s.LeafClaim, nil
	s.HolderOrigin = s.Stamp
	s.HolderOrigin.UID = "earlier-root"
	s.Stamp = s.HolderOrigin
	s.HolderOrigin.StampLeaf(&s.Holder.ObjectMeta)
}

func abandon(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationAbandon] = "true" }

// claimLives means that the host PV's former claim exists and has another volume.
func claimLives(s *volume.Observed) {
	s.Root = root.DeepCopy()
	s.Root.Spec.VolumeName = "another"
	s.Root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		seen *volume.Observed
		want lifecycle.Step
	}{
		"the volume is in use": {seen(phase(corev1.VolumeBound)), lifecycle.None},
		"in use, and a user deletes the host PV: protected (I2)":                                                       {seen(phase(corev1.VolumeBound), hostDeleted), lifecycle.None},
		"in use, and the leaf PV and claim vanish: no evidence (I2)":                                                   {seen(phase(corev1.VolumeBound), noLeaf, noClaim), lifecycle.None},
		"the host PV is Available, and the claim that names it is Pending":                                             {seen(phase(corev1.VolumeAvailable)), lifecycle.None},
		"the host PV was just created, and has no phase yet":                                                           {seen(phase("")), lifecycle.None},
		"released, without Xylem's finalizer":                                                                          {seen(func(s *volume.Observed) { s.Host.Finalizers = nil }), lifecycle.None},
		"released, and both policies are Delete: the leaf PV is set to Delete first (I2)":                              {seen(), lifecycle.SetDelete},
		"the leaf PV was set to Delete: the leaf claim is deleted":                                                     {seen(leafPolicy(deletes)), lifecycle.DeleteClaim},
		"the leaf claim is being deleted":                                                                              {seen(leafPolicy(deletes), claimDeleted), lifecycle.None},
		"the leaf claim was deleted, but the leaf PV exists":                                                           {seen(leafPolicy(deletes), noClaim), lifecycle.None},
		"the leaf PV is being deleted":                                                                                 {seen(leafPolicy(deletes), noClaim, leafDeleted), lifecycle.None},
		"the leaf claim was deleted before the leaf PV was set to Delete (I6)":                                         {seen(noClaim), lifecycle.SetDelete},
		"the leaf PV is being deleted in the member: its policy is not changed":                                        {seen(leafDeleted), lifecycle.DeleteClaim},
		"the leaf PV and the leaf claim were deleted: the host PV is deleted after proof (I1)":                         {seen(noLeaf, noClaim), lifecycle.DropHost},
		"the leaf PV and the leaf claim were deleted, and the host PV is being deleted: the finalizer is removed (I6)": {seen(noLeaf, noClaim, hostDeleted), lifecycle.DropHost},
		"the leaf PV was deleted, and the leaf claim is Lost: the leaf claim is deleted":                               {seen(noLeaf), lifecycle.DeleteClaim},

		"Retain in the host: the leaf claim is deleted, and the volume is kept (I2)":                                      {seen(hostPolicy(retains)), lifecycle.DeleteClaim},
		"Retain in the host, and the leaf claim was deleted: settled (I5)":                                                {seen(hostPolicy(retains), noClaim), lifecycle.None},
		"Retain in the host, and no objects in the member: no action":                                                     {seen(hostPolicy(retains), noClaim, noLeaf), lifecycle.None},
		"Retain in the host, and the host PV is being deleted: only Xylem's finalizer is removed (I2)":                    {seen(hostPolicy(retains), noClaim, hostDeleted), lifecycle.DropKept},
		"Retain set in the host after Xylem set Delete: the leaf claim stays until leaf_pv sets Retain (I2)":              {seen(hostPolicy(retains), leafPolicy(deletes)), lifecycle.None},
		"Retain set in the host after Xylem set Delete, and the host PV is being deleted: leaf_pv sets Retain first (I2)": {seen(hostPolicy(retains), leafPolicy(deletes), hostDeleted), lifecycle.SetRetain},
		"the leaf PV's original policy is Retain (I2)":                                                                    {seen(gave(string(retains))), lifecycle.UpdateHost},
		"both sides' policies are Retain: the leaf claim is deleted (I2)":                                                 {seen(gave(string(retains)), hostPolicy(retains)), lifecycle.DeleteClaim},
		"the leaf PV's original policy is Recycle, which is not Delete (I2)":                                              {seen(gave(string(corev1.PersistentVolumeReclaimRecycle))), lifecycle.UpdateHost},
		"the leaf PV's original policy is Retain, and the member's admin set Delete later (I2)":                           {seen(gave(string(retains)), leafPolicy(deletes)), lifecycle.None},
		"the leaf PV's original policy is unknown (I2)":                                                                   {seen(gave("")), lifecycle.UpdateHost},
		"the leaf PV lost its stamp: Xylem must not set Delete (I4)":                                                      {seen(unstamped), lifecycle.DeleteClaim},
		"the leaf PV lost its stamp and has policy Delete: the leaf claim protects it (I2, I4)":                           {seen(unstamped, leafPolicy(deletes)), lifecycle.None},
		"the leaf PV is stamped for another root: not set to Delete (I2)": {
			seen(func(s *volume.Observed) { s.Stamp.UID = "other-root" }), lifecycle.DeleteClaim},
		"the leaf PV is stamped for another root and has policy Delete (I2)": {
			seen(func(s *volume.Observed) { s.Stamp.UID = "other-root" }, leafPolicy(deletes)), lifecycle.None},
		"policy Recycle in the host is not Delete (I2)": {seen(hostPolicy(corev1.PersistentVolumeReclaimRecycle)), lifecycle.DeleteClaim},

		"an admin cleared claimRef: no action":                                 {seen(noClaimRef, phase(corev1.VolumeAvailable)), lifecycle.None},
		"an admin cleared claimRef, and the phase is outdated: no panic":       {seen(noClaimRef), lifecycle.None},
		"an admin cleared claimRef, and then deleted the PV: the data is kept": {seen(noClaimRef, phase(corev1.VolumeAvailable), hostDeleted), lifecycle.DropKept},
		"an admin cleared claimRef's UID, and then deleted the PV":             {seen(phase(corev1.VolumeAvailable), hostDeleted, func(s *volume.Observed) { s.Host.Spec.ClaimRef.UID, s.LeafClaim = "", nil }), lifecycle.DropKept},
		"the host reports that reclaiming failed: handled like Released":       {seen(phase(corev1.VolumeFailed)), lifecycle.SetDelete},
		"reclaiming failed before any claim used the PV":                       {seen(phase(corev1.VolumeFailed), noClaimRef), lifecycle.None},

		"policy Recycle: reclaiming fails, and the leaf claim is deleted":                                                 {seen(phase(corev1.VolumeFailed), recycles), lifecycle.DeleteClaim},
		"policy Recycle, and the leaf claim was deleted: reported, and no data is destroyed":                              {seen(phase(corev1.VolumeFailed), recycles, noClaim), lifecycle.None},
		"policy Recycle, and an admin deletes the PV: the finalizer is removed, and the data is kept":                     {seen(phase(corev1.VolumeFailed), recycles, noClaim, hostDeleted), lifecycle.DropKept},
		"reclaiming failed, and an admin set Delete":                                                                      {seen(phase(corev1.VolumeFailed), noClaim), lifecycle.SetDelete},
		"reclaiming failed, and an admin set Retain: settled (I5)":                                                        {seen(phase(corev1.VolumeFailed), hostPolicy(retains), noClaim), lifecycle.None},
		"reclaiming failed, and a PV with policy Retain is being deleted: the finalizer is removed, and the data is kept": {seen(phase(corev1.VolumeFailed), hostPolicy(retains), noClaim, hostDeleted), lifecycle.DropKept},

		"the leaf PV was re-created: leaf_pv sets Retain first (I2)":                                                                                               {seen(recreated(deletes)), lifecycle.None},
		"the leaf PV was re-created and set to Retain: the leaf claim is deleted, and the data is kept":                                                            {seen(recreated(retains)), lifecycle.DeleteClaim},
		"the leaf PV was re-created, and another claim has it: the leaf claim is deleted":                                                                          {seen(recreated(deletes), func(s *volume.Observed) { s.Recreated.Spec.ClaimRef.UID = "foreign" }), lifecycle.DeleteClaim},
		"the leaf PV was re-created, and the leaf claim was deleted: the host PV is deleted (I1)":                                                                  {seen(recreated(retains), noClaim), lifecycle.DropHost},
		"the leaf PV was re-created, with Retain in the host: the leaf claim is deleted":                                                                           {seen(recreated(retains), hostPolicy(retains)), lifecycle.DeleteClaim},
		"the leaf PV was re-created and not set to Retain yet, and the host PV is being deleted: leaf_pv acts first (I2)":                                          {seen(recreated(deletes), hostPolicy(retains), hostDeleted), lifecycle.None},
		"the leaf PV was re-created, with Retain in the host, and the leaf claim was deleted: no action":                                                           {seen(recreated(retains), hostPolicy(retains), noClaim), lifecycle.None},
		"the leaf PV was re-created, and the claim exists":                                                                                                         {seen(recreated(deletes), phase(corev1.VolumeBound)), lifecycle.None},
		"an admin freed the PV, and the next claim was deleted before the leaf PV's claimRef was changed: destroyed (I2)":                                          {seen(noClaim, leafReleased, func(s *volume.Observed) { s.Stamp.UID = "earlier-root" }), lifecycle.SetDelete},
		"an admin freed the PV, and the next claim was deleted before the leaf PV's claimRef was changed, with Retain in the host":                                 {seen(noClaim, leafReleased, hostPolicy(retains), func(s *volume.Observed) { s.Stamp.UID = "earlier-root" }), lifecycle.None},
		"an admin freed the PV, and an earlier root's leaf claim has the leaf PV: this leaf claim is deleted":                                                      {seen(staleClaim, noClaimRef, phase(corev1.VolumeAvailable)), lifecycle.DeleteStale},
		"an admin freed the PV, which is now bound to the next claim, and an earlier leaf claim has the leaf PV: this leaf claim is deleted, and the data is kept": {seen(staleClaim, phase(corev1.VolumeBound)), lifecycle.DeleteStale},
		"an admin freed the PV, and the next claim was deleted, with policy Delete: the earlier leaf claim is deleted before the data (I2)":                        {seen(staleClaim), lifecycle.DeleteStale},
		"an admin freed the PV, and an earlier leaf claim has the leaf PV, whose policy is Delete: leaf_pv sets Retain first (I2)":                                 {seen(staleClaim, phase(corev1.VolumeBound), leafPolicy(deletes)), lifecycle.None},
		"an admin freed the PV, and the earlier leaf claim is already being deleted":                                                                               {seen(staleClaim, phase(corev1.VolumeBound), func(s *volume.Observed) { s.Holder.DeletionTimestamp = &now }), lifecycle.None},
		"an admin freed the PV, an earlier leaf claim has the leaf PV, and Xylem's finalizer is already removed":                                                   {seen(staleClaim, func(s *volume.Observed) { s.Host.Finalizers = nil }), lifecycle.None},

		"a second host PV of a claim with another volume, and no objects in the member (I1)":           {seen(claimLives, noLeaf, noClaim), lifecycle.DropHost},
		"a second host PV of a claim has policy Retain and is being deleted: the finalizer is removed": {seen(claimLives, hostPolicy(retains), noClaim, hostDeleted), lifecycle.DropKept},
		"a second host PV of a claim, whose leaf PV exists in the member":                              {seen(claimLives, noClaim), lifecycle.None},

		"abandoned while in use: host_volume releases the volume":  {seen(phase(corev1.VolumeBound), abandon), lifecycle.None},
		"abandoned when released (I2)":                             {seen(abandon), lifecycle.None},
		"abandoned after the leaf PV was set to Delete":            {seen(abandon, leafPolicy(corev1.PersistentVolumeReclaimDelete)), lifecycle.None},
		"abandoned without claimRef: no panic":                     {seen(abandon, noClaimRef), lifecycle.None},
		"the abandon annotation has a value other than true":       {seen(func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationAbandon] = "yes" }), lifecycle.SetDelete},
		"abandoned, and Xylem's finalizer is already removed (I5)": {seen(abandon, func(s *volume.Observed) { s.Host.Finalizers = nil }), lifecycle.None},
	} {
		t.Run(name, func(t *testing.T) {
			if plan := lifecycle.NextPlan(tc.seen); plan.Step != tc.want && plan.StepOwnedBy(lifecycle.RootPV) != tc.want {
				t.Errorf("step is %q, want %q: %+v", plan.StepOwnedBy(lifecycle.RootPV), tc.want, plan)
			}
		})
	}
}

// In every combination of states, Xylem starts to destroy a volume only if the host PV is Released
// or Failed, both sides' policies are Delete, and the stamp names the right root (I2).
func TestNeverDestroysWithoutEvidence(t *testing.T) {
	phases := []corev1.PersistentVolumePhase{"", corev1.VolumePending, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed}
	policies := []corev1.PersistentVolumeReclaimPolicy{deletes, retains, corev1.PersistentVolumeReclaimRecycle, ""}
	n := 0
	for _, p := range phases {
		for _, host := range policies {
			for _, given := range policies {
				for _, stands := range policies {
					for _, stamped := range []bool{true, false} {
						for _, uid := range []string{"root-uid", "other"} {
							n++
							s := seen(phase(p), hostPolicy(host), gave(string(given)), leafPolicy(stands), func(s *volume.Observed) {
								s.LeafStamped, s.Stamp.UID = stamped, root.UID
								if uid != "root-uid" {
									s.Stamp.UID = "other"
								}
							})
							ended := p == corev1.VolumeReleased || p == corev1.VolumeFailed
							asked := ended && host == deletes && given == deletes && stamped && uid == "root-uid"
							switch step := lifecycle.NextPlan(s).StepOwnedBy(lifecycle.RootPV); step {
							case lifecycle.SetDelete:
								if !asked {
									t.Errorf("set to Delete without evidence: phase %q, host policy %q, original policy %q, stamped %v, root %s", p, host, given, stamped, uid)
								}
							case lifecycle.DeleteClaim:
								if !ended || !asked && stands != retains {
									t.Errorf("leaf claim deleted, which destroys the volume: phase %q, host policy %q, original policy %q, leaf policy %q, stamped %v, root %s", p, host, given, stands, stamped, uid)
								}
							case lifecycle.None:
							default:
								t.Errorf("unexpected step %s", step)
							}
						}
					}
				}
			}
		}
	}
	if n != 6*4*4*4*2*2 {
		t.Errorf("checked %d combinations, want all", n)
	}
}
