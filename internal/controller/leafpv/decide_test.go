package leafpv

import (
	"fmt"
	"slices"
	"strings"
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
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
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
)

// seen returns an observation: one of Xylem's leaf claims that the member has just bound, and
// its PV as the member's provisioner created it. observe sets dependent fields.
func seen(change ...func(*volume.Observed)) *volume.Observed {
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
	s := &volume.Observed{
		Member: here, Name: "pv-1", Root: root, Claim: claim, Origin: origin, Tenant: "namespace-uid",
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, ReclaimPolicy: ptr.To(deletes)},
		Leaf: &corev1.PersistentVolume{
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
		c(s)
	}
	return s
}

// stamped: the leaf PV has the stamp and policy Retain.
func stamped(s *volume.Observed) {
	if held := s.StampedLeaf(); held != nil {
		s.Leaf = held
	}
}

// mirrored: the host PV exists and is bound to the root.
func mirrored(s *volume.Observed) {
	stamped(s)
	s.Host = hostpv.Mirror(s.Leaf, s.Root, deletes, here)
	s.Host.UID = "host-uid"
	s.Host.Status.Phase = corev1.VolumeBound
	s.Root.Spec.VolumeName = s.Host.Name
}

// recreated: the member has another leaf PV of that name for the leaf claim. The root is bound
// to the host PV that represents the earlier one.
func recreated(s *volume.Observed) {
	fresh := s.Leaf.DeepCopy()
	mirrored(s)
	fresh.UID = "leaf-uid-2"
	s.Leaf, s.Earlier, s.Host = fresh, []corev1.PersistentVolume{*s.Host}, nil
}

// released: the host's PV controller reports that the root was deleted.
func released(s *volume.Observed) { s.Host.Status.Phase = corev1.VolumeReleased }

// terminating: a user of the member deletes the leaf PV.
func terminating(s *volume.Observed) { s.Leaf.DeletionTimestamp = &now }

func rootGone(s *volume.Observed)   { s.Root, s.Class = nil, nil }
func noClaim(s *volume.Observed)    { s.Claim = nil }
func noHost(s *volume.Observed)     { s.Host = nil }
func notStamped(s *volume.Observed) { s.Leaf.Labels, s.Leaf.Annotations = nil, nil }
func nameTaken(s *volume.Observed)  { s.NameTaken = true }

func suffixTaken(s *volume.Observed) { s.SuffixTaken = true }

var suffixed = hostpv.Name("pv-1", here.ClusterID, true)

// dropped: root and leaf claim were deleted.
func dropped(s *volume.Observed) {
	stamped(s)
	noClaim(s)
	s.Root = nil
	s.Leaf.Status.Phase = corev1.VolumeReleased
}

// asks: a claim of the root's name requests the volume, and an admin allows it.
func asks(s *volume.Observed) {
	s.Rules = adopting("pv-1")
	s.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: v1alpha1.ProvisionerName, ReclaimPolicy: ptr.To(deletes)}
	s.Successor = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "new-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1", StorageClassName: ptr.To("gp3"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	askedIn(here.ClusterID)(s)
}

func askedIn(id string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Successor.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: id} }
}

func restored(s *volume.Observed) { s.Restored = true }

func notAllowed(s *volume.Observed) { s.Rules = adopting("pv-2") }

func leafPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Spec.PersistentVolumeReclaimPolicy = p }
}

func hostPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Spec.PersistentVolumeReclaimPolicy = p }
}

// hostClaim sets the claim of the host PV.
func hostClaim(uid types.UID, phase corev1.PersistentVolumePhase) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Spec.ClaimRef.UID, s.Host.Status.Phase = uid, phase }
}

func gave(p string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] = p }
}

func leafPhase(p corev1.PersistentVolumePhase) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Status.Phase = p }
}

func placedIn(id string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: id} }
}

func boundTo(name string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Root.Spec.VolumeName = name }
}

// claimRecreated: the leaf claim was lost and re-created for the same volume.
func claimRecreated(s *volume.Observed) {
	s.Claim.UID, s.Claim.Status.Phase = "leaf-claim-2", corev1.ClaimPending
	s.Leaf.Status.Phase = corev1.VolumeReleased
}

