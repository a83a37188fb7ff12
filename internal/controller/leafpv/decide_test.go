package leafpv

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

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
)

// seen is a leaf claim of ours that the member has just bound: its PV is as the
// member's provisioner made it.
func seen(change ...func(*observed)) observed {
	root := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid",
			Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disk")},
	}
	origin := mirror.OriginFor(here.HostID, root)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	origin.Stamp(claim)
	o := observed{
		member: here, root: root, claim: claim, claimOrigin: origin, origin: origin, tenant: "namespace-uid",
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, ReclaimPolicy: ptr.To(deletes)},
		leaf: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: deletes, StorageClassName: "gp3",
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: claim.UID},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// stamped: the leaf PV carries the stamp and stands at Retain.
func stamped(o *observed) {
	before := o.claimOrigin
	o.claimOrigin = o.origin
	if held := changed(o.leaf, o.hold); held != nil {
		o.leaf, o.stamped = held, true
	}
	o.claimOrigin = before
}

// mirrored: the host PV is there and bound to the root.
func mirrored(o *observed) {
	stamped(o)
	o.host = mirror.HostVolume(o.leaf, o.root, deletes, here)
	o.host.UID = "host-uid"
	o.host.Status.Phase = corev1.VolumeBound
	o.root.Spec.VolumeName = o.host.Name
}

// recreated: the member has another leaf PV of that name, for the leaf claim, and the root
// is bound to the host PV that represents the earlier one.
func recreated(o *observed) {
	fresh := o.leaf.DeepCopy()
	mirrored(o)
	fresh.UID = "leaf-uid-2"
	o.leaf, o.stamped = fresh, false
	o.replaced, o.host, o.nameTaken = o.host, nil, true
}

// released: the host's PV controller says that the root is gone.
func released(o *observed) { o.host.Status.Phase = corev1.VolumeReleased }

// terminating: somebody in the member deletes the leaf PV.
func terminating(o *observed) { o.leaf.DeletionTimestamp = &now }

func rootGone(o *observed)   { o.root, o.class = nil, nil }
func noClaim(o *observed)    { o.claim, o.claimOrigin = nil, mirror.Origin{} }
func noHost(o *observed)     { o.host = nil }
func notStamped(o *observed) { o.stamped = false }
func nameTaken(o *observed)  { o.nameTaken = true }

func suffixTaken(o *observed) { o.suffixTaken = true }

var suffixed = mirror.HostVolumeName("pv-1", here.ClusterID, true)

// dropped: neither root nor leaf claim is there any more.
func dropped(o *observed) {
	stamped(o)
	noClaim(o)
	o.root = nil
	o.leaf.Status.Phase = corev1.VolumeReleased
}

// asks: a claim of the root's name asks for the volume, and an admin lets it.
func asks(o *observed) {
	o.member.Adopt = []string{"pv-1"}
	o.class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: v1alpha1.ProvisionerName, ReclaimPolicy: ptr.To(deletes)}
	o.asking = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "new-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1", StorageClassName: ptr.To("gp3"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	askedIn(here.ClusterID)(o)
}

func askedIn(id string) func(*observed) {
	return func(o *observed) { o.asking.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: id} }
}

func remembered(o *observed) { o.remembered = true }

func notAllowed(o *observed) { o.member.Adopt = []string{"pv-2"} }

func leafPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*observed) {
	return func(o *observed) { o.leaf.Spec.PersistentVolumeReclaimPolicy = p }
}

func hostPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*observed) {
	return func(o *observed) { o.host.Spec.PersistentVolumeReclaimPolicy = p }
}

// hostClaim is the claim that the host PV is for.
func hostClaim(uid types.UID, phase corev1.PersistentVolumePhase) func(*observed) {
	return func(o *observed) { o.host.Spec.ClaimRef.UID, o.host.Status.Phase = uid, phase }
}

func gave(p string) func(*observed) {
	return func(o *observed) { o.leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = p }
}

func leafPhase(p corev1.PersistentVolumePhase) func(*observed) {
	return func(o *observed) { o.leaf.Status.Phase = p }
}

