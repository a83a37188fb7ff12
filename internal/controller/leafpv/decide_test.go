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

// seen returns an observation in which the member has just bound one of Xylem's leaf claims to a PV
// that its provisioner created.
func seen(change ...func(*volume.Observed)) *volume.Observed {
	root := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid",
			Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disk")},
	}
	origin := mirror.OriginForRoot(here.HostID, root)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	origin.StampLeaf(claim)
	s := &volume.Observed{
		Member: here, Name: "pv-1", Root: root, LeafClaim: claim, Origin: origin, Tenant: "namespace-uid",
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

// stamped gives the leaf PV the stamp and policy Retain.
func stamped(s *volume.Observed) {
	if held := volume.StampedLeafVolume(s); held != nil {
		s.Leaf = held
	}
}

// mirrored adds the host PV and binds it to the root.
func mirrored(s *volume.Observed) {
	stamped(s)
	s.Host = hostpv.TranslateVolume(s.Leaf, s.Root, deletes, here)
	s.Host.UID = "host-uid"
	s.Host.Status.Phase = corev1.VolumeBound
	s.Root.Spec.VolumeName = s.Host.Name
}

// recreated replaces the leaf PV with another one that has the same name. The root is bound to the
// host PV that represents the earlier one.
func recreated(s *volume.Observed) {
	fresh := s.Leaf.DeepCopy()
	mirrored(s)
	fresh.UID = "leaf-uid-2"
	s.Leaf, s.EarlierHosts, s.Host = fresh, []corev1.PersistentVolume{*s.Host}, nil
}

// released sets the host PV's phase to Released, as the host's PV controller does after the root
// was deleted.
func released(s *volume.Observed) { s.Host.Status.Phase = corev1.VolumeReleased }

// terminating marks the leaf PV as deleted by a user of the member.
func terminating(s *volume.Observed) { s.Leaf.DeletionTimestamp = &now }

func rootGone(s *volume.Observed)   { s.Root, s.Class = nil, nil }
func noClaim(s *volume.Observed)    { s.LeafClaim = nil }
func noHost(s *volume.Observed)     { s.Host = nil }
func notStamped(s *volume.Observed) { s.Leaf.Labels, s.Leaf.Annotations = nil, nil }
func nameTaken(s *volume.Observed)  { s.PlainNameTaken = true }

func suffixTaken(s *volume.Observed) { s.SuffixedNameTaken = true }

var suffixed = hostpv.HostVolumeName("pv-1", here.ClusterID, true)

// dropped removes the root and the leaf claim, and sets the leaf PV's phase to Released.
func dropped(s *volume.Observed) {
	stamped(s)
	noClaim(s)
	s.Root = nil
	s.Leaf.Status.Phase = corev1.VolumeReleased
}

// asks adds a new claim with the root's name that requests the volume, which an admin allows.
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

func restored(s *volume.Observed) { s.MayBeRestored = true }

func rootLost(s *volume.Observed) { s.RootMayBeLost = true }

func notAllowed(s *volume.Observed) { s.Rules = adopting("pv-2") }

func leafPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Leaf.Spec.PersistentVolumeReclaimPolicy = p }
}

func hostPolicy(p corev1.PersistentVolumeReclaimPolicy) func(*volume.Observed) {
	return func(s *volume.Observed) { s.Host.Spec.PersistentVolumeReclaimPolicy = p }
}

// hostClaim sets the UID in the host PV's claimRef, and the host PV's phase.
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

// claimRecreated replaces the leaf claim with another one for the same volume.
func claimRecreated(s *volume.Observed) {
	s.LeafClaim.UID, s.LeafClaim.Status.Phase = "leaf-claim-2", corev1.ClaimPending
	s.Leaf.Status.Phase = corev1.VolumeReleased
}

// usedAgain binds the host PV, after it was freed, to a claim with another name.
func usedAgain(s *volume.Observed) {
	s.Root.Name, s.Root.UID = "other", "newer-uid"
	s.Host.Spec.ClaimRef.Name, s.Host.Spec.ClaimRef.UID = s.Root.Name, s.Root.UID
	claimRecreated(s)
	s.LeafClaim.Name = s.Root.Name
	mirror.OriginForRoot(here.HostID, s.Root).StampLeaf(s.LeafClaim)
}