// usedAgain: the host PV was freed, and is bound to a claim of another name.
func usedAgain(s *volume.Observed) {
	s.Root.Name, s.Root.UID = "other", "newer-uid"
	s.Host.Spec.ClaimRef.Name, s.Host.Spec.ClaimRef.UID = s.Root.Name, s.Root.UID
	claimRecreated(s)
	s.Claim.Name = s.Root.Name
	mirror.OriginFor(here.HostID, s.Root).Stamp(s.Claim)
}

// boundAgain: the host PV was freed, and is bound to a newer claim of the root's name, while the
// leaf claim of the earlier one exists.
func boundAgain(s *volume.Observed) {
	s.Root.UID, s.Host.Spec.ClaimRef.UID = "newer-uid", "newer-uid"
}

// result is what happens to a leaf PV, in the terms of the table.
type result struct {
	Step lifecycle.Step
	// Fields of the written object: name, policy, claimRef's UID, the root's UID in its stamp, and
	// whether Xylem's finalizer is its only one.
	Name             string
	Policy           corev1.PersistentVolumeReclaimPolicy
	ClaimOf, StampOf types.UID
	Finalizer        bool
	// Told is the reported reason, and Event the emitted event, if the controller writes nothing.
	Told, Event string
	Orphan      bool
	// By is another controller, which owns the step before this one.
	By lifecycle.Owner
}

// of returns what the controller does for a plan.
func of(t *testing.T, s *volume.Observed, plan lifecycle.Plan) result {
	t.Helper()
	pv, emitted := take(t, s, plan)
	r := result{Step: plan.By(lifecycle.LeafPV)}
	switch {
	case pv == nil && r.Step != lifecycle.None:
		t.Errorf("step %s writes nothing", r.Step)
	case pv != nil:
		origin, _ := mirror.OriginIn(here.HostID, pv)
		r.Name, r.Policy, r.StampOf = pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, origin.UID
		r.Finalizer = slices.Equal(pv.Finalizers, []string{v1alpha1.FinalizerLeafVolume})
		if pv.Spec.ClaimRef != nil {
			r.ClaimOf = pv.Spec.ClaimRef.UID
		}
	case plan.Owner != lifecycle.LeafPV:
		if len(emitted) > 0 {
			t.Errorf("events %q about what %s reports", emitted, plan.Owner)
		}
	default:
		r.Orphan = plan.Phase == lifecycle.Orphaned
		if plan.Report != nil {
			r.Told = plan.Report.Reason
		}
		r.Event = strings.Join(emitted, "\n")
	}
	return r
}

