package volume

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
)

// fact is a condition of a row, with its text and the text of its opposite.
type fact struct {
	text, opposite string
	is             func(*Snapshot) bool
}

func not(f fact) fact {
	return fact{f.opposite, f.text, func(s *Snapshot) bool { return !f.is(s) }}
}

func either(facts ...fact) fact {
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.text
	}
	return fact{strings.Join(texts, ", or "), "", func(s *Snapshot) bool {
		return slices.ContainsFunc(facts, func(f fact) bool { return f.is(s) })
	}}
}

// Facts of the host PV.
var (
	twin         = fact{"two host PVs represent it", "", func(s *Snapshot) bool { return s.Twin != nil }}
	mirrored     = fact{"a host PV represents it", "no host PV represents it", func(s *Snapshot) bool { return s.Host != nil }}
	replaced     = fact{"a host PV represents an earlier leaf PV of its name", "no host PV represents another leaf PV of its name", func(s *Snapshot) bool { return len(s.Earlier) > 0 }}
	abandoned    = fact{"annotated " + v1alpha1.AnnotationAbandon, "not abandoned", func(s *Snapshot) bool { return s.Host != nil && hostpv.Abandoned(s.Host) }}
	finalizer    = fact{"host PV has our finalizer", "host PV lacks our finalizer", func(s *Snapshot) bool { return s.finalizer() }}
	hostDeleting = fact{"host PV is being deleted", "host PV is not being deleted", func(s *Snapshot) bool { return deleting(s.Host) }}
	ended        = fact{"host PV Released or Failed", "host PV neither Released nor Failed", func(s *Snapshot) bool { return s.Host != nil && hostpv.Ended(s.Host) }}
	unclaimed    = fact{"host PV without claimRef", "host PV with claimRef", func(s *Snapshot) bool { return s.Host.Spec.ClaimRef == nil }}
	free         = fact{"host PV without claimRef or Available", "host PV neither without claimRef nor Available", func(s *Snapshot) bool {
		return s.Host.Spec.ClaimRef == nil || s.Host.Status.Phase == corev1.VolumeAvailable
	}}
	freed = fact{"host PV was freed for another claim", "host PV was not freed", func(s *Snapshot) bool { return s.freed() }}
	bound = fact{"host PV and root claim name each other", "host PV and root claim do not name each other", func(s *Snapshot) bool { return s.bound() }}

	destroyed = fact{"policy Delete on both sides, and leaf PV gone or stamped", "not policy Delete on both sides, or leaf PV not stamped", func(s *Snapshot) bool { return s.destroys() }}
	retained  = fact{"host PV or member retains", "neither host PV nor member retains", func(s *Snapshot) bool {
		return s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || s.Policy() != corev1.PersistentVolumeReclaimDelete
	}}
	unsupported = fact{"host PV's policy is Recycle", "host PV's policy is not Recycle", func(s *Snapshot) bool {
		policy := s.Host.Spec.PersistentVolumeReclaimPolicy
		return policy != corev1.PersistentVolumeReclaimDelete && policy != corev1.PersistentVolumeReclaimRetain
	}}
	outdated  = fact{"host PV is not as the leaf PV is", "", func(s *Snapshot) bool { return s.followed() && s.CurrentHost() != nil }}
	unguarded = fact{"host PV lacks our finalizer, or Retain where the member retains", "", func(s *Snapshot) bool {
		return s.followed() && (!s.finalizer() || s.overrules())
	}}
)

