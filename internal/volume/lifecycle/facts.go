package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/problem"
)

// fact is a condition of a row.
type fact = states.Fact[volume.Observed]

func when(text, opposite string, is func(*volume.Observed) bool) fact {
	return states.If(text, opposite, is)
}

var (
	not    = states.Not[volume.Observed]
	either = states.Any[volume.Observed]
)

// Facts about the host PV.
var (
	twin         = when("two host PVs represent it", "", func(s *volume.Observed) bool { return s.Twin != nil })
	mirrored     = when("mirrored", "not mirrored", func(s *volume.Observed) bool { return s.Host != nil })
	replaced     = when("replaced", "not replaced", func(s *volume.Observed) bool { return len(s.Earlier) > 0 })
	abandoned    = when("annotated "+v1alpha1.AnnotationAbandon, "not abandoned", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Abandoned(s.Host) })
	finalizer    = when("finalizer", "no finalizer", func(s *volume.Observed) bool { return s.HasFinalizer() })
	hostDeleting = when("host PV terminating", "host PV not terminating", func(s *volume.Observed) bool { return deleting(s.Host) })
	ended        = when("host PV has ended", "host PV has not ended", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Ended(s.Host) })
	unclaimed    = when("host PV without claimRef", "host PV with claimRef", func(s *volume.Observed) bool { return s.Host.Spec.ClaimRef == nil })
	free         = when("host PV is free", "host PV is not free", func(s *volume.Observed) bool {
		return s.Host.Spec.ClaimRef == nil || s.Host.Status.Phase == corev1.VolumeAvailable
	})
	freed = when("host PV was freed for another claim", "host PV was not freed", func(s *volume.Observed) bool { return s.Freed() })
	bound = when("bound", "not bound", func(s *volume.Observed) bool { return s.Bound() })

	destroyed = when("to be destroyed", "to be kept", func(s *volume.Observed) bool { return s.Destroys() })
	retained  = when("host PV or member retains it", "neither host PV nor member retains it", func(s *volume.Observed) bool {
		return s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || s.Policy() != corev1.PersistentVolumeReclaimDelete
	})
	unsupported = when("host PV's policy is Recycle", "host PV's policy is not Recycle", func(s *volume.Observed) bool {
		policy := s.Host.Spec.PersistentVolumeReclaimPolicy
		return policy != corev1.PersistentVolumeReclaimDelete && policy != corev1.PersistentVolumeReclaimRetain
	})
	outdated  = when("host PV not up to date", "", func(s *volume.Observed) bool { return s.Outdated() })
	unguarded = when("no finalizer, or not Retain although the member retains it", "", func(s *volume.Observed) bool { return s.Unguarded() })
)

// Facts about host PVs that admins created.
var (
	importable = when("an admin's host PV requests it, and may adopt it", "", func(s *volume.Observed) bool { return problem.Importable(s) })
	imports    = when("root claim is bound to an admin's host PV that is not recorded", "", func(s *volume.Observed) bool { return s.BoundToImport() })
	untaken    = when("an admin's host PV represents it, and it has neither that PV's nor a claim's stamp", "", func(s *volume.Observed) bool { return s.Untaken() })
	keptUnused = when("both policies are Delete, and the volume was adopted but never used by a claim in the host", "", func(s *volume.Observed) bool { return s.KeptUnused() })
	takeable   = when("the member's admin consents, and no claim in the member has it", "", func(s *volume.Observed) bool { return problem.ReportUntaken(s) == nil })
)

// Facts about promises.
var (
	movable      = when("Bound, and without a disk that must outlive its Pods", "", func(s *volume.Observed) bool { return hostpv.Movable(s.Host) })
	placeless    = when("a promise that no member has", "not a promise that no member has", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnused(s.Host) })
	unwanted     = when("its claim has another volume", "", func(s *volume.Observed) bool { return s.Superseded() })
	unfulfilled  = when("a promise without a disk", "", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnfulfilled(s.Host) })
	promised     = when("root claim has, or will have, a promise", "root claim has no promise", func(s *volume.Observed) bool { return s.Promised() })
	promisedHere = when("this member has its promise", "this member does not have its promise", func(s *volume.Observed) bool { return s.PromisedHere() })
	scratch      = when("a Bound promise, released when unused", "", func(s *volume.Observed) bool { return s.Scratch() })
	releasing    = when("marked as being released", "not marked as being released", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Releasing(s.Host) })
	marked       = when("marked as unused", "", func(s *volume.Observed) bool { return hostpv.MarkedUnused(s.Host) })
	dated        = when("marked as unused, with the time", "not marked as unused", func(s *volume.Observed) bool { return s.UnusedSince() != nil })
	counted      = when("this process has listed its Pods since the mark", "this process has not listed its Pods since the mark", func(s *volume.Observed) bool { return s.Unused.Listed })
	graceOver    = when("the grace period is over", "the grace period is not over", func(s *volume.Observed) bool { return s.Unused.For >= s.Unused.Grace })
	used         = when("a Pod uses it", "no Pod uses it", func(s *volume.Observed) bool { return len(s.Users) > 0 })
	consumed     = when("a Pod has used it", "", func(s *volume.Observed) bool { return s.Host.Annotations[v1alpha1.AnnotationConsumer] != "" })
)