func TestNext(t *testing.T) {
	rest := result{}
	leaf := func(step lifecycle.Step) result {
		return result{Step: step, Name: "pv-1", Policy: retains, ClaimOf: "leaf-claim-uid", StampOf: "root-uid"}
	}
	stamp, keep, hold := leaf(lifecycle.Stamp), leaf(lifecycle.Secure), leaf(lifecycle.SetRetain)
	keepHost := result{Step: lifecycle.UpdateHost, Name: "pv-1", Policy: deletes, ClaimOf: "root-uid", Finalizer: true}
	create := func(name string, policy corev1.PersistentVolumeReclaimPolicy) result {
		return result{Step: lifecycle.CreateHost, Name: name, Policy: policy, ClaimOf: "root-uid", Finalizer: true}
	}
	told := func(reason, format string, args ...any) result {
		return result{Told: reason, Event: "Warning " + reason + " " + fmt.Sprintf(format, args...)}
	}
	surplus := func(why string) result {
		return told(v1alpha1.ReasonSurplusVolume, "member \"cluster38\" has volume \"pv-1\" for this claim, which Xylem does not use: %s. Xylem keeps its data. Delete it there if nobody needs it", why)
	}
	taken := func(name string) result {
		return told(v1alpha1.ReasonVolumeMismatch, `leaf volume "pv-1" in member "cluster38" may be this claim's own disk, and is not used: volume %q, which the claim is bound to, does not represent it: another volume has that name. `+
			"Find out which of the two has the claim's data before you delete either. Xylem keeps its data", name)
	}
	replaced := told(v1alpha1.ReasonVolumeReplaced, `leaf volume "pv-1" in member "cluster38" may be this claim's own disk, and is not used: member "cluster38" has re-created it under its name, and volume "pv-1" of the claim represents the earlier one. `+
		`To use it, make sure that its disk is the right one, then delete the claim and create it again with volumeName "pv-1". Xylem keeps its data`)
	orphan := result{Orphan: true}
	retainedHost, repointed := keepHost, leaf(lifecycle.Repoint)
	retainedHost.Policy, repointed.ClaimOf = retains, "leaf-claim-2"
	adopted := result{Step: lifecycle.Adopt, Name: "pv-1", Policy: retains, ClaimOf: "new-uid", Finalizer: true}
	for name, tc := range map[string]struct {
		there *volume.Observed
		want  result
	}{
		"no such PV":                    {&volume.Observed{Member: here, Name: "pv-1"}, rest},
		"a PV of the member's own (I4)": {seen(noClaim, rootGone), rest},
		"the root was deleted before the stamp, the member retains: still reported (I1)":                           {seen(rootGone, leafPolicy(retains)), stamp},
		"the root was deleted before the stamp, the member deletes":                                                {seen(rootGone), rest},
		"the PV is being deleted in the member and has Retain":                                                     {seen(mirrored, terminating), rest},
		"the PV is being deleted and has policy Delete: retained (I2)":                                             {seen(mirrored, terminating, leafPolicy(deletes)), stamp},
		"the PV is being deleted before it was mirrored: retained, not mirrored":                                   {seen(terminating), stamp},
		"the PV is being deleted before it was mirrored, and has Retain":                                           {seen(stamped, terminating), rest},
		"the PV is being deleted, its root was deleted, the member retains: still reported (I1)":                   {seen(terminating, rootGone, leafPolicy(retains)), stamp},
		"it was about to be destroyed when its host PV was abandoned, and is now deleted: kept (I2)":               {seen(stamped, rootGone, leafPolicy(deletes)), keep},
		"the root was deleted, but the cache is stale: root_pv destroys the volume":                                {seen(mirrored, released, leafPolicy(deletes)), rest},
		"root and leaf claim were deleted, but the cache is stale":                                                 {seen(mirrored, released, leafPolicy(deletes), noClaim), rest},
		"just bound: one patch sets the stamp and Retain (I2)":                                                     {seen(), stamp},
		"the member's PV controller has not bound the PV yet":                                                      {seen(leafPhase(corev1.VolumeAvailable)), rest},
		"the member's PV controller has not bound the claim yet":                                                   {seen(func(s *volume.Observed) { s.Claim.Status.Phase = corev1.ClaimPending }), rest},
		"stamped: the host PV is created, with the root's UID":                                                     {seen(stamped), create("pv-1", deletes)},
		"stamped, the name is taken in the host: suffixed (I4)":                                                    {seen(stamped, nameTaken), create(hostpv.Name("pv-1", here.ClusterID, true), deletes)},
		"the host's class retains (I2)":                                                                            {seen(stamped, func(s *volume.Observed) { s.Class.ReclaimPolicy = ptr.To(retains) }), create("pv-1", retains)},
		"the host's class does not exist: Retain (I2)":                                                             {seen(stamped, func(s *volume.Observed) { s.Class = nil }), create("pv-1", retains)},
		"the member retains (I2)":                                                                                  {seen(leafPolicy(retains), stamped), create("pv-1", retains)},
		"the member's original policy is unknown (I2)":                                                             {seen(stamped, gave("Recycle")), create("pv-1", retains)},
		"mirrored and bound: settled (I5)":                                                                         {seen(mirrored), rest},
		"the member's admin sets Delete while it is in use: Retain again (I2)":                                     {seen(mirrored, leafPolicy(deletes)), stamp},
		"a user of the member removed the stamp":                                                                   {seen(mirrored, notStamped, leafPolicy(deletes)), stamp},
		"the host PV was deleted: re-created with Retain, which repairs a Lost claim (I2)":                         {seen(mirrored, noHost), create("pv-1", retains)},
		"the host PV with the suffix was deleted: re-created under that name, although the plain name is free now": {seen(mirrored, noHost, boundTo(suffixed)), create(suffixed, retains)},
		"the host PV was deleted: re-created under its plain name, because the one with the suffix is taken":       {seen(mirrored, noHost, suffixTaken), create("pv-1", retains)},
		"the host PV with the suffix was deleted, and that name was taken in the meantime (I4)":                    {seen(mirrored, noHost, boundTo(suffixed), suffixTaken), taken(suffixed)},

		"the leaf claim was lost: root_pvc re-creates it":                  {seen(mirrored, noClaim), rest},
		"its leaf claim was lost, and the member's admin sets Delete (I2)": {seen(mirrored, noClaim, leafPolicy(deletes)), hold},

		// One volume for a root.
		"the root is placed in another member: a surplus (I3)":                        {seen(placedIn("id39")), surplus(`the claim is placed in another cluster (ID "id39")`)},
		"the root is not placed: not mirrored, and root_pvc decides (I3)":             {seen(placedIn("")), rest},
		"the root is not placed, and the leaf PV is stamped: not reported as surplus": {seen(stamped, placedIn("")), rest},
		"the root is not placed, and bound to another volume (I3)":                    {seen(stamped, placedIn(""), boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is placed in another member, and bound to this volume":              {seen(mirrored, placedIn("id39")), rest},
		"the root is placed in another member, and about to be bound to this volume":  {seen(mirrored, placedIn("id39"), boundTo("")), rest},

		// The member re-created the leaf PV.
		"re-created while its claim exists: retained and stamped (I2)":                                        {seen(recreated), keep},
		"re-created, retained and stamped: reported, but not as surplus":                                      {seen(recreated, stamped), replaced},
		"re-created, and the root is not bound yet":                                                           {seen(recreated, stamped, boundTo("")), replaced},
		"re-created, and the root is not placed":                                                              {seen(recreated, stamped, placedIn("")), replaced},
		"re-created, and the leaf claim is gone":                                                              {seen(recreated, stamped, noClaim), replaced},
		"re-created with policy Delete, and the leaf claim is gone: retained (I2)":                            {seen(recreated, stamped, noClaim, leafPolicy(deletes)), keep},
		"re-created, and the root is bound to another volume: a surplus (I3)":                                 {seen(recreated, stamped, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"re-created, the root was deleted: retained, for root_pv (I2)":                                        {seen(recreated, rootGone), keep},
		"re-created and retained, the root was deleted: root_pvc waits until the earlier host PV is released": {seen(recreated, stamped, rootGone), result{By: lifecycle.RootPVC, Told: v1alpha1.ReasonVolumeReplaced}},
		"re-created and foreign (I4)":                                                                         {seen(recreated, noClaim), rest},
		"the root is not placed, but bound to this volume":                                                    {seen(mirrored, placedIn("")), rest},
		"the root is bound to another volume: a surplus (I3)":                                                 {seen(stamped, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is bound to another volume, this one has a host PV":                                         {seen(mirrored, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is bound to a foreign volume of that name (I4)":                                             {seen(stamped, nameTaken, boundTo("pv-1")), taken("pv-1")},
		"a surplus without a leaf claim is still reported (I1)":                                               {seen(stamped, noClaim, placedIn("id39")), surplus(`the claim is placed in another cluster (ID "id39")`)},
		"a stamped volume, the root is bound to another one (I1)":                                             {seen(stamped, noClaim, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},

		// Another claim of the root's name requests the released volume.
		"an admin allows the adoption: the host PV is created with Retain":    {seen(dropped, asks), adopted},
		"without an admin's permission: an orphan (I8)":                       {seen(dropped, asks, notAllowed), orphan},
		"it is not placed here yet (I3)":                                      {seen(dropped, asks, askedIn("")), orphan},
		"the claim is placed in another member (I3)":                          {seen(dropped, asks, askedIn("id39")), orphan},
		"the requested name is taken in the host (I4)":                        {seen(dropped, asks, nameTaken), orphan},
		"the volume is in use in the member (I4)":                             {seen(dropped, asks, leafPhase(corev1.VolumeBound)), orphan},
		"the claim's class is another provisioner's (I4)":                     {seen(dropped, asks, func(s *volume.Observed) { s.Class.Provisioner = "other" }), orphan},
		"the claim requests more than the capacity":                           {seen(dropped, asks, func(s *volume.Observed) { s.Leaf.Spec.Capacity = nil }), orphan},
		"the earlier leaf claim is still bound: root_pvc hands it over first": {seen(stamped, rootGone, asks), result{Step: lifecycle.AdoptClaim, By: lifecycle.RootPVC}},

		// No root.
		"the root was deleted, never mirrored: root_pvc withdraws the leaf claim":                     {seen(rootGone), rest},
		"the root was deleted, possibly mirrored before a restore: retained (I2)":                     {seen(rootGone, restored), stamp},
		"the root was deleted, and the leaf PV belongs to another claim than this one (I4)":           {seen(rootGone, restored, func(s *volume.Observed) { s.Leaf.Spec.ClaimRef.UID = "another" }), rest},
		"the root was deleted, stamped, no host PV: root_pvc deletes the leaf claim first":            {seen(stamped, rootGone), result{Step: lifecycle.DeleteRetained, By: lifecycle.RootPVC}},
		"the root was deleted, no leaf claim: an orphan (I1)":                                         {seen(stamped, rootGone, noClaim), orphan},
		"released in the host: root_pv decides (I2)":                                                  {seen(mirrored, rootGone), rest},
		"released, set to Delete by root_pv: not changed back (I5)":                                   {seen(mirrored, rootGone, leafPolicy(deletes)), rest},
		"released and Retain in the host, Delete in the member: retained (I2)":                        {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains)), hold},
		"released and Retain in the host, Delete in the member, no leaf claim: retained (I2)":         {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostPolicy(retains)), hold},
		"Retain in the host, Delete in the member, and the host PV is deleted: the data is kept (I2)": {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), hostDeleted), hold},
		"released, the member retained, its admin sets Delete later: retained (I2)":                   {seen(leafPolicy(retains), mirrored, rootGone, leafPolicy(deletes)), hold},
		"abandoned: the leaf PV is the member's admin's":                                              {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), abandoned), rest},
		"freed after Xylem set Delete: retained (I2)": {seen(mirrored, rootGone, leafPolicy(deletes), func(s *volume.Observed) {
			s.Host.Spec.ClaimRef, s.Host.Status.Phase = nil, corev1.VolumeAvailable
		}), hold},
		"freed after Xylem set Delete, and bound to another claim before leaf_pv observed it: retained (I2)":                               {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), hold},
		"freed after Xylem set Delete, bound to another claim, no leaf claim: retained (I2)":                                               {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), hold},
		"freed after Xylem set Delete, and about to be bound to another claim: retained (I2)":                                              {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("", corev1.VolumeAvailable)), hold},
		"freed after Xylem set Delete, and its next claim was deleted too: retained, so that the remaining leaf claim can be deleted (I1)": {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeReleased)), hold},

		"freed, and bound to another existing claim of that name: retained (I2)":                           {seen(mirrored, boundAgain, leafPolicy(deletes)), hold},
		"freed, bound to another claim, and the stamp was removed: stamped for the root of the leaf claim": {seen(mirrored, boundAgain, notStamped), stamp},
		"freed, bound to another claim, abandoned, without a stamp and without Xylem's finalizer":          {seen(mirrored, boundAgain, notStamped, abandoned, noFinalizer), rest},
		"abandoned, without Xylem's finalizer: the leaf PV belongs to the member's admin":                  {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), abandoned, noFinalizer), rest},
		"abandoned, without Xylem's finalizer: not restored":                                               {seen(mirrored, rootGone, abandoned, noFinalizer), rest},

		// Adoption, and drift of the host PV.
		"adopted after deregistration: our finalizer is restored":     {seen(mirrored, withoutFinalizer), keepHost},
		"adopted, then released: Xylem's finalizer is restored (I1)":  {seen(mirrored, withoutFinalizer, rootGone), keepHost},
		"the host PV is being deleted: the finalizer is not restored": {seen(mirrored, withoutFinalizer, hostDeleted), rest},
		"the host PV was abandoned: the finalizer is not restored":    {seen(mirrored, withoutFinalizer, abandoned), rest},
		"registered under another name":                               {seen(mirrored, registeredAs("old")), keepHost},
		"the volume grew in the member": {seen(mirrored, func(s *volume.Observed) {
			s.Leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}), keepHost},
		"the member retains, a user sets Delete in the host (I2)": {seen(leafPolicy(retains), mirrored), retainedHost},
		"an admin sets Retain in the host: kept":                  {seen(mirrored, hostPolicy(retains)), rest},

		// The leaf claim was lost, or the volume is used again.
		"the leaf claim does not exist: root_pvc re-creates it":                                         {seen(mirrored, noClaim), rest},
		"re-created: the PV gets it as claimRef, and is never Available":                                {seen(mirrored, claimRecreated), repointed},
		"re-created, the PV was freed in the member":                                                    {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Leaf.Spec.ClaimRef = nil; s.Leaf.Status.Phase = corev1.VolumeAvailable }), repointed},
		"re-created, a foreign claim of the member uses the PV (I4)":                                    {seen(mirrored, claimRecreated, leafPhase(corev1.VolumeBound), func(s *volume.Observed) { s.Leaf.Spec.ClaimRef.UID = "foreign" }), rest},
		"re-created, and the leaf PV is not stamped (I4)":                                               {seen(mirrored, claimRecreated, notStamped), rest},
		"re-created, without a host PV (I2)":                                                            {seen(stamped, claimRecreated), rest},
		"re-created, the host PV is not bound to this root (I8)":                                        {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Host.Spec.ClaimRef.UID = "other" }), rest},
		"re-created, the host PV was freed: no panic":                                                   {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Host.Spec.ClaimRef = nil }), rest},
		"used again by a claim of another name: the leaf PV's claimRef is set to its leaf claim":        {seen(mirrored, usedAgain), result{Step: lifecycle.Repoint, Name: "pv-1", Policy: retains, ClaimOf: "leaf-claim-2", StampOf: "newer-uid"}},
		"used again by a claim of another name, but a foreign claim of the member has it (I4)":          {seen(mirrored, usedAgain, leafPhase(corev1.VolumeBound)), rest},
		"used again by a claim of another name, with policy Delete of the earlier claim: retained (I2)": {seen(mirrored, usedAgain, leafPolicy(deletes)), hold},
		"re-created, and the leaf PV is being deleted":                                                  {seen(mirrored, claimRecreated, terminating), rest},
		"re-created, the root was deleted, and the cache is stale":                                      {seen(mirrored, claimRecreated, released), rest},
		"re-created, and for another volume":                                                            {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Claim.Spec.VolumeName = "pv-9" }), rest},
		"the leaf PV refers to its leaf claim, not bound yet":                                           {seen(mirrored, leafPhase(corev1.VolumeAvailable)), rest},
		"without a leaf claim, registered under another name: updated later":                            {seen(mirrored, noClaim, registeredAs("old")), rest},
		"re-created, and being deleted":                                                                 {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Claim.DeletionTimestamp = &now }), rest},
	} {
		t.Run(name, func(t *testing.T) {
			s := observedOf(t, tc.there)
			if s == nil {
				if tc.want != (result{}) || tc.there.Leaf != nil {
					t.Error("nothing is observed")
				}
				return
			}
			before := copied(s)
			plan := lifecycle.Next(s)
			got := of(t, s, plan)
			if tc.want.By != "" {
				got.Step, got.By = plan.Step, plan.Owner
				if plan.Report != nil {
					got.Told = plan.Report.Reason
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("phase %s of %s (-want +got):\n%s", plan.Phase, plan.Owner, diff)
			}
			if diff := cmp.Diff(before, s, cmp.AllowUnexported(placement.Rules{})); diff != "" {
				t.Errorf("deciding and acting changed what was observed, which is the cache's:\n%s", diff)
			}
		})
	}
}