func placedIn(id string) func(*observed) {
	return func(o *observed) { o.root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: id} }
}

func boundTo(name string) func(*observed) {
	return func(o *observed) { o.root.Spec.VolumeName = name }
}

// claimMadeAnew: the leaf claim was lost and made again for the same volume.
func claimMadeAnew(o *observed) {
	o.claim.UID, o.claim.Status.Phase = "leaf-claim-2", corev1.ClaimPending
	o.leaf.Status.Phase = corev1.VolumeReleased
}

// What becomes of a leaf PV, in the terms of the table.
type result struct {
	Kind string
	// Of the object that is written: name, policy, claimRef's UID, and whether it
	// has the stamp or our finalizer.
	Name    string
	Policy  corev1.PersistentVolumeReclaimPolicy
	ClaimOf types.UID
	Marked  bool
}

func of(d decision) result {
	describe := func(kind string, pv *corev1.PersistentVolume, marked bool) result {
		r := result{Kind: kind, Name: pv.Name, Policy: pv.Spec.PersistentVolumeReclaimPolicy, Marked: marked}
		if pv.Spec.ClaimRef != nil {
			r.ClaimOf = pv.Spec.ClaimRef.UID
		}
		return r
	}
	finalized := func(pv *corev1.PersistentVolume) bool {
		return len(pv.Finalizers) == 1 && pv.Finalizers[0] == v1alpha1.FinalizerLeafVolume
	}
	switch d := d.(type) {
	case nothing:
		return result{Kind: "nothing"}
	case orphan:
		return result{Kind: "orphan"}
	case surplus:
		return result{Kind: "surplus: " + d.why}
	case unused:
		return result{Kind: "unused: " + d.why}
	case patchLeaf:
		origin, ours := mirror.OriginIn(here.HostID, d.after)
		return describe("patchLeaf", d.after, ours && origin.UID == "root-uid")
	case create:
		return describe("create", d.host, finalized(d.host))
	case adopt:
		return describe("adopt", d.host, finalized(d.host))
	case patchHost:
		return describe("patchHost", d.after, finalized(d.after))
	}
	return result{Kind: "unknown"}
}