// Facts of promises.
var (
	movable   = fact{"Bound, and no disk that is to outlive its Pods", "", func(s *Snapshot) bool { return hostpv.Movable(s.Host) }}
	placeless = fact{"a promise that no member has", "not a promise that no member has", func(s *Snapshot) bool { return s.Host != nil && hostpv.IsUnused(s.Host) }}
	unwanted  = fact{"its claim has another volume", "", func(s *Snapshot) bool { return s.superseded() }}
	taken     = fact{"an admin took it from a member", "", func(s *Snapshot) bool {
		return hostpv.LetGoIn(s.Host, s.Host.Annotations[v1alpha1.AnnotationAbandon])
	}}
	unfulfilled  = fact{"a promise without a disk", "", func(s *Snapshot) bool { return s.Host != nil && hostpv.IsUnfulfilled(s.Host) }}
	promised     = fact{"root claim is bound to a promise", "root claim is not bound to a promise", func(s *Snapshot) bool { return s.promised() }}
	promisedHere = fact{"the promise is this member's to fulfil", "no promise is this member's to fulfil", func(s *Snapshot) bool { return s.PromisedHere() }}
	scratch      = fact{"a promise whose disk goes with its last Pod, Bound", "", func(s *Snapshot) bool { return s.scratch() }}
	releasing    = fact{"marked as released", "not marked as released", func(s *Snapshot) bool { return s.Host != nil && hostpv.Releasing(s.Host) }}
	marked       = fact{"marked as unused", "", func(s *Snapshot) bool { return hostpv.MarkedUnused(s.Host) }}
	used         = fact{"a Pod uses it", "no Pod uses it", func(s *Snapshot) bool { return len(s.Users) > 0 }}
	consumed     = fact{"a Pod is recorded that used it", "", func(s *Snapshot) bool { return s.Host.Annotations[v1alpha1.AnnotationConsumer] != "" }}
)

// Facts of the leaf PV.
var (
	ours       = fact{"leaf PV stamped, or named by a leaf claim of ours", "", func(s *Snapshot) bool { return s.Ours() }}
	hasLeaf    = fact{"leaf PV", "no leaf PV", func(s *Snapshot) bool { return s.Leaf != nil }}
	recreated  = fact{"another leaf PV has its name", "no other leaf PV has its name", func(s *Snapshot) bool { return s.Recreated != nil }}
	stamped    = fact{"leaf PV stamped", "leaf PV not stamped", func(s *Snapshot) bool { return s.Stamped }}
	leafDelete = fact{"leaf PV at Delete", "leaf PV not at Delete", func(s *Snapshot) bool {
		return s.Leaf != nil && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	}}
	leafRetain  = fact{"leaf PV at Retain, or gone", "leaf PV not at Retain", func(s *Snapshot) bool { return proof.Retained(s.Leaf) }}
	terminating = fact{"leaf PV is being deleted", "leaf PV is not being deleted", func(s *Snapshot) bool { return s.Leaf != nil && deleting(s.Leaf) }}
	leafBound   = fact{"leaf PV Bound", "leaf PV not Bound", func(s *Snapshot) bool { return s.Leaf != nil && s.Leaf.Status.Phase == corev1.VolumeBound }}
	provisioned = fact{"leaf claim and leaf PV are Bound to each other", "leaf claim and leaf PV are not Bound to each other", func(s *Snapshot) bool {
		return s.Held() && s.Leaf.Status.Phase == corev1.VolumeBound && s.Claim.Status.Phase == corev1.ClaimBound
	}}
	unheld     = fact{"leaf PV lacks the stamp, a note or policy Retain", "", func(s *Snapshot) bool { return s.StampedLeaf() != nil }}
	unkept     = fact{"leaf PV lacks policy Retain, or its leaf claim's stamp", "", func(s *Snapshot) bool { return s.Leaf != nil && s.KeptLeaf() != nil }}
	mayBeKnown = fact{"the member retains it, or it may have been mirrored", "the member does not retain it, and it was never mirrored", func(s *Snapshot) bool { return s.mayBeMirrored() }}
	adoptable  = fact{"a claim asks for it and may have it", "", func(s *Snapshot) bool { return s.adoptable() }}
	mayDelete  = fact{"it goes with its claim, or outlives the leaf claim", "", func(s *Snapshot) bool { return s.mayDelete() }}
)