// copied returns an observation with copies of its volumes.
func copied(s *volume.Observed) *volume.Observed {
	c := *s
	c.Leaf, c.Host, c.Promise = s.Leaf.DeepCopy(), s.Host.DeepCopy(), s.Promise.DeepCopy()
	return &c
}

func hostDeleted(s *volume.Observed) { s.Host.DeletionTimestamp = &now }
func abandoned(s *volume.Observed) {
	s.Host.Annotations = map[string]string{v1alpha1.AnnotationAbandon: "true"}
}

func noFinalizer(s *volume.Observed) { s.Host.Finalizers = nil }

func registeredAs(name string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Labels[v1alpha1.LabelCluster] = name }
}

// withoutFinalizer: the cluster was deregistered and registered again.
func withoutFinalizer(s *volume.Observed) {
	s.Host.Finalizers = nil
	s.Host.Annotations = map[string]string{v1alpha1.AnnotationClusterGone: "cluster38"}
}

func TestAdoptionClearsClusterGone(t *testing.T) {
	s := observedOf(t, seen(mirrored, withoutFinalizer))
	if step := lifecycle.Next(s).By(lifecycle.LeafPV); step != lifecycle.UpdateHost {
		t.Fatalf("the host PV is not adopted, but step %q taken", step)
	}
	if _, says := s.CurrentHost().Annotations[v1alpha1.AnnotationClusterGone]; says {
		t.Error("the host PV still reports that its cluster is deregistered")
	}
}

