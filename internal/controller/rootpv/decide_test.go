package rootpv

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
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

// seen is a released host PV, policy Delete on both sides, whose leaf PV and
// leaf claim are there as they are while in use.
func seen(change ...func(*observed)) observed {
	leaf := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: retains,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	origin := mirror.OriginFor(here.HostID, root)
	origin.Stamp(leaf)
	leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(deletes)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim-uid", ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	origin.Stamp(claim)
	host := mirror.HostVolume(leaf, root, deletes, here)
	host.UID = "host-pv-uid"
	host.Status.Phase = corev1.VolumeReleased
	o := observed{host: host, leafName: leaf.Name, leafUID: leaf.UID, leaf: leaf, stamped: true, origin: origin, claim: claim}
	for _, c := range change {
		c(&o)
	}
	return o
}

func phase(p corev1.PersistentVolumePhase) func(*observed) {
	return func(o *observed) { o.host.Status.Phase = p }
}

func hostPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*observed) {
	return func(o *observed) { o.host.Spec.PersistentVolumeReclaimPolicy = p }
}

// gave is the policy that the member had given its PV when it was mirrored.
func gave(policy string) func(*observed) {
	return func(o *observed) { o.leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = policy }
}

func leafPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*observed) {
	return func(o *observed) { o.leaf.Spec.PersistentVolumeReclaimPolicy = p }
}

func hostDeleted(o *observed)  { o.host.DeletionTimestamp = &now }
func leafDeleted(o *observed)  { o.leaf.DeletionTimestamp = &now }
func claimDeleted(o *observed) { o.claim.DeletionTimestamp = &now }
func noLeaf(o *observed)       { o.leaf, o.stamped, o.origin = nil, false, mirror.Origin{} }
func noClaim(o *observed)      { o.claim = nil }
func unstamped(o *observed)    { o.stamped, o.origin = false, mirror.Origin{} }
func recycles(o *observed)     { hostPolicy(corev1.PersistentVolumeReclaimRecycle)(o) }
func noClaimRef(o *observed)   { o.host.Spec.ClaimRef = nil }
func leafReleased(o *observed) { o.leaf.Status.Phase = corev1.VolumeReleased }

// recreated: a leaf PV of the name of the one that was mirrored, and of another UID.
func recreated(policy corev1.PersistentVolumeReclaimPolicy) func(*observed) {
	return func(o *observed) {
		o.replacement = o.leaf.DeepCopy()
		o.replacement.UID, o.replacement.Spec.PersistentVolumeReclaimPolicy = "recreated", policy
		noLeaf(o)
	}
}

// staleClaim: the leaf PV is still bound to the leaf claim of an earlier root.
func staleClaim(o *observed) {
	o.stale, o.claim = o.claim, nil
	o.staleOrigin = o.origin
	o.staleOrigin.UID = "earlier-root"
	o.origin = o.staleOrigin
	o.staleOrigin.Stamp(&o.stale.ObjectMeta)
}

