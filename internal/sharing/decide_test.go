package sharing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const deletes = corev1.PersistentVolumeReclaimDelete

// seen returns an observation of a recorded volume whose copy a Pod needs and does not have yet.
func seen(change ...func(*Observed)) Observed {
	o := Observed{Place: here(), Host: hostpv.VolumeWithCopyIn(sharedPV(), here().ClusterID), Class: hostClass(), MemberClass: memberClass(), WantedByPod: true}
	for _, f := range change {
		f(&o)
	}
	return o
}

func unwanted(o *Observed) { o.WantedByPod = false }

func unrecorded(o *Observed) { o.Host = hostpv.VolumeWithoutCopyIn(o.Host, o.Place.ClusterID) }

// withClaim adds the copy's claim, which is not bound yet.
func withClaim(o *Observed) {
	o.Claim = o.newCopyClaim()
	o.Claim.UID, o.Claim.Status.Phase = "copy-uid", corev1.ClaimPending
}

// withCopy adds the copy's claim and PV, which are bound.
func withCopy(o *Observed) {
	withClaim(o)
	o.Claim.Status.Phase = corev1.ClaimBound
	pv, refusal := o.newCopyVolume()
	if refusal != nil {
		panic(refusal)
	}
	o.Volume = pv
}

func released(o *Observed) { o.Host.Status.Phase = corev1.VolumeReleased }

func freed(o *Observed) { o.Host.Spec.ClaimRef, o.Host.Status.Phase = nil, corev1.VolumeAvailable }