// Facts about the leaf PV.
var (
	ours       = when("leaf PV stamped, or named by one of Xylem's leaf claims", "", func(s *volume.Observed) bool { return s.Ours() })
	hasLeaf    = when("leaf PV", "no leaf PV", func(s *volume.Observed) bool { return s.Leaf != nil })
	recreated  = when("another leaf PV has its name", "no other leaf PV has its name", func(s *volume.Observed) bool { return s.Recreated != nil })
	stamped    = when("leaf PV stamped", "leaf PV not stamped", func(s *volume.Observed) bool { return s.Stamped })
	leafDelete = when("leaf PV's policy is Delete", "leaf PV's policy is not Delete", func(s *volume.Observed) bool {
		return s.Leaf != nil && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	})
	leafRetain  = when("leaf PV retained or gone", "leaf PV not retained", func(s *volume.Observed) bool { return proof.Retained(s.Leaf) })
	terminating = when("leaf PV terminating", "leaf PV not terminating", func(s *volume.Observed) bool { return s.Leaf != nil && deleting(s.Leaf) })
	leafBound   = when("leaf PV Bound", "leaf PV not Bound", func(s *volume.Observed) bool { return s.Leaf != nil && s.Leaf.Status.Phase == corev1.VolumeBound })
	provisioned = when("leaf claim and leaf PV are Bound", "leaf claim and leaf PV are not Bound", func(s *volume.Observed) bool {
		return s.Held() && s.Leaf.Status.Phase == corev1.VolumeBound && s.Claim.Status.Phase == corev1.ClaimBound
	})
	unsecured  = when("leaf PV not stamped and retained", "", func(s *volume.Observed) bool { return s.StampedLeaf() != nil })
	unkept     = when("leaf PV not secured", "", func(s *volume.Observed) bool { return s.Leaf != nil && s.KeptLeaf() != nil })
	mayBeKnown = when("the member retains it or consented to its adoption, or it may have been mirrored", "the member neither retains it nor consented to its adoption, and it was never mirrored", func(s *volume.Observed) bool { return s.MayBeMirrored() })
	adoptable  = when("a claim requests it and may adopt it", "", func(s *volume.Observed) bool { return s.Adoptable() })
	mayDelete  = when("it must be destroyed, or outlives the leaf claim", "", func(s *volume.Observed) bool { return s.MayDelete() })
)

// Facts about the leaf claim.
var (
	hasClaim      = when("leaf claim", "no leaf claim", func(s *volume.Observed) bool { return s.Claim != nil })
	claimed       = when("leaf claim names it", "no leaf claim names it", func(s *volume.Observed) bool { return s.Claimed() })
	claimDeleting = when("leaf claim terminating", "leaf claim not terminating", func(s *volume.Observed) bool { return s.Claim != nil && deleting(s.Claim) })
	claimUnbound  = when("leaf claim names no volume", "leaf claim names a volume", func(s *volume.Observed) bool { return s.Claim != nil && s.Claim.Spec.VolumeName == "" })
	claimBound    = when("leaf claim Bound", "leaf claim not Bound", func(s *volume.Observed) bool { return s.Claim.Status.Phase == corev1.ClaimBound })
	claimLost     = when("leaf claim Lost", "", func(s *volume.Observed) bool { return s.Claim.Status.Phase == corev1.ClaimLost })
	held          = when("leaf claim has it", "leaf claim does not have it", func(s *volume.Observed) bool { return s.Held() })
	heldByAnother = when("another root's leaf claim has it", "", func(s *volume.Observed) bool { return s.Holder != nil })
	holderRoot    = when("that root claim exists", "that root claim is gone", func(s *volume.Observed) bool { return s.HolderRoot != nil })
	outlived      = when("a deleted root's leaf claim has it", "", func(s *volume.Observed) bool {
		claim := s.Stale()
		return s.Left == nil && claim != nil && !deleting(claim) && (s.Holder != nil || s.HostRoot() == "")
	})
	leftOutlived = when("leaf PV outlives that leaf claim", "", func(s *volume.Observed) bool { return proof.Outlives(s.Leaf, s.Left) })
	left         = when("another leaf claim, whose root is gone, names it", "", func(s *volume.Observed) bool { return s.Left != nil })
	leftDeleting = when("that leaf claim terminating", "that leaf claim not terminating", func(s *volume.Observed) bool { return deleting(s.Left) })
	lent         = when("the leaf PV's claimRef names another claim", "", func(s *volume.Observed) bool {
		ref := s.Leaf.Spec.ClaimRef
		return ref != nil && ref.UID != "" && ref.UID != s.Claim.UID
	})
	pointed = when("the leaf PV's claimRef names the leaf claim", "", func(s *volume.Observed) bool { return hostpv.PointsAt(s.Leaf, s.Claim) })
	slow    = when("the member's PV controller has not bound it again", "", func(s *volume.Observed) bool {
		return s.Held() && s.Claim.Status.Phase == corev1.ClaimPending && s.Claim.Annotations[v1alpha1.AnnotationVolumeUID] != string(s.Leaf.UID)
	})
	asked = when("a new claim requests its volume", "", func(s *volume.Observed) bool { return s.AskedFor() })
)