func TestDecide(t *testing.T) {
	rest := result{Kind: "nothing"}
	stamp := result{"patchLeaf", "pv-1", retains, "leaf-claim-uid", true}
	host := result{"create", "pv-1", deletes, "root-uid", true}
	anew := func(name string) result { return result{"create", name, retains, "root-uid", true} }
	taken := func(name string) result {
		return result{Kind: fmt.Sprintf("unused: volume %q, which the claim is bound to, does not represent it: another volume has that name. Find out which of the two has the claim's data before you delete either", name)}
	}
	replaced := result{Kind: `unused: member "cluster38" has re-created it under its name, and volume "pv-1" of the claim represents the earlier one. ` +
		`To use it, make sure that its disk is the right one, then delete the claim and create it again with volumeName "pv-1"`}
	adopted := result{"adopt", "pv-1", retains, "new-uid", true}
	for name, tc := range map[string]struct {
		observed observed
		want     result
	}{
		"the PV is gone":                {observed{member: here}, rest},
		"a PV of the member's own (I4)": {seen(noClaim, rootGone), rest},
		"its root is gone before it was stamped, and it outlives its claim: not forgotten (I1)": {seen(rootGone, leafPolicy(retains)), stamp},
		"its root is gone before it was stamped, and it goes with its claim":                    {seen(rootGone), rest},
		"the PV is being deleted in the member, and held":                                       {seen(mirrored, terminating), rest},
		"it is being deleted, and goes with its leaf claim: held (I2)":                          {seen(mirrored, terminating, leafPolicy(deletes)), stamp},
		"it is being deleted before it was mirrored: it is held, and not mirrored":              {seen(terminating), stamp},
		"it is held by then": {seen(stamped, terminating), rest},
		"it is being deleted, its root is gone, and it outlives its claim: not forgotten (I1)": {seen(terminating, rootGone, leafPolicy(retains)), stamp},
		"it was to be destroyed when its host PV was abandoned, and is gone: kept (I2)":        {seen(stamped, rootGone, leafPolicy(deletes)), stamp},
		"its root is gone, which the cache does not show: root_pv destroys it":                 {seen(mirrored, released, leafPolicy(deletes)), rest},
		"the same, and its leaf claim is gone":                                                 {seen(mirrored, released, leafPolicy(deletes), noClaim), rest},
		"just bound: stamped and held at Retain in one patch (I2)":                             {seen(), stamp},
		"the member's PV controller has not bound the PV yet":                                  {seen(leafPhase(corev1.VolumeAvailable)), rest},
		"the member's PV controller has not bound the claim yet":                               {seen(func(o *observed) { o.claim.Status.Phase = corev1.ClaimPending }), rest},
		"stamped: the host PV is made, with the root's UID":                                    {seen(stamped), host},
		"stamped, the name is taken in the host: suffixed (I4)":                                {seen(stamped, nameTaken), result{"create", mirror.HostVolumeName("pv-1", here.ClusterID, true), deletes, "root-uid", true}},
		"the host's class retains (I2)":                                                        {seen(stamped, func(o *observed) { o.class.ReclaimPolicy = ptr.To(retains) }), result{"create", "pv-1", retains, "root-uid", true}},
		"the host's class is gone: nobody asked for Delete (I2)":                               {seen(stamped, func(o *observed) { o.class = nil }), result{"create", "pv-1", retains, "root-uid", true}},
		"the member retains (I2)":                                                              {seen(leafPolicy(retains), stamped), result{"create", "pv-1", retains, "root-uid", true}},
		"what the member gave is not known (I2)":                                               {seen(stamped, gave("Recycle")), result{"create", "pv-1", retains, "root-uid", true}},
		"mirrored and bound: at rest (I5)":                                                     {seen(mirrored), rest},
		"the member's admin sets Delete while it is in use: Retain again (I2)":                 {seen(mirrored, leafPolicy(deletes)), stamp},
		"the stamp was taken off in the member": {seen(mirrored, notStamped, func(o *observed) {
			o.leaf.Labels, o.leaf.Annotations = nil, nil
			o.leaf.Spec.PersistentVolumeReclaimPolicy = deletes
		}), stamp},
		"the host PV was deleted: made again, which heals a Lost claim; its policy is not known (I2)": {seen(mirrored, noHost), anew("pv-1")},
		"the same, by its suffixed name, when the other is free by now":                               {seen(mirrored, noHost, boundTo(suffixed)), anew(suffixed)},
		"the same, by its plain name, when the suffixed one is taken":                                 {seen(mirrored, noHost, suffixTaken), anew("pv-1")},
		"the same, its suffixed name was taken meanwhile (I4)":                                        {seen(mirrored, noHost, boundTo(suffixed), suffixTaken), taken(suffixed)},

		"its leaf claim was lost: root_pvc makes it anew":                  {seen(mirrored, noClaim), rest},
		"its leaf claim was lost, and the member's admin sets Delete (I2)": {seen(mirrored, noClaim, leafPolicy(deletes)), stamp},

		// One volume for a root.
		"the root is placed in another member: a surplus (I3)":                {seen(placedIn("id39")), result{Kind: `surplus: the claim is placed in cluster "id39"`}},
		"the root is placed nowhere: not mirrored, and root_pvc decides (I3)": {seen(placedIn("")), rest},
		"the same, stamped: not called a surplus":                             {seen(stamped, placedIn("")), rest},
		"the root is placed nowhere, and bound to another volume (I3)":        {seen(stamped, placedIn(""), boundTo("pv-9")), result{Kind: "surplus: the claim is bound to volume pv-9"}},
		"the root is placed elsewhere, and bound to this very volume":         {seen(mirrored, placedIn("id39")), rest},
		"the root is placed elsewhere, and about to be bound to this volume":  {seen(mirrored, placedIn("id39"), boundTo("")), rest},

		// The member re-created the leaf PV.
		"re-created while its claim lives: held, with the stamp (I2)":         {seen(recreated), result{"patchLeaf", "pv-1", retains, "leaf-claim-uid", true}},
		"the same, held: reported, not called a surplus":                      {seen(recreated, stamped), replaced},
		"the same, the root is not bound yet":                                 {seen(recreated, stamped, boundTo("")), replaced},
		"the same, placed nowhere":                                            {seen(recreated, stamped, placedIn("")), replaced},
		"the same, without a leaf claim":                                      {seen(recreated, stamped, noClaim), replaced},
		"the same, without a leaf claim, put to Delete: held (I2)":            {seen(recreated, stamped, noClaim, leafPolicy(deletes)), result{"patchLeaf", "pv-1", retains, "leaf-claim-uid", true}},
		"the same, the root is bound to another volume: a surplus (I3)":       {seen(recreated, stamped, boundTo("pv-9")), result{Kind: "surplus: the claim is bound to volume pv-9"}},
		"re-created, its root is gone: held, for root_pv (I2)":                {seen(recreated, rootGone), result{"patchLeaf", "pv-1", retains, "leaf-claim-uid", true}},
		"the same, held: root_pv lets go of the host PV, and it is an orphan": {seen(recreated, stamped, rootGone), result{Kind: "orphan"}},
		"re-created, and none of ours (I4)":                                   {seen(recreated, noClaim), rest},
		"the root is placed nowhere but bound to this very volume":            {seen(mirrored, placedIn("")), rest},
		"the root is bound to another volume: a surplus (I3)":                 {seen(stamped, boundTo("pv-9")), result{Kind: "surplus: the claim is bound to volume pv-9"}},
		"the root is bound to another volume, this one has a host PV":         {seen(mirrored, boundTo("pv-9")), result{Kind: "surplus: the claim is bound to volume pv-9"}},
		"the root is bound to a volume of that name that is not ours (I4)":    {seen(stamped, nameTaken, boundTo("pv-1")), taken("pv-1")},
		"a surplus whose leaf claim is gone is still reported (I1)":           {seen(stamped, noClaim, placedIn("id39")), result{Kind: `surplus: the claim is placed in cluster "id39"`}},
		"a stamped volume, the root is bound to another one (I1)":             {seen(stamped, noClaim, boundTo("pv-9")), result{Kind: "surplus: the claim is bound to volume pv-9"}},

		// Another claim of the root's name asks for the volume that was let go of.
		"an admin lets it: its host PV is made, with policy Retain":     {seen(dropped, asks), adopted},
		"an admin does not let it: an orphan (I8)":                      {seen(dropped, asks, notAllowed), result{Kind: "orphan"}},
		"it is not placed here yet (I3)":                                {seen(dropped, asks, askedIn("")), result{Kind: "orphan"}},
		"it is placed elsewhere (I3)":                                   {seen(dropped, asks, askedIn("id39")), result{Kind: "orphan"}},
		"the name that it asks for is taken in the host (I4)":           {seen(dropped, asks, nameTaken), result{Kind: "orphan"}},
		"the volume is in use in the member (I4)":                       {seen(dropped, asks, leafPhase(corev1.VolumeBound)), result{Kind: "orphan"}},
		"its class is not ours (I4)":                                    {seen(dropped, asks, func(o *observed) { o.class.Provisioner = "other" }), result{Kind: "orphan"}},
		"it asks for more than there is":                                {seen(dropped, asks, func(o *observed) { o.leaf.Spec.Capacity = nil }), result{Kind: "orphan"}},
		"the leaf claim holds it still: root_pvc hands that over first": {seen(stamped, rootGone, asks), result{Kind: "orphan"}},

		// No root.
		"the root is gone, never mirrored: root_pvc withdraws it":                     {seen(rootGone), rest},
		"the root is gone, and it may have been mirrored before a restore: held (I2)": {seen(rootGone, remembered), stamp},
		"the same, its claim is not this one (I4)":                                    {seen(rootGone, remembered, func(o *observed) { o.leaf.Spec.ClaimRef.UID = "another" }), rest},
		"the root is gone, stamped, no host PV: an orphan (I1)":                       {seen(stamped, rootGone), result{Kind: "orphan"}},
		"the root is gone, no claim either: an orphan (I1)":                           {seen(stamped, rootGone, noClaim), result{Kind: "orphan"}},
		"released in the host: root_pv decides (I2)":                                  {seen(mirrored, rootGone), rest},
		"released, put to Delete by root_pv: not fought over (I5)":                    {seen(mirrored, rootGone, leafPolicy(deletes)), rest},
		"released and Retain in the host, the leaf PV at Delete: held (I2)":           {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains)), stamp},
		"the same, without a leaf claim (I2)":                                         {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostPolicy(retains)), stamp},
		"the same, and the host PV is deleted: the data stay (I2)":                    {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), hostDeleted), stamp},
		"released, the member retains, its admin sets Delete later: held (I2)":        {seen(leafPolicy(retains), mirrored, rootGone, leafPolicy(deletes)), stamp},
		"abandoned: the leaf PV is the member's admin's":                              {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), abandoned), rest},
		"freed after it was put to Delete: held (I2)": {seen(mirrored, rootGone, leafPolicy(deletes), func(o *observed) {
			o.host.Spec.ClaimRef, o.host.Status.Phase = nil, corev1.VolumeAvailable
		}), stamp},
		"the same, and bound to another claim before that was seen: held (I2)": {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), stamp},
		"the same, without its leaf claim: held (I2)":                          {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), stamp},
		"the same, about to be bound to another claim: held (I2)":              {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("", corev1.VolumeAvailable)), stamp},
		"the same, and that claim is gone as well: not fought over (I5)":       {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeReleased)), rest},

		// Adoption, and drift of the host PV.
		"adopted after deregistration: our finalizer is put back":     {seen(mirrored, letGo), result{"patchHost", "pv-1", deletes, "root-uid", true}},
		"adopted, released meanwhile: our finalizer is put back (I1)": {seen(mirrored, letGo, rootGone), result{"patchHost", "pv-1", deletes, "root-uid", true}},
		"the host PV is being deleted: no finalizer is put back":      {seen(mirrored, letGo, hostDeleted), rest},
		"the host PV was abandoned: no finalizer is put back":         {seen(mirrored, letGo, abandoned), rest},
		"registered under another name":                               {seen(mirrored, func(o *observed) { o.host.Labels[v1alpha1.LabelCluster] = "old" }), result{"patchHost", "pv-1", deletes, "root-uid", true}},
		"the volume grew in the member": {seen(mirrored, func(o *observed) {
			o.leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}), result{"patchHost", "pv-1", deletes, "root-uid", true}},
		"the member retains, somebody sets Delete in the host (I2)": {seen(leafPolicy(retains), mirrored), result{"patchHost", "pv-1", retains, "root-uid", true}},
		"an admin sets Retain in the host: kept":                    {seen(mirrored, hostPolicy(retains)), rest},

		// The leaf claim was lost, or the volume is used again.
		"the leaf claim is gone: root_pvc makes it anew":                  {seen(mirrored, noClaim), rest},
		"made anew: the PV is pointed at it, never Available":             {seen(mirrored, claimMadeAnew), result{"patchLeaf", "pv-1", retains, "leaf-claim-2", true}},
		"made anew, the PV was freed in the member":                       {seen(mirrored, claimMadeAnew, func(o *observed) { o.leaf.Spec.ClaimRef = nil; o.leaf.Status.Phase = corev1.VolumeAvailable }), result{"patchLeaf", "pv-1", retains, "leaf-claim-2", true}},
		"made anew, the PV is in use by a claim of the member's own (I4)": {seen(mirrored, claimMadeAnew, leafPhase(corev1.VolumeBound), func(o *observed) { o.leaf.Spec.ClaimRef.UID = "foreign" }), rest},
		"made anew, and the leaf PV is not stamped (I4)":                  {seen(mirrored, claimMadeAnew, notStamped), rest},
		"made anew, and there is no host PV (I2)":                         {seen(stamped, claimMadeAnew), rest},
		"made anew, the host PV is not bound to this root (I8)":           {seen(mirrored, claimMadeAnew, func(o *observed) { o.host.Spec.ClaimRef.UID = "other" }), rest},
		"made anew, the host PV was freed: no panic":                      {seen(mirrored, claimMadeAnew, func(o *observed) { o.host.Spec.ClaimRef = nil }), rest},
		"made anew, and being deleted":                                    {seen(mirrored, claimMadeAnew, func(o *observed) { o.claim.DeletionTimestamp = &now }), rest},
	} {
		t.Run(name, func(t *testing.T) {
			seen := []*corev1.PersistentVolume{tc.observed.leaf, tc.observed.host, tc.observed.promise}
			before := make([]*corev1.PersistentVolume, len(seen))
			for i := range seen {
				before[i] = seen[i].DeepCopy()
			}
			if diff := cmp.Diff(tc.want, of(decide(tc.observed))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, seen); diff != "" {
				t.Errorf("deciding changed what was observed, which is the cache's:\n%s", diff)
			}
		})
	}
}