func abandon(o *observed) { o.host.Annotations[v1alpha1.AnnotationAbandon] = "true" }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"no host PV of this member": {observed{}, nothing{}},
		"in use":                    {seen(phase(corev1.VolumeBound)), nothing{}},
		"in use, and somebody deletes the host PV: protected (I2)":                {seen(phase(corev1.VolumeBound), hostDeleted), nothing{}},
		"in use, and the leaf PV and claim vanish: no evidence (I2)":              {seen(phase(corev1.VolumeBound), noLeaf, noClaim), nothing{}},
		"the claim is Pending against it":                                         {seen(phase(corev1.VolumeAvailable)), nothing{}},
		"no phase yet, right after it was made":                                   {seen(phase("")), nothing{}},
		"let go of: our finalizer is gone":                                        {seen(func(o *observed) { o.host.Finalizers = nil }), nothing{}},
		"released, Delete on both sides: the leaf PV is put to Delete first (I2)": {seen(), flip{}},
		"put to Delete: the leaf claim goes":                                      {seen(leafPolicy(deletes)), deleteClaim{}},
		"the leaf claim ends":                                                     {seen(leafPolicy(deletes), claimDeleted), nothing{}},
		"the leaf claim is gone, the leaf PV is not":                              {seen(leafPolicy(deletes), noClaim), nothing{}},
		"the leaf PV ends":                                                        {seen(leafPolicy(deletes), noClaim, leafDeleted), nothing{}},
		"the leaf claim went before the leaf PV was put to Delete (I6)":           {seen(noClaim), flip{}},
		"the leaf PV is being deleted in the member: its policy is let be":        {seen(leafDeleted), deleteClaim{}},
		"both are gone: the host PV goes, when that is proven (I1)":               {seen(noLeaf, noClaim), release{leafGone: true, also: true}},
		"both are gone, the host PV is deleted: the finalizer goes (I6)":          {seen(noLeaf, noClaim, hostDeleted), release{leafGone: true, also: true}},
		"the leaf PV is gone, the leaf claim is Lost: it goes":                    {seen(noLeaf), deleteClaim{}},

		"Retain in the host: the leaf claim goes, the volume stays (I2)":                         {seen(hostPolicy(retains)), deleteClaim{}},
		"Retain in the host: at rest (I5)":                                                       {seen(hostPolicy(retains), noClaim), nothing{}},
		"Retain in the host, nothing is left in the member: nothing is inferred":                 {seen(hostPolicy(retains), noClaim, noLeaf), nothing{}},
		"Retain in the host, and it is deleted: our finalizer goes, nothing else (I2)":           {seen(hostPolicy(retains), noClaim, hostDeleted), release{}},
		"Retain set in the host after the flip: the leaf claim stays until leaf_pv retains (I2)": {seen(hostPolicy(retains), leafPolicy(deletes)), nothing{}},
		"the same, and the host PV is deleted: our finalizer goes, nothing else (I2)":            {seen(hostPolicy(retains), leafPolicy(deletes), hostDeleted), release{}},
		"the member retains (I2)":                                                              {seen(gave(string(retains))), deleteClaim{}},
		"the member recycles, which is not Delete (I2)":                                        {seen(gave(string(corev1.PersistentVolumeReclaimRecycle))), deleteClaim{}},
		"the member retains, its admin set Delete later (I2)":                                  {seen(gave(string(retains)), leafPolicy(deletes)), nothing{}},
		"what the member gave is not known (I2)":                                               {seen(gave("")), deleteClaim{}},
		"the leaf PV lost its stamp: not ours to flip (I4)":                                    {seen(unstamped), deleteClaim{}},
		"the leaf PV lost its stamp and stands at Delete: the claim is what keeps it (I2, I4)": {seen(unstamped, leafPolicy(deletes)), nothing{}},
		"the leaf PV is stamped for another root: not flipped (I2)": {
			seen(func(o *observed) { o.origin.UID = "other-root" }), deleteClaim{}},
		"the leaf PV is stamped for another root and stands at Delete (I2)": {
			seen(func(o *observed) { o.origin.UID = "other-root" }, leafPolicy(deletes)), nothing{}},
		"policy Recycle in the host is not Delete (I2)": {seen(hostPolicy(corev1.PersistentVolumeReclaimRecycle)), deleteClaim{}},

		"an admin cleared claimRef: nothing is asked for":           {seen(noClaimRef, phase(corev1.VolumeAvailable)), nothing{}},
		"an admin cleared claimRef, the phase is behind: no panic":  {seen(noClaimRef), nothing{}},
		"an admin cleared claimRef, then deleted the PV: data stay": {seen(noClaimRef, phase(corev1.VolumeAvailable), hostDeleted), release{}},
		"an admin cleared claimRef's UID, then deleted the PV":      {seen(phase(corev1.VolumeAvailable), hostDeleted, func(o *observed) { o.host.Spec.ClaimRef.UID = "" }), release{}},
		"reclaiming failed, says the host: as Released":             {seen(phase(corev1.VolumeFailed)), flip{}},
		"reclaiming failed before any claim had it":                 {seen(phase(corev1.VolumeFailed), noClaimRef), nothing{}},

		"policy Recycle: reclaiming fails, and the leaf claim goes":            {seen(phase(corev1.VolumeFailed), recycles), deleteClaim{}},
		"the same, the leaf claim is gone: reported, nothing is destroyed":     {seen(phase(corev1.VolumeFailed), recycles, noClaim), unsupported{}},
		"the same, and an admin deletes the PV: the finalizer goes, data stay": {seen(phase(corev1.VolumeFailed), recycles, noClaim, hostDeleted), release{}},
		"the same, and an admin chose Delete":                                  {seen(phase(corev1.VolumeFailed), noClaim), flip{}},
		"the same, and an admin chose Retain: at rest (I5)":                    {seen(phase(corev1.VolumeFailed), hostPolicy(retains), noClaim), nothing{}},
		"the same, and the PV is deleted: the finalizer goes, data stay":       {seen(phase(corev1.VolumeFailed), hostPolicy(retains), noClaim, hostDeleted), release{}},

		"the leaf PV was re-created: leaf_pv holds it first (I2)":                {seen(recreated(deletes)), nothing{}},
		"the same, held: the leaf claim goes, the data stay":                     {seen(recreated(retains)), deleteClaim{}},
		"the same, another claim has it: the leaf claim goes":                    {seen(recreated(deletes), func(o *observed) { o.replacement.Spec.ClaimRef.UID = "foreign" }), deleteClaim{}},
		"the same, the leaf claim is gone: the host PV goes (I1)":                {seen(recreated(retains), noClaim), release{leafGone: true, also: true}},
		"the leaf PV was re-created, Retain in the host: the leaf claim goes":    {seen(recreated(retains), hostPolicy(retains)), deleteClaim{}},
		"the same, not held yet, and the host PV is deleted: leaf_pv first (I2)": {seen(recreated(deletes), hostPolicy(retains), hostDeleted), nothing{}},
		"the same, the leaf claim is gone: at rest":                              {seen(recreated(retains), hostPolicy(retains), noClaim), nothing{}},
		"the leaf PV was re-created, the claim lives":                            {seen(recreated(deletes), phase(corev1.VolumeBound)), nothing{}},
		"freed, its next claim went before the repoint: destroyed (I2)":          {seen(noClaim, leafReleased, func(o *observed) { o.origin.UID = "earlier-root" }), flip{}},
		"the same, Retain in the host":                                           {seen(noClaim, leafReleased, hostPolicy(retains), func(o *observed) { o.origin.UID = "earlier-root" }), nothing{}},
		"freed, an earlier root's leaf claim has the leaf PV: it goes":           {seen(staleClaim, noClaimRef, phase(corev1.VolumeAvailable)), deleteStale{}},
		"the same, bound to the next claim: it goes, and the data stay":          {seen(staleClaim, phase(corev1.VolumeBound)), deleteStale{}},
		"the same, the next claim is gone, Delete: it goes before the data (I2)": {seen(staleClaim), deleteStale{}},
		"the same, and the leaf PV is not held: leaf_pv holds it first (I2)":     {seen(staleClaim, phase(corev1.VolumeBound), leafPolicy(deletes)), nothing{}},
		"the same, and it is being deleted":                                      {seen(staleClaim, phase(corev1.VolumeBound), func(o *observed) { o.stale.DeletionTimestamp = &now }), nothing{}},
		"the same, and the host PV was let go of":                                {seen(staleClaim, func(o *observed) { o.host.Finalizers = nil }), nothing{}},

		"abandoned while in use: host_volume lets go of it": {seen(phase(corev1.VolumeBound), abandon), nothing{}},
		"abandoned when released (I2)":                      {seen(abandon), nothing{}},
		"abandoned when put to Delete already":              {seen(abandon, leafPolicy(corev1.PersistentVolumeReclaimDelete)), nothing{}},
		"abandoned without claimRef: no panic":              {seen(abandon, noClaimRef), nothing{}},
		"abandon with another value than true":              {seen(func(o *observed) { o.host.Annotations[v1alpha1.AnnotationAbandon] = "yes" }), flip{}},
		"abandoned before, and let go of (I5)":              {seen(abandon, func(o *observed) { o.host.Finalizers = nil }), nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.observed), cmp.AllowUnexported(release{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the combination, a destruction begins only with Released or Failed, Delete on
// both sides, the stamp, and the right root (I2).
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
							o := seen(phase(p), hostPolicy(host), gave(string(given)), leafPolicy(stands), func(o *observed) {
								o.stamped, o.origin.UID = stamped, root.UID
								if uid != "root-uid" {
									o.origin.UID = "other"
								}
							})
							ended := p == corev1.VolumeReleased || p == corev1.VolumeFailed
							asked := ended && host == deletes && given == deletes && stamped && uid == "root-uid"
							switch d := decide(o).(type) {
							case flip:
								if !asked {
									t.Errorf("flipped: phase %q, host %q, member gave %q, stamped %v, root %s", p, host, given, stamped, uid)
								}
							case deleteClaim:
								if !ended || !asked && stands != retains {
									t.Errorf("leaf claim deleted, which destroys: phase %q, host %q, member gave %q and has %q, stamped %v, root %s", p, host, given, stands, stamped, uid)
								}
							case nothing:
							default:
								t.Errorf("unexpected decision %T", d)
							}
						}
					}
				}
			}
		}
	}
	if n != 6*4*4*4*2*2 {
		t.Errorf("looked at %d combinations", n)
	}
}