// Facts about the root claim.
var (
	hasRoot      = when("root claim", "no root claim", func(s *volume.Observed) bool { return s.Root != nil })
	rootDeleting = when("root claim terminating", "root claim not terminating", func(s *volume.Observed) bool { return deleting(s.Root) })
	own          = when("root claim will be bound to it", "root claim will not be bound to it", func(s *volume.Observed) bool { return s.Own() })
	placed       = when("placed", "not placed", func(s *volume.Observed) bool { return s.PlacedIn() != "" })
	placedHere   = when("placed here", "placed in another member", func(s *volume.Observed) bool { return s.PlacedIn() == s.Member.ClusterID })
	mistaken     = when("the root claim's host PV represents another leaf PV with the same name", "", func(s *volume.Observed) bool { return problem.Mistaken(s) != nil })
	elsewhere    = when("root claim is placed in another member, or names another volume", "", func(s *volume.Observed) bool { return s.Elsewhere() != "" })
	placedAway   = when("placed in another member", "", func(s *volume.Observed) bool { return s.PlacedIn() != "" && s.PlacedIn() != s.Member.ClusterID })
	grown        = when("root claim requests more", "", func(s *volume.Observed) bool {
		_, grown := pvc.Growth(s.Root, s.Claim)
		return grown
	})
	modified        = when("root claim names another VolumeAttributesClass", "", func(s *volume.Observed) bool { return pvc.AttributesOf(s.Root, s.Claim) == pvc.AttributesChange })
	attributesFixed = when("root claim names no VolumeAttributesClass, but the member has applied one", "", func(s *volume.Observed) bool { return pvc.AttributesOf(s.Root, s.Claim) == pvc.AttributesFixed })
)