func hostDeleted(o *observed) { o.host.DeletionTimestamp = &now }
func abandoned(o *observed) {
	o.host.Annotations = map[string]string{v1alpha1.AnnotationAbandon: "true"}
}

// letGo: the cluster was deregistered, and registered again.
func letGo(o *observed) {
	o.host.Finalizers = nil
	o.host.Annotations = map[string]string{v1alpha1.AnnotationClusterGone: "cluster38"}
}

func TestAdoptionTakesBackThatTheClusterIsGone(t *testing.T) {
	d, ok := decide(seen(mirrored, letGo)).(patchHost)
	if !ok {
		t.Fatal("the host PV is not adopted")
	}
	if _, says := d.after.Annotations[v1alpha1.AnnotationClusterGone]; says {
		t.Error("the host PV still says that its cluster is gone")
	}
}

// Of the leaf PV nothing changes but the stamp, the policy and what it was: the
// annotations of the member's provisioner stay.
func TestStampChangesNothingElse(t *testing.T) {
	o := seen(func(o *observed) {
		o.leaf.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"}
		o.leaf.Labels = map[string]string{"zone": "a"}
		o.leaf.Finalizers = []string{"kubernetes.io/pv-protection"}
	})
	d, ok := decide(o).(patchLeaf)
	if !ok {
		t.Fatal("the leaf PV is not stamped")
	}
	want := o.leaf.DeepCopy()
	want.Spec.PersistentVolumeReclaimPolicy = retains
	want.Labels = map[string]string{"zone": "a", v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	want.Annotations = map[string]string{v1alpha1.AnnotationNamespaceUID: "namespace-uid", "pv.kubernetes.io/provisioned-by": "disk.example.com",
		v1alpha1.AnnotationReclaimPolicy: string(deletes), v1alpha1.AnnotationRoot: "shop/data", v1alpha1.AnnotationRootUID: "root-uid"}
	if diff := cmp.Diff(want, d.after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("leaf PV (-want +got):\n%s", diff)
	}
	o.leaf = d.after
	if again := changed(o.leaf, o.hold); again != nil {
		t.Errorf("holding it twice is not holding it once (I5):\n%s", cmp.Diff(d.after, again))
	}
}

func TestSuspicious(t *testing.T) {
	left := func(change ...func(*observed)) observed {
		return seen(append([]func(*observed){noClaim, rootGone, leafPhase(corev1.VolumeReleased), leafPolicy(retains)}, change...)...)
	}
	for name, tc := range map[string]struct {
		observed observed
		want     bool
	}{
		"mirrored":                                  {seen(mirrored), false},
		"its root is gone":                          {seen(stamped, rootGone), true},
		"its root has another one":                  {seen(stamped, boundTo("pv-9")), true},
		"released, perhaps by a claim of ours":      {left(), true},
		"the same, and its provisioner destroys it": {left(leafPolicy(deletes)), false},
		"in use by a claim of the member's own":     {left(leafPhase(corev1.VolumeBound)), false},
		"gone":                                      {observed{member: here}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := suspicious(tc.observed, decide(tc.observed)); got != tc.want {
				t.Errorf("suspicious: %v", got)
			}
		})
	}
}