// Facts of the leaf claim.
var (
	hasClaim      = fact{"leaf claim", "no leaf claim", func(s *Snapshot) bool { return s.Claim != nil }}
	claimed       = fact{"leaf claim names it", "no leaf claim names it", func(s *Snapshot) bool { return s.Claimed() }}
	claimDeleting = fact{"leaf claim is being deleted", "leaf claim is not being deleted", func(s *Snapshot) bool { return s.Claim != nil && deleting(s.Claim) }}
	claimUnbound  = fact{"leaf claim names no volume", "", func(s *Snapshot) bool { return s.Claim.Spec.VolumeName == "" }}
	claimBound    = fact{"leaf claim Bound", "leaf claim not Bound", func(s *Snapshot) bool { return s.Claim.Status.Phase == corev1.ClaimBound }}
	claimLost     = fact{"leaf claim Lost", "", func(s *Snapshot) bool { return s.Claim.Status.Phase == corev1.ClaimLost }}
	held          = fact{"leaf PV bound to its leaf claim", "leaf PV not bound to its leaf claim", func(s *Snapshot) bool { return s.Held() }}
	heldByAnother = fact{"leaf PV bound to the leaf claim of another root", "", func(s *Snapshot) bool { return s.Holder != nil }}
	holderRoot    = fact{"the root claim of that one is there", "the root claim of that one is gone", func(s *Snapshot) bool { return s.HolderRoot != nil }}
	outlived      = fact{"leaf PV bound to the leaf claim of a root that is gone", "", func(s *Snapshot) bool {
		claim := s.Stale()
		return s.Left == nil && claim != nil && !deleting(claim) && (s.Holder != nil || s.hostRoot() == "")
	}}
	leftOutlived = fact{"leaf PV outlives that leaf claim", "", func(s *Snapshot) bool { return proof.Outlives(s.Leaf, s.Left) }}
	left         = fact{"another leaf claim names it, whose root is gone", "", func(s *Snapshot) bool { return s.Left != nil }}
	leftDeleting = fact{"that leaf claim is being deleted", "that leaf claim is not being deleted", func(s *Snapshot) bool { return deleting(s.Left) }}
	lent         = fact{"leaf PV names another claim", "", func(s *Snapshot) bool {
		ref := s.Leaf.Spec.ClaimRef
		return ref != nil && ref.UID != "" && ref.UID != s.Claim.UID
	}}
	pointed = fact{"leaf PV points at the leaf claim", "", func(s *Snapshot) bool { return hostpv.PointsAt(s.Leaf, s.Claim) }}
	slow    = fact{"the member's PV controller has not bound it again", "", func(s *Snapshot) bool {
		return s.Held() && s.Claim.Status.Phase == corev1.ClaimPending && s.Claim.Annotations[v1alpha1.AnnotationVolumeUID] != string(s.Leaf.UID)
	}}
	asked = fact{"a new claim asks for its volume", "", func(s *Snapshot) bool { return s.asked() }}
)

// Facts of the root claim.
var (
	hasRoot      = fact{"root claim", "no root claim", func(s *Snapshot) bool { return s.Root != nil }}
	rootDeleting = fact{"root claim is being deleted", "", func(s *Snapshot) bool { return deleting(s.Root) }}
	own          = fact{"root claim is bound to it, or about to be", "root claim is not bound to it", func(s *Snapshot) bool { return s.own() }}
	placed       = fact{"root claim is placed", "root claim is not placed", func(s *Snapshot) bool { return s.placed() != "" }}
	placedHere   = fact{"root claim is placed here", "root claim is placed in another member", func(s *Snapshot) bool { return s.placed() == s.Member.ClusterID }}
	mistaken     = fact{"root claim's host PV has or had its name, and represents another leaf PV", "", func(s *Snapshot) bool { return s.mistaken() != nil }}
	elsewhere    = fact{"root claim is placed elsewhere, or names another volume", "", func(s *Snapshot) bool { return s.elsewhere() != "" }}
	grown        = fact{"root claim requests more", "", func(s *Snapshot) bool {
		_, grown := pvc.Growth(s.Root, s.Claim)
		return grown
	}}
	modified = fact{"root claim asks for another volumeAttributesClass", "", func(s *Snapshot) bool {
		return s.Claim.Status.Phase == corev1.ClaimBound &&
			ptr.Deref(s.Root.Spec.VolumeAttributesClassName, "") != ptr.Deref(s.Claim.Spec.VolumeAttributesClassName, "")
	}}
)