// boundAgain binds the host PV, after it was freed, to a newer claim with the root's name, while
// the earlier claim's leaf claim still exists.
func boundAgain(s *volume.Observed) {
	s.Root.UID, s.Host.Spec.ClaimRef.UID = "newer-uid", "newer-uid"
}

// result is what happens to a leaf PV.
type result struct {
	Step lifecycle.Step
	// Fields of the written object: name, policy, claimRef's UID, the root's UID in its stamp, and
	// whether Xylem's finalizer is its only one.
	Name             string
	Policy           corev1.PersistentVolumeReclaimPolicy
	ClaimOf, StampOf types.UID
	Finalizer        bool
	// If the controller writes nothing, Told is the reason that it reports, and Event the event that
	// it emits.
	Told, Event string
	Orphan      bool
	// By is the other controller that owns the next step.
	By lifecycle.Owner
}

// of returns what the controller does with a plan.
func of(t *testing.T, s *volume.Observed, plan lifecycle.Plan) result {
	t.Helper()
	pv, emitted := take(t, s, plan)
	r := result{Step: plan.StepOwnedBy(lifecycle.LeafPV)}
	switch {
	case pv == nil && r.Step != lifecycle.None:
		t.Errorf("step %s wrote nothing", r.Step)
	case pv != nil:
		origin, _ := mirror.LeafOriginFromHost(here.HostID, pv)
		r.Name, r.Policy, r.StampOf = pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, origin.UID
		r.Finalizer = slices.Equal(pv.Finalizers, []string{v1alpha1.FinalizerLeafVolume})
		if pv.Spec.ClaimRef != nil {
			r.ClaimOf = pv.Spec.ClaimRef.UID
		}
	case plan.Owner != lifecycle.LeafPV:
		if len(emitted) > 0 {
			t.Errorf("emitted events %q, although %s reports the problem", emitted, plan.Owner)
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
		return told(v1alpha1.ReasonSurplusVolume, "member \"cluster38\" has a surplus volume \"pv-1\" for this claim: %s. Xylem does not use the volume, but keeps its data. If nobody needs the data, delete the volume in member \"cluster38\"", why)
	}
	taken := func(name string) result {
		return told(v1alpha1.ReasonVolumeMismatch, `leaf volume "pv-1" in member "cluster38" may be this claim's own disk, but Xylem does not use it: the claim names PersistentVolume %q, which does not represent the leaf volume. `+
			"Find out which of the two volumes has the claim's data before you delete either. Xylem keeps the data of the leaf volume", name)
	}
	replaced := told(v1alpha1.ReasonVolumeReplaced, `leaf volume "pv-1" in member "cluster38" may be this claim's own disk, but Xylem does not use it: the volume was re-created with the same name, and PersistentVolume "pv-1" of the claim represents the earlier volume. `+
		`To use the re-created volume, make sure that its disk is the right one, then delete the claim and create it again with volumeName "pv-1". Xylem keeps the data of the re-created volume`)
	orphan := result{Orphan: true}
	retainedHost, repointed := keepHost, leaf(lifecycle.Repoint)
	retainedHost.Policy, repointed.ClaimOf = retains, "leaf-claim-2"
	adopted := result{Step: lifecycle.Adopt, Name: "pv-1", Policy: retains, ClaimOf: "new-uid", Finalizer: true}
	for name, tc := range map[string]struct {
		there *volume.Observed
		want  result
	}{
		"the PV does not exist":  {&volume.Observed{Member: here, Name: "pv-1"}, rest},
		"the PV is foreign (I4)": {seen(noClaim, rootGone), rest},
		"the root was deleted before the PV was stamped, and the PV has policy Retain: it is stamped, so that it is reported (I1)": {seen(rootGone, leafPolicy(retains)), stamp},
		"the root was deleted before the PV was stamped, and the PV has policy Delete":                                             {seen(rootGone), rest},
		"the PV is being deleted in the member and has policy Retain":                                                              {seen(mirrored, terminating), rest},
		"the PV is being deleted in the member and has policy Delete: retained (I2)":                                               {seen(mirrored, terminating, leafPolicy(deletes)), stamp},
		"the PV is being deleted before it was mirrored: retained, but not mirrored":                                               {seen(terminating), stamp},
		"the PV is being deleted before it was mirrored, and has policy Retain":                                                    {seen(stamped, terminating), rest},
		"the PV is being deleted, its root was deleted, and its policy is Retain: it is stamped, so that it is reported (I1)":      {seen(terminating, rootGone, leafPolicy(retains)), stamp},
		"the host PV was abandoned after Xylem set the PV to Delete, and is gone: the PV is retained (I2)":                         {seen(stamped, rootGone, leafPolicy(deletes)), keep},
		"the root was deleted, but the cache is stale: root_pv destroys the volume":                                                {seen(mirrored, released, leafPolicy(deletes)), rest},
		"root and leaf claim were deleted, but the cache is stale":                                                                 {seen(mirrored, released, leafPolicy(deletes), noClaim), rest},
		"the claim was just bound: one patch sets the stamp and policy Retain (I2)":                                                {seen(), stamp},
		"the member's PV controller has not bound the PV yet":                                                                      {seen(leafPhase(corev1.VolumeAvailable)), rest},
		"the member's PV controller has not bound the claim yet":                                                                   {seen(func(s *volume.Observed) { s.LeafClaim.Status.Phase = corev1.ClaimPending }), rest},
		"the PV is stamped: the host PV is created, with the root's UID in its claimRef":                                           {seen(stamped), create("pv-1", deletes)},
		"the PV is stamped, but its name is taken in the host: the host PV gets a suffix (I4)":                                     {seen(stamped, nameTaken), create(hostpv.HostVolumeName("pv-1", here.ClusterID, true), deletes)},
		"the host's class has policy Retain (I2)":                                                                                  {seen(stamped, func(s *volume.Observed) { s.Class.ReclaimPolicy = ptr.To(retains) }), create("pv-1", retains)},
		"the host's class does not exist: policy Retain (I2)":                                                                      {seen(stamped, func(s *volume.Observed) { s.Class = nil }), create("pv-1", retains)},
		"the leaf PV's original policy is Retain (I2)":                                                                             {seen(leafPolicy(retains), stamped), create("pv-1", retains)},
		"the leaf PV's original policy is unknown (I2)":                                                                            {seen(stamped, gave("Recycle")), create("pv-1", retains)},
		"the PV is mirrored and bound: no write (I5)":                                                                              {seen(mirrored), rest},
		"the member's admin sets policy Delete while the PV is in use: set back to Retain (I2)":                                    {seen(mirrored, leafPolicy(deletes)), stamp},
		"a user of the member removed the stamp":                                                                                   {seen(mirrored, notStamped, leafPolicy(deletes)), stamp},
		"the host PV was deleted: re-created with policy Retain, which repairs a Lost claim (I2)":                                  {seen(mirrored, noHost), create("pv-1", retains)},
		"the suffixed host PV was deleted: re-created under the suffixed name, although the plain name is free":                    {seen(mirrored, noHost, boundTo(suffixed)), create(suffixed, retains)},
		"the host PV was deleted: re-created under its plain name, although the suffixed name is taken":                            {seen(mirrored, noHost, suffixTaken), create("pv-1", retains)},
		"the suffixed host PV was deleted, and a foreign PV has taken its name (I4)":                                               {seen(mirrored, noHost, boundTo(suffixed), suffixTaken), taken(suffixed)},

		"the leaf claim was lost: root_pvc re-creates it":                         {seen(mirrored, noClaim), rest},
		"the leaf claim was lost, and the member's admin sets policy Delete (I2)": {seen(mirrored, noClaim, leafPolicy(deletes)), hold},

		// One volume for a root.
		"the root is placed in another member: the volume is surplus (I3)":                          {seen(placedIn("id39")), surplus(`the claim is placed in another cluster (ID "id39")`)},
		"the root is not placed: the volume is not mirrored, and root_pvc decides (I3)":             {seen(placedIn("")), rest},
		"the root is not placed, and the leaf PV is stamped: the volume is not reported as surplus": {seen(stamped, placedIn("")), rest},
		"the root is not placed, but bound to another volume (I3)":                                  {seen(stamped, placedIn(""), boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is placed in another member, but bound to this volume":                            {seen(mirrored, placedIn("id39")), rest},
		"the root is placed in another member, but about to be bound to this volume":                {seen(mirrored, placedIn("id39"), boundTo("")), rest},

		// The member re-created the leaf PV.
		"PV re-created while its claim exists: retained and stamped (I2)":                                            {seen(recreated), keep},
		"PV re-created, retained and stamped: reported as replaced, not as surplus":                                  {seen(recreated, stamped), replaced},
		"PV re-created, and the root is not bound yet":                                                               {seen(recreated, stamped, boundTo("")), replaced},
		"PV re-created, and the root is not placed":                                                                  {seen(recreated, stamped, placedIn("")), replaced},
		"PV re-created, and the leaf claim is gone":                                                                  {seen(recreated, stamped, noClaim), replaced},
		"PV re-created with policy Delete, and the leaf claim is gone: retained (I2)":                                {seen(recreated, stamped, noClaim, leafPolicy(deletes)), keep},
		"PV re-created, and the root is bound to another volume: surplus (I3)":                                       {seen(recreated, stamped, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"PV re-created, and the root was deleted: retained, so that root_pv can act (I2)":                            {seen(recreated, rootGone), keep},
		"PV re-created and retained, and the root was deleted: root_pvc waits until the earlier host PV is released": {seen(recreated, stamped, rootGone), result{By: lifecycle.RootPVC, Told: v1alpha1.ReasonVolumeReplaced}},
		"PV re-created, and foreign (I4)":                                                                            {seen(recreated, noClaim), rest},
		"the root is not placed, but bound to this volume":                                                           {seen(mirrored, placedIn("")), rest},
		"the root is bound to another volume: surplus (I3)":                                                          {seen(stamped, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is bound to another volume, but this one has a host PV: surplus":                                   {seen(mirrored, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},
		"the root is bound to a foreign PV with the host PV's name (I4)":                                             {seen(stamped, nameTaken, boundTo("pv-1")), taken("pv-1")},
		"a surplus without a leaf claim is still reported (I1)":                                                      {seen(stamped, noClaim, placedIn("id39")), surplus(`the claim is placed in another cluster (ID "id39")`)},
		"the root is bound to another volume, and the leaf claim is gone: surplus (I1)":                              {seen(stamped, noClaim, boundTo("pv-9")), surplus(`the claim is bound to volume "pv-9"`)},

		// Another claim with the root's name requests the released volume.
		"an admin allows the adoption: the host PV is created with policy Retain": {seen(dropped, asks), adopted},
		"no admin allows the adoption: the volume is an orphan (I8)":              {seen(dropped, asks, notAllowed), orphan},
		"the claim is not placed yet (I3)":                                        {seen(dropped, asks, askedIn("")), orphan},
		"the claim is placed in another member (I3)":                              {seen(dropped, asks, askedIn("id39")), orphan},
		"the requested name is taken in the host (I4)":                            {seen(dropped, asks, nameTaken), orphan},
		"the volume is in use in the member (I4)":                                 {seen(dropped, asks, leafPhase(corev1.VolumeBound)), orphan},
		"the claim's class belongs to another provisioner (I4)":                   {seen(dropped, asks, func(s *volume.Observed) { s.Class.Provisioner = "other" }), orphan},
		"the claim requests more than the volume's capacity":                      {seen(dropped, asks, func(s *volume.Observed) { s.Leaf.Spec.Capacity = nil }), orphan},
		"the earlier leaf claim is still bound: root_pvc adopts it first":         {seen(stamped, rootGone, asks), result{Step: lifecycle.AdoptClaim, By: lifecycle.RootPVC}},

		// The root was deleted.
		"the volume was never mirrored: root_pvc withdraws the leaf claim":                                 {seen(rootGone), rest},
		"the volume may have been mirrored before a restore: retained (I2)":                                {seen(rootGone, restored), stamp},
		"the host may have lost the root in a restore: retained (I2)":                                      {seen(rootGone, rootLost), stamp},
		"the host may have lost the root in a restore, but the volume belongs to another claim (I4)":       {seen(rootGone, rootLost, func(s *volume.Observed) { s.Leaf.Spec.ClaimRef.UID = "another" }), rest},
		"the volume may have been mirrored before a restore, but belongs to another claim (I4)":            {seen(rootGone, restored, func(s *volume.Observed) { s.Leaf.Spec.ClaimRef.UID = "another" }), rest},
		"the PV is stamped and has no host PV: root_pvc deletes the leaf claim first":                      {seen(stamped, rootGone), result{Step: lifecycle.DeleteRetained, By: lifecycle.RootPVC}},
		"the PV is stamped and has neither host PV nor leaf claim: an orphan (I1)":                         {seen(stamped, rootGone, noClaim), orphan},
		"the root of a mirrored volume is gone: root_pv decides (I2)":                                      {seen(mirrored, rootGone), rest},
		"root_pv has set the PV to Delete: not set back to Retain (I5)":                                    {seen(mirrored, rootGone, leafPolicy(deletes)), rest},
		"the host PV has policy Retain, and the leaf PV has Delete: retained (I2)":                         {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains)), hold},
		"the host PV has policy Retain, the leaf PV has Delete, and the leaf claim is gone: retained (I2)": {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostPolicy(retains)), hold},
		"the host PV has policy Retain and is being deleted, and the leaf PV has Delete: retained (I2)":    {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), hostDeleted), hold},
		"the leaf PV's original policy is Retain, but the member's admin sets it to Delete: retained (I2)": {seen(leafPolicy(retains), mirrored, rootGone, leafPolicy(deletes)), hold},
		"the host PV was abandoned: the leaf PV belongs to the member's admin":                             {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), abandoned), rest},
		"an admin freed the host PV after Xylem set the leaf PV to Delete: retained (I2)": {seen(mirrored, rootGone, leafPolicy(deletes), func(s *volume.Observed) {
			s.Host.Spec.ClaimRef, s.Host.Status.Phase = nil, corev1.VolumeAvailable
		}), hold},
		"host PV freed after Xylem set policy Delete, and bound to another claim before leaf_pv observed that: retained (I2)":                             {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), hold},
		"host PV freed after Xylem set policy Delete, bound to another claim, and the leaf claim is gone: retained (I2)":                                  {seen(mirrored, rootGone, noClaim, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeBound)), hold},
		"host PV freed after Xylem set policy Delete, and about to be bound to another claim: retained (I2)":                                              {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("", corev1.VolumeAvailable)), hold},
		"host PV freed after Xylem set policy Delete, and the next claim was deleted too: retained, so that the remaining leaf claim can be deleted (I1)": {seen(mirrored, rootGone, leafPolicy(deletes), hostClaim("newer-uid", corev1.VolumeReleased)), hold},

		"host PV freed, and bound to a newer claim with the root's name: retained (I2)":                             {seen(mirrored, boundAgain, leafPolicy(deletes)), hold},
		"host PV freed, bound to a newer claim, and the stamp was removed: stamped for the leaf claim's root":       {seen(mirrored, boundAgain, notStamped), stamp},
		"host PV freed, bound to a newer claim, and abandoned: neither the stamp nor Xylem's finalizer is restored": {seen(mirrored, boundAgain, notStamped, abandoned, noFinalizer), rest},
		"host PV abandoned, and Xylem's finalizer was removed: the leaf PV belongs to the member's admin":           {seen(mirrored, rootGone, leafPolicy(deletes), hostPolicy(retains), abandoned, noFinalizer), rest},
		"host PV abandoned, and Xylem's finalizer was removed: the finalizer is not restored":                       {seen(mirrored, rootGone, abandoned, noFinalizer), rest},

		// Adoption, and drift in the host PV.
		"registered again after deregistration: Xylem's finalizer is restored":                            {seen(mirrored, withoutFinalizer), keepHost},
		"registered again after deregistration, and the root is gone: Xylem's finalizer is restored (I1)": {seen(mirrored, withoutFinalizer, rootGone), keepHost},
		"the host PV is being deleted: the finalizer is not restored":                                     {seen(mirrored, withoutFinalizer, hostDeleted), rest},
		"the host PV was abandoned: the finalizer is not restored":                                        {seen(mirrored, withoutFinalizer, abandoned), rest},
		"the cluster is registered under another name: the host PV's label is updated":                    {seen(mirrored, registeredAs("old")), keepHost},
		"the volume grew in the member: the host PV is updated": {seen(mirrored, func(s *volume.Observed) {
			s.Leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}), keepHost},
		"the leaf PV's original policy is Retain, and a user sets the host PV to Delete (I2)": {seen(leafPolicy(retains), mirrored), retainedHost},
		"an admin sets the host PV to Retain: no write":                                       {seen(mirrored, hostPolicy(retains)), rest},

		// The leaf claim was lost, or the volume is reused.
		"the leaf claim does not exist: root_pvc re-creates it":                                                  {seen(mirrored, noClaim), rest},
		"leaf claim re-created: the PV's claimRef is set to it, so the PV is never Available":                    {seen(mirrored, claimRecreated), repointed},
		"leaf claim re-created, and the PV was freed in the member":                                              {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Leaf.Spec.ClaimRef = nil; s.Leaf.Status.Phase = corev1.VolumeAvailable }), repointed},
		"leaf claim re-created, but a foreign claim in the member uses the PV (I4)":                              {seen(mirrored, claimRecreated, leafPhase(corev1.VolumeBound), func(s *volume.Observed) { s.Leaf.Spec.ClaimRef.UID = "foreign" }), rest},
		"leaf claim re-created, but the leaf PV is not stamped (I4)":                                             {seen(mirrored, claimRecreated, notStamped), rest},
		"leaf claim re-created, but the leaf PV has no host PV (I2)":                                             {seen(stamped, claimRecreated), rest},
		"leaf claim re-created, but the host PV is bound to another root (I8)":                                   {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Host.Spec.ClaimRef.UID = "other" }), rest},
		"leaf claim re-created, and the host PV was freed: no panic":                                             {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.Host.Spec.ClaimRef = nil }), rest},
		"volume reused by a claim with another name: the leaf PV's claimRef is set to its leaf claim":            {seen(mirrored, usedAgain), result{Step: lifecycle.Repoint, Name: "pv-1", Policy: retains, ClaimOf: "leaf-claim-2", StampOf: "newer-uid"}},
		"volume reused by a claim with another name, but another claim in the member has the PV (I4)":            {seen(mirrored, usedAgain, leafPhase(corev1.VolumeBound)), rest},
		"volume reused by a claim with another name, but the leaf PV still has policy Delete: retained (I2)":     {seen(mirrored, usedAgain, leafPolicy(deletes)), hold},
		"leaf claim re-created, but the leaf PV is being deleted":                                                {seen(mirrored, claimRecreated, terminating), rest},
		"leaf claim re-created, but the root was deleted, and the cache is stale":                                {seen(mirrored, claimRecreated, released), rest},
		"leaf claim re-created for another volume":                                                               {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.LeafClaim.Spec.VolumeName = "pv-9" }), rest},
		"the leaf PV's claimRef names its leaf claim, but the PV is not bound yet":                               {seen(mirrored, leafPhase(corev1.VolumeAvailable)), rest},
		"the leaf claim is gone, and the cluster is registered under another name: the host PV is updated later": {seen(mirrored, noClaim, registeredAs("old")), rest},
		"leaf claim re-created, but already being deleted":                                                       {seen(mirrored, claimRecreated, func(s *volume.Observed) { s.LeafClaim.DeletionTimestamp = &now }), rest},
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
			plan := lifecycle.NextPlan(s)
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
				t.Errorf("deciding and acting changed the observed objects, which belong to the cache:\n%s", diff)
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