// The leaf PV changes only in its stamp, policy and original policy. The annotations of the
// member's provisioner remain.
func TestStampChangesNothingElse(t *testing.T) {
	s := observedOf(t, seen(func(s *volume.Observed) {
		s.Leaf.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"}
		s.Leaf.Labels = map[string]string{"zone": "a"}
		s.Leaf.Finalizers = []string{"kubernetes.io/pv-protection"}
	}))
	if step := lifecycle.Next(s).By(lifecycle.LeafPV); step != lifecycle.Stamp {
		t.Fatalf("the leaf PV is not stamped, but step %q taken", step)
	}
	want := s.Leaf.DeepCopy()
	want.Spec.PersistentVolumeReclaimPolicy = retains
	want.Labels = map[string]string{"zone": "a", v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	want.Annotations = map[string]string{v1alpha1.AnnotationNamespaceUID: "namespace-uid", "pv.kubernetes.io/provisioned-by": "disk.example.com",
		v1alpha1.AnnotationReclaimPolicy: string(deletes), v1alpha1.AnnotationRoot: "shop/data", v1alpha1.AnnotationRootUID: "root-uid"}
	after := s.StampedLeaf()
	if diff := cmp.Diff(want, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("leaf PV (-want +got):\n%s", diff)
	}
	s.Leaf = after
	if again := s.StampedLeaf(); again != nil {
		t.Errorf("stamping it twice is not stamping it once (I5):\n%s", cmp.Diff(after, again))
	}
}

func TestSuspicious(t *testing.T) {
	left := func(change ...func(*volume.Observed)) *volume.Observed {
		return seen(append([]func(*volume.Observed){noClaim, rootGone, leafPhase(corev1.VolumeReleased), leafPolicy(retains)}, change...)...)
	}
	for name, tc := range map[string]struct {
		there *volume.Observed
		want  bool
	}{
		"mirrored":             {seen(mirrored), false},
		"its root was deleted": {seen(stamped, rootGone), true},
		"its root and its leaf claim were deleted":                                        {seen(stamped, rootGone, noClaim), true},
		"its root and its leaf claim were deleted, and another claim may have it":         {seen(dropped, asks), false},
		"its root has another volume":                                                     {seen(stamped, boundTo("pv-9")), true},
		"released, perhaps by a leaf claim of this host":                                  {left(), true},
		"released, perhaps by a leaf claim of this host, and its provisioner destroys it": {left(leafPolicy(deletes)), false},
		"a foreign claim of the member uses it":                                           {left(leafPhase(corev1.VolumeBound)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := observedOf(t, tc.there)
			if got := suspicious(s, lifecycle.Next(s)); got != tc.want {
				t.Errorf("suspicious: %v", got)
			}
		})
	}
}

// The orphan tracker checks a volume when it loses its root, and again when it is gone.
func TestSuspicionEndsWithTheVolume(t *testing.T) {
	host, leaf := clusters(t, seen(stamped, rootGone))
	r, _ := controller(here, host, leaf)
	suspicions := r.Book.Suspicions(here.Registration)
	reconciled := func(want bool) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), named("pv-1")[0]); err != nil {
			t.Fatal(err)
		}
		looks := false
		select {
		case <-suspicions:
			looks = true
		default:
		}
		if looks != want {
			t.Errorf("it looks again: %v", looks)
		}
	}
	reconciled(true)
	reconciled(false)
	leaf.objects = nil
	reconciled(true)
	reconciled(false)
}

// adopting returns rules of a registration in which an admin allows a claim to adopt a volume.
func adopting(volume string) placement.Rules {
	return placement.RulesOf(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAdopt: volume}}})
}