func abandoned(o *Observed) {
	metav1.SetMetaDataAnnotation(&o.Host.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
}

func gone(o *Observed) { o.Host = nil }

func hostDeleting(o *Observed) { o.Host.DeletionTimestamp = &metav1.Time{} }

func claimDeleting(o *Observed) { o.Claim.DeletionTimestamp = &metav1.Time{} }

func volumeDeleting(o *Observed) { o.Volume.DeletionTimestamp = &metav1.Time{} }

func noClaim(o *Observed) { o.Claim = nil }

func noVolume(o *Observed) { o.Volume = nil }

func lost(o *Observed) { o.Claim.Status.Phase = corev1.ClaimLost }

// policy sets the reclaim policy of the copy's PV, as the member's admin can.
func policy(is corev1.PersistentVolumeReclaimPolicy) func(*Observed) {
	return func(o *Observed) { o.Volume.Spec.PersistentVolumeReclaimPolicy = is }
}

// reclaimed gives the host PV to another claim.
func reclaimed(o *Observed) { o.Host.Spec.ClaimRef.UID = "claim-2" }

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		observed Observed
		step     Step
		reason   string
	}{
		// Creation.
		"no member has a copy, and no Pod needs one":        {seen(unwanted, unrecorded), None, ""},
		"a Pod needs a copy: the copy is recorded first":    {seen(unrecorded), Record, ""},
		"the copy is recorded: the claim is created":        {seen(), CreateClaim, ""},
		"the copy is recorded, and no Pod needs it anymore": {seen(unwanted), None, ""},
		"the claim exists: the PV is created":               {seen(withClaim), CreateVolume, ""},
		"the member has not bound the claim yet":            {seen(withCopy, func(o *Observed) { o.Claim.Status.Phase = corev1.ClaimPending }), None, ""},
		"the claim is bound":                                {seen(withCopy), Ready, ""},
		"the claim is bound, and no Pod needs it":           {seen(withCopy, unwanted), None, ""},
		"the claim is bound, and the host's class is gone":  {seen(withCopy, func(o *Observed) { o.Class = nil }), Ready, ""},
		"the host PV does not exist":                        {seen(gone), None, ""},
		"the host PV is not bound":                          {seen(unrecorded, func(o *Observed) { o.Host.Status.Phase = corev1.VolumePending }), None, ""},
		"the host PV has no backend":                        {seen(unrecorded, func(o *Observed) { o.Host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeShared] = "" }), None, ""},
		"the claim names another PV":                        {seen(withCopy, func(o *Observed) { o.Claim.Spec.VolumeName = "another" }), None, ""},

		// Refusals.
		"the registration has another driver for the backend": {seen(func(o *Observed) { o.Host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeDriver] = "smb.example.com" }), None, v1alpha1.ReasonBackendMismatch},
		"the host's class does not exist":                     {seen(func(o *Observed) { o.Class = nil }), None, v1alpha1.ReasonClassNotFound},
		"the host's class maps to a class that is not shared": {seen(func(o *Observed) { o.Class.Name = "fast" }), None, v1alpha1.ReasonBackendMismatch},
		"the member's class does not exist":                   {seen(func(o *Observed) { o.MemberClass = nil }), None, v1alpha1.ReasonClassNotFound},
		"the host PV is being deleted":                        {seen(hostDeleting), None, v1alpha1.ReasonVolumeTerminating},
		"the host PV is being deleted, and lacks the record":  {seen(withCopy, unrecorded, hostDeleting), None, v1alpha1.ReasonVolumeTerminating},
		"the member has a foreign claim with this name":       {seen(func(o *Observed) { o.Claim = &corev1.PersistentVolumeClaim{} }), None, v1alpha1.ReasonNameTaken},
		"the member has the counterpart of an earlier claim": {seen(func(o *Observed) {
			o.Claim = &corev1.PersistentVolumeClaim{}
			mirror.Origin{HostID: o.Place.HostID, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "earlier"}.StampLeaf(o.Claim)
		}), None, v1alpha1.ReasonVolumeTerminating},
		"the member has a foreign PV with this name":       {seen(func(o *Observed) { o.Volume = &corev1.PersistentVolume{} }), None, v1alpha1.ReasonNameTaken},
		"a Secret depends on the volume, before the claim": {seen(perVolume), None, v1alpha1.ReasonBackendMismatch},
		"a Secret depends on the volume, before the PV":    {seen(withClaim, perVolume), None, v1alpha1.ReasonBackendMismatch},

		// The host was restored.
		"the host lost the record":                                    {seen(withCopy, unwanted, unrecorded), Record, ""},
		"the host lost the record of a claim":                         {seen(withClaim, unwanted, unrecorded), Record, ""},
		"the host lost the record of a PV":                            {seen(withCopy, noClaim, unwanted, unrecorded), Record, ""},
		"the host lost the record, and its claim is gone":             {seen(withCopy, unwanted, unrecorded, released), Record, ""},
		"the host lost the record, and the host PV was created again": {seen(withCopy, unwanted, unrecorded, func(o *Observed) { o.Host.UID = "host-2" }), Record, ""},
		"the host lost the record, and its PV is being deleted":       {seen(withCopy, unwanted, unrecorded, hostDeleting, released), DeleteClaim, ""},
		"the host lost the record of an abandoned volume":             {seen(withCopy, unwanted, unrecorded, abandoned), DeleteClaim, ""},
		"the host lost the record of a Lost claim":                    {seen(withClaim, unwanted, unrecorded, lost), Record, ""},

		// Deletion.
		"the host's claim is gone: the claim is deleted first":    {seen(withCopy, unwanted, released), DeleteClaim, ""},
		"the host PV has failed":                                  {seen(withCopy, unwanted, func(o *Observed) { o.Host.Status.Phase = corev1.VolumeFailed }), DeleteClaim, ""},
		"the host PV is gone":                                     {seen(withCopy, unwanted, gone), DeleteClaim, ""},
		"the host PV was created again":                           {seen(withCopy, unwanted, func(o *Observed) { o.Host.UID = "host-2" }), DeleteClaim, ""},
		"an admin abandoned the volume":                           {seen(withCopy, unwanted, abandoned), DeleteClaim, ""},
		"an admin freed the host PV":                              {seen(withCopy, unwanted, freed), DeleteClaim, ""},
		"another claim has the host PV, and a Pod needs it":       {seen(withCopy, reclaimed), DeleteClaim, v1alpha1.ReasonVolumeTerminating},
		"the claim has lost its PV":                               {seen(withClaim, lost), DeleteClaim, v1alpha1.ReasonVolumeTerminating},
		"the claim has lost its PV, and is already being deleted": {seen(withClaim, lost, claimDeleting), None, v1alpha1.ReasonVolumeTerminating},
		"a Pod still uses the claim":                              {seen(withCopy, unwanted, released, claimDeleting), None, ""},
		"the claim is gone: the PV is deleted":                    {seen(withCopy, unwanted, released, noClaim), DeleteVolume, ""},
		"the claim is gone, and the host still needs the copy":    {seen(withCopy, noClaim), DeleteVolume, v1alpha1.ReasonVolumeTerminating},
		"the claim is gone, and the PV is already being deleted":  {seen(withCopy, unwanted, released, noClaim, volumeDeleting), None, ""},
		"the PV is for an earlier claim with this name":           {seen(withCopy, func(o *Observed) { o.Claim.UID = "copy-2" }), DeleteVolume, v1alpha1.ReasonVolumeTerminating},
		"the PV has no claimRef":                                  {seen(withCopy, func(o *Observed) { o.Volume.Spec.ClaimRef = nil }), DeleteVolume, v1alpha1.ReasonVolumeTerminating},
		"the PV is a copy for another claim of the host":          {seen(withCopy, func(o *Observed) { o.Volume.Annotations[v1alpha1.AnnotationCopyFor] = "claim-2" }), DeleteVolume, v1alpha1.ReasonVolumeTerminating},
		"only the claim is left":                                  {seen(withCopy, unwanted, released, noVolume), DeleteClaim, ""},
		"the host PV is gone, and only the PV is left":            {seen(withCopy, unwanted, gone, noClaim), DeleteVolume, ""},

		// The member's admin changed the policy of the copy's PV.
		"the PV has policy Delete, and the copy is needed":                 {seen(withCopy, unwanted, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and a Pod waits: shared_pv sets Retain": {seen(withCopy, policy(deletes)), Ready, ""},
		"the PV has policy Delete, and the host's claim is gone":           {seen(withCopy, unwanted, released, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and the claim is being deleted":         {seen(withCopy, unwanted, released, claimDeleting, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and only the PV is left":                {seen(withCopy, unwanted, released, noClaim, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and is being deleted":                   {seen(withCopy, unwanted, released, noClaim, volumeDeleting, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and the host PV is gone":                {seen(withCopy, unwanted, gone, policy(deletes)), SetRetain, ""},
		"the PV has policy Delete, and the host lost the record":           {seen(withCopy, unwanted, unrecorded, policy(deletes)), Record, ""},
		"the PV has policy Recycle":                                        {seen(withCopy, unwanted, policy(corev1.PersistentVolumeReclaimRecycle)), SetRetain, ""},
		"a foreign PV with this name has policy Delete":                    {seen(unwanted, released, func(o *Observed) { o.Volume = &corev1.PersistentVolume{} }, policy(deletes)), DropRecord, ""},

		// The record.
		"the host's claim is gone, and no copy is left":            {seen(unwanted, released), DropRecord, ""},
		"an admin freed the host PV, and no copy is left":          {seen(unwanted, freed), DropRecord, ""},
		"an admin abandoned the volume, and no copy is left":       {seen(unwanted, abandoned), DropRecord, ""},
		"a released host PV is being deleted, and no copy is left": {seen(unwanted, released, hostDeleting), DropRecord, ""},
		"the host PV is released, and nothing is recorded":         {seen(unwanted, released, unrecorded), None, ""},
		"a foreign claim with this name does not keep the record":  {seen(unwanted, released, func(o *Observed) { o.Claim = &corev1.PersistentVolumeClaim{} }), DropRecord, ""},
	} {
		t.Run(name, func(t *testing.T) {
			step, refusal := NextCopyStep(tc.observed)
			reason := ""
			if refusal != nil {
				reason = refusal.Reason
			}
			if step != tc.step || reason != tc.reason {
				t.Errorf("got %s, %v; want %s, reason %q", step, refusal, tc.step, tc.reason)
			}
		})
	}
}

// parameters sets parameters of the member's class.
func parameters(p map[string]string) func(*Observed) {
	return func(o *Observed) {
		o.MemberClass = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Provisioner: driver, Parameters: p}
	}
}

func perVolume(o *Observed) {
	parameters(map[string]string{nodeStageKey + "-name": "${pv.name}", nodeStageKey + "-namespace": "storage"})(o)
}