// withoutFinalizer removes the host PV's finalizers and marks its cluster as gone, as a
// deregistration does.
func withoutFinalizer(s *volume.Observed) {
	s.Host.Finalizers = nil
	s.Host.Annotations = map[string]string{v1alpha1.AnnotationClusterGone: "cluster38"}
}

func TestAdoptionClearsClusterGone(t *testing.T) {
	s := observedOf(t, seen(mirrored, withoutFinalizer))
	if step := lifecycle.NextPlan(s).StepOwnedBy(lifecycle.LeafPV); step != lifecycle.UpdateHost {
		t.Fatalf("the next step is %q, want UpdateHost", step)
	}
	if _, says := volume.CurrentHostVolume(s).Annotations[v1alpha1.AnnotationClusterGone]; says {
		t.Error("the host PV still reports that its cluster is deregistered")
	}
}

// Stamping a leaf PV changes only its stamp, policy and original policy. The annotations of the
// member's provisioner remain.
func TestStampChangesNothingElse(t *testing.T) {
	s := observedOf(t, seen(func(s *volume.Observed) {
		s.Leaf.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"}
		s.Leaf.Labels = map[string]string{"zone": "a"}
		s.Leaf.Finalizers = []string{"kubernetes.io/pv-protection"}
	}))
	if step := lifecycle.NextPlan(s).StepOwnedBy(lifecycle.LeafPV); step != lifecycle.Stamp {
		t.Fatalf("the next step is %q, want Stamp", step)
	}
	want := s.Leaf.DeepCopy()
	want.Spec.PersistentVolumeReclaimPolicy = retains
	want.Labels = map[string]string{"zone": "a", v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	want.Annotations = map[string]string{v1alpha1.AnnotationNamespaceUID: "namespace-uid", "pv.kubernetes.io/provisioned-by": "disk.example.com",
		v1alpha1.AnnotationReclaimPolicy: string(deletes), v1alpha1.AnnotationRoot: "shop/data", v1alpha1.AnnotationRootUID: "root-uid"}
	after := volume.StampedLeafVolume(s)
	if diff := cmp.Diff(want, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("leaf PV (-want +got):\n%s", diff)
	}
	s.Leaf = after
	if again := volume.StampedLeafVolume(s); again != nil {
		t.Errorf("the second stamp differs from the first (I5):\n%s", cmp.Diff(after, again))
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
		"the volume is mirrored":           {seen(mirrored), false},
		"the root was deleted":             {seen(stamped, rootGone), true},
		"root and leaf claim were deleted": {seen(stamped, rootGone, noClaim), true},
		"root and leaf claim were deleted, and another claim may adopt the volume": {seen(dropped, asks), false},
		"the root has another volume":                                                          {seen(stamped, boundTo("pv-9")), true},
		"the volume was released, perhaps by a leaf claim of this host":                        {left(), true},
		"the volume was released, perhaps by a leaf claim of this host, and has policy Delete": {left(leafPolicy(deletes)), false},
		"a foreign claim in the member uses the volume":                                        {left(leafPhase(corev1.VolumeBound)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := observedOf(t, tc.there)
			if got := mayBeOrphan(s, lifecycle.NextPlan(s)); got != tc.want {
				t.Errorf("suspicious: %v", got)
			}
		})
	}
}

// The orphan tracker checks the member's volumes when a volume loses its root, and again when that
// volume is gone.
func TestSuspicionEndsWithTheVolume(t *testing.T) {
	host, leaf := clusters(t, seen(stamped, rootGone))
	r, _ := controller(here, host, leaf)
	suspicions := r.Orphans.ResetCandidates(here.Registration)
	reconciled := func(want bool) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), requestForVolume("pv-1")[0]); err != nil {
			t.Fatal(err)
		}
		looks := false
		select {
		case <-suspicions:
			looks = true
		default:
		}
		if looks != want {
			t.Errorf("the orphan tracker is notified: %v, want %v", looks, want)
		}
	}
	reconciled(true)
	reconciled(false)
	leaf.objects = nil
	reconciled(true)
	reconciled(false)
}

// adopting returns the rules of a registration whose admin allows a claim to adopt the volume.
func adopting(volume string) placement.Rules {
	return placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAdopt: volume}}})
}