func deleting(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// Facts about a claim without a volume in the member.
var (
	alone           = when("a claim without a volume in this member", "", (*volume.Observed).Alone)
	named           = when("it names a volume", "it names no volume", func(s *volume.Observed) bool { return s.Root.Spec.VolumeName != "" })
	selected        = when("this member is selected", "this member is not selected", (*volume.Observed).Selected)
	agreed          = when("the scheduler agrees, if recovery selected this member", "recovery selected this member, but the scheduler does not agree yet", (*volume.Observed).Agreed)
	ownClass        = when("class belongs to Xylem", "class does not belong to Xylem", func(s *volume.Observed) bool { return hostclass.Own(s.Class) })
	mirrors         = when("class is in mirror mode and waits for a consumer", "class is not in mirror mode, or binds immediately", (*volume.Observed).Mirrors)
	boundAway       = when("bound to a volume outside this member", "the volume that it names is not observed", func(s *volume.Observed) bool { return s.Placement.BoundAway })
	namesMirror     = when("it names the host PV of its leaf claim's volume", "", (*volume.Observed).NamesMirror)
	mirrorDeleting  = when("its host PV terminating", "", func(s *volume.Observed) bool { return terminatingPV(s.Placement.Mirror) })
	hostUnconfirmed = when("the restore of the host is unconfirmed", "", func(s *volume.Observed) bool { return s.Placement.HostUnconfirmed })
	confirmed       = when("an admin allows the use of the leaf claim's volume, or the leaf claim predates the confirmed restore of the host", "", (*volume.Observed).Confirmed)
	maybeElsewhere  = when("it is older than a restore of the host, and another member has a leaf claim for it, or cannot be queried", "", func(s *volume.Observed) bool { return s.MayBeForgotten() && s.Placement.Counterparts.Any() })
	classRefused    = when("the member refuses its class", "", func(s *volume.Observed) bool { return s.Answer().ByClass() })
	refused         = when("the member refuses it", "", func(s *volume.Observed) bool { return s.ReportRefused() != nil })
	namespaced      = when("the member has its namespace", "the member lacks its namespace", func(s *volume.Observed) bool { return s.Placement == nil || !s.Answer().Waits })

	vanished = when("leaf claim was created for a volume that is gone", "", func(s *volume.Observed) bool {
		return s.Claim != nil && s.Placement.Provisioned == nil && !metav1.HasAnnotation(s.Claim.ObjectMeta, volumehelpers.AnnBindCompleted)
	})
	provisionedDeleting = when("leaf PV terminating", "leaf PV not terminating", func(s *volume.Observed) bool { return terminatingPV(s.Placement.Provisioned) })

	asks        = when("the leaf PV is here, and no host PV has its name or represents it", "a host PV has its name, or represents it", func(s *volume.Observed) bool { return s.Placement == nil || s.Placement.Asked != nil })
	rivals      = when("other members also have a volume that the claim requests", "", func(s *volume.Observed) bool { return s.Placement != nil && len(s.Placement.Rivals) > 0 })
	unadoptable = when("the claim may not adopt it", "", func(s *volume.Observed) bool { return s.ReportUnadoptable() != nil })
)

// Facts about the data source of a claim that has no volume in the member.
var (
	pinned        = when("a claim or a snapshot is its data source", "neither a claim nor a snapshot is its data source", (*volume.Observed).Pinned)
	sourceAway    = when("its data source is not in this member, or not ready", "", (*volume.Observed).SourceAway)
	sourceRefused = when("the member cannot create it from its data source", "", func(s *volume.Observed) bool { return problem.ReportSource(s) != nil })
	sourceLost    = when("its data source is gone from the member", "", (*volume.Observed).SourceLost)
	unlike        = when("leaf claim was not created from the claim's data source", "", (*volume.Observed).Unlike)
	apart         = when("its Pod has another claim, whose data source is not here", "", (*volume.Observed).Apart)
	unrecordedYet = when("the location of its data source is not recorded", "", (*volume.Observed).SourceUnrecorded)
)

// Facts about a claim that is, or will be, bound to a promise without a disk.
var (
	unobserved        = when("it has no PersistentVolume, and no member is observed", "", (*volume.Observed).Unobserved)
	ofPromises        = when("class belongs to Xylem and is in promise mode", "class does not belong to Xylem, or is not in promise mode", func(s *volume.Observed) bool { return hostclass.Own(s.Class) && hostpv.Promises(s.Class) })
	unpromisable      = when("Xylem cannot promise a volume to it", "", func(s *volume.Observed) bool { return hostpv.PromiseRefusal(s.Root, s.Class) != nil })
	diskless          = when("bound to a promise without a disk", "not bound to a promise without a disk", func(s *volume.Observed) bool { return s.Promise != nil })
	promiseLost       = when("its promise is gone", "", func(s *volume.Observed) bool { return s.PromiseLost })
	ownPromise        = when("it names its own promise", "", (*volume.Observed).OwnPromise)
	labelledHere      = when("promise labeled for this member", "promise not labeled for this member", func(s *volume.Observed) bool { return s.LabelledFor() == s.Member.ClusterID })
	labelledElsewhere = when("promise labeled for another member", "", func(s *volume.Observed) bool {
		return s.LabelledFor() != "" && s.LabelledFor() != s.Member.ClusterID
	})
	podHere         = when("a Pod here uses it", "no Pod here uses it", func(s *volume.Observed) bool { return len(s.Placement.Pods) > 0 })
	givenUp         = when("promise annotated "+v1alpha1.AnnotationAbandon, "", func(s *volume.Observed) bool { return hostpv.Abandoned(s.Promise) })
	promiseDeleting = when("promise terminating", "", func(s *volume.Observed) bool { return terminatingPV(s.Promise) })
	kept            = when("leaf claim for a promise that is not abandoned", "", (*volume.Observed).KeepsPromise)
)

// terminatingPV reports whether a PV is being deleted. Kubernetes keeps the PV while it is Bound,
// but the PV controller does not bind another claim to it.
func terminatingPV(pv *corev1.PersistentVolume) bool { return pv != nil && pv.DeletionTimestamp != nil }
