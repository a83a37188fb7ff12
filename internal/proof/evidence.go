package proof

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// Action is a write that requires evidence.
type Action int

const (
	// DeleteClaim deletes a leaf claim.
	DeleteClaim Action = iota
	// SetDelete sets a leaf PV's reclaim policy to Delete.
	SetDelete
	// DeleteSnapshot deletes a leaf VolumeSnapshot.
	DeleteSnapshot
	// SetContentDelete sets the deletion policy of a leaf VolumeSnapshotContent to Delete.
	SetContentDelete
	// DeleteContent deletes a leaf VolumeSnapshotContent.
	DeleteContent
	// DeleteCopy deletes a claim or PV that is a copy of a shared volume.
	DeleteCopy
	// DropVolume deletes a host PV, or removes Xylem's finalizers or the record of a disk from it.
	DropVolume
	// DropCopyRecord removes the record of a copy of a shared volume from a host PV.
	DropCopyRecord
	// DropContent removes the driver's finalizer from a host VolumeSnapshotContent.
	DropContent
	// DeleteNamespace deletes a namespace in a member.
	DeleteNamespace
)

// Evidence contains the proofs that a destructive write requires. The proofs are fields, in the
// order of their reads.
type Evidence interface {
	// CoversWrite is called by SpendEvidence. Only this package can implement or call it.
	CoversWrite(EvidenceKey, Action, client.Object) error
}

// DataKeepingEvidence is an Evidence for a write that keeps all data.
type DataKeepingEvidence interface {
	Evidence
	// KeepsData can be implemented only by this package and its subpackages.
	KeepsData(EvidenceKey)
}

// DataDestroyingEvidence is an Evidence for a write that destroys data, so that the write requires Unneeded, too.
type DataDestroyingEvidence interface {
	Evidence
	// DestroysDataOf returns the UID of the claim or VolumeSnapshot in the host whose data is destroyed.
	DestroysDataOf(EvidenceKey) types.UID
}

// SpendEvidence returns nil if an Evidence is for this action and exactly this object, has not been used
// before, and has not expired. It uses up the Evidence.
func SpendEvidence(evidence Evidence, action Action, object client.Object) error {
	return evidence.CoversWrite(EvidenceKey{}, action, object)
}

// DestroyingVolume is evidence that a volume must be destroyed with its root (I2 a). The host PV has
// ended, and the root was deleted. If the leaf PV has the stamp of another root, that root was
// deleted too. To delete the leaf claim, the leaf PV must be the mirrored one, or remain without
// the claim.
type DestroyingVolume struct {
	Root        RootGone
	StampedRoot RootGone
	Leaf        LeafVolume
	Host        HostReleased
}

// KeepingVolume is evidence that deleting a leaf claim keeps its data: the root was deleted, and the leaf
// PV is retained or bound to another claim. It also proves that no other controller needs the
// claim: the host PV is for another root (Host), or no host PV represents the volume (NoMirror).
type KeepingVolume struct {
	Host     HostAssigned
	Root     RootGone
	Leaf     LeafVolume
	NoMirror NotMirrored
	Member   MemberCurrent
}

// UnmirroredVolume is evidence that a leaf claim's volume was never mirrored to the host (I2 b): the root
// was deleted, the leaf PV has no stamp or does not exist, and no host PV represents it.
type UnmirroredVolume struct {
	Root     RootGone
	Leaf     LeafVolume
	NoMirror NotMirrored
	Member   MemberCurrent
}

// WithdrawingClaim is evidence that the host represents no volume of a leaf claim: the claim's root was
// deleted or is unchanged since it was observed, and nothing was provisioned for the claim.
type WithdrawingClaim struct {
	Root      RootGone
	Unchanged RootUnchanged
	NoVolume  NothingProvisioned
	Member    MemberCurrent
}

// ReleasingPromise is evidence that a promise's disk must be released with its last Pod (I2 c): the
// promise is marked as releasing. To set the leaf PV to Delete, no Pod may use the claim. To delete
// the leaf claim, the leaf PV must have policy Delete or not exist.
type ReleasingPromise struct {
	Promise HostUnchanged
	NoPods  ClaimUnused
	Leaf    LeafVolume
}

// DestroysDataOf implements DataDestroyingEvidence.
func (e DestroyingVolume) DestroysDataOf(EvidenceKey) types.UID { return e.Root.rootUID() }

// DestroysDataOf implements DataDestroyingEvidence.
func (e UnmirroredVolume) DestroysDataOf(EvidenceKey) types.UID { return e.Root.rootUID() }

// DestroysDataOf implements DataDestroyingEvidence.
func (e ReleasingPromise) DestroysDataOf(EvidenceKey) types.UID {
	if e.Promise.witness == nil {
		return ""
	}
	return rootUIDOf(e.Promise.pv)
}

// KeepsData implements DataKeepingEvidence.
func (KeepingVolume) KeepsData(EvidenceKey) {}

// KeepsData implements DataKeepingEvidence.
func (WithdrawingClaim) KeepsData(EvidenceKey) {}

// EvidenceForClaim begins the evidence with which the leaf claim may be deleted, too, after this evidence has set the leaf PV
// to Delete. Both writes share the proof that the root is gone, because a UID never returns. All else must be
// proven again, because users and admins of both clusters may change it in between.
func (e DestroyingVolume) EvidenceForClaim() DestroyingVolume {
	return DestroyingVolume{Root: RootGone{e.Root.witness.ForOneMoreWrite()}}
}

// CoversWrite implements Evidence.
func (e DestroyingVolume) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if e.Host.witness == nil || e.Root.witness == nil || e.Root.witness.UID != rootUIDOf(e.Host.pv) {
		return NewUnprovenError("there is no proof that the host PV ended with its root")
	}
	if copied := hostpv.MembersWithCopies(e.Host.pv); len(copied) > 0 {
		return NewUnprovenError("volume %q may have copies in other members (%s)", e.Host.pv.Name, strings.Join(copied, ", "))
	}
	destroys := e.Host.pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		stamp := mirror.StampedRootUID(object)
		another := stamp != e.Root.witness.UID
		if action != SetDelete || !destroys || object.UID != leafUIDOf(e.Host.pv) ||
			another && (e.StampedRoot.witness == nil || e.StampedRoot.witness.UID != stamp) {
			return NewUnprovenError("the evidence is not for leaf volume %q", object.Name)
		}
		if another {
			return SpendProofs(e.Root.witness, e.StampedRoot.witness, e.Host.witness)
		}
		return SpendProofs(e.Root.witness, e.Host.witness)
	case *corev1.PersistentVolumeClaim:
		if action != DeleteClaim || mirror.StampedRootUID(object) != e.Root.witness.UID || !e.Leaf.allowsClaimDeletion(object, e.Host.pv, destroys) {
			return NewUnprovenError("the evidence is not for leaf claim %q", client.ObjectKeyFromObject(object))
		}
		return SpendProofs(e.Root.witness, e.Leaf.witness, e.Host.witness)
	}
	return NewUnprovenError("the evidence is not for a %T", object)
}

// ProveVolumeKept proves by live reads that deleting a leaf claim keeps the host PV's volume, which the claim
// names. The host PV is for the same root as before, and the leaf claim's root was deleted. The
// leaf PV is retained, bound to another claim, or does not exist.
func (p Prover) ProveVolumeKept(ctx context.Context, host *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (e KeepingVolume, proven bool, err error) {
	if e.Host, proven, err = p.ProveHostAssigned(ctx, host); err != nil || !proven {
		return e, false, err
	}
	origin, _ := mirror.LeafOriginFromHost(p.HostID, claim)
	if e.Root, proven, err = p.ProveRootGone(ctx, origin.Root, origin.UID); err != nil || !proven {
		return e, false, err
	}
	e.Leaf, proven, err = p.ProveLeafVolume(ctx, claim.Spec.VolumeName, func(leaf *corev1.PersistentVolume) bool {
		return OutlivesClaim(leaf, claim) && (leaf == nil || leaf.UID == leafUIDOf(host))
	})
	return e, proven, err
}

// CoversWrite implements Evidence.
func (e KeepingVolume) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	claim, err := claimOfGoneRoot(action, object, e.Root)
	if err != nil {
		return err
	}
	if !e.Leaf.isVolumeOf(claim) || !OutlivesClaim(e.Leaf.pv, claim) {
		return NewUnprovenError("the volume of leaf claim %q may be deleted with it", client.ObjectKeyFromObject(claim))
	}
	if e.Host.witness == nil {
		if !e.NoMirror.isForClaim(claim) {
			return NewUnprovenError("a host PV may represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
		}
		return SpendProofs(e.Root.witness, e.Leaf.witness, e.NoMirror.witness, e.Member.witness)
	}
	if e.Leaf.pv != nil && e.Leaf.pv.UID != leafUIDOf(e.Host.pv) {
		return NewUnprovenError("the host PV does not represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return SpendProofs(e.Host.witness, e.Root.witness, e.Leaf.witness)
}

// CoversWrite implements Evidence.
func (e UnmirroredVolume) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	claim, err := claimOfGoneRoot(action, object, e.Root)
	if err != nil {
		return err
	}
	if pv := e.Leaf.pv; !e.Leaf.isVolumeOf(claim) || pv != nil && (e.Leaf.stamped || pv.Labels[v1alpha1.LabelHost] != "" || e.NoMirror.restored || !hostpv.ClaimRefHasUIDOf(pv, claim)) {
		return NewUnprovenError("the volume of leaf claim %q may have been mirrored", client.ObjectKeyFromObject(claim))
	}
	if !e.NoMirror.isForClaim(claim) || !e.NoMirror.thorough {
		return NewUnprovenError("a host PV may represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return SpendProofs(e.Root.witness, e.Leaf.witness, e.NoMirror.witness, e.Member.witness)
}

// CoversWrite implements Evidence.
func (e WithdrawingClaim) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	root := e.Root
	if e.Unchanged.witness != nil {
		root.witness = e.Unchanged.witness
	}
	claim, err := claimOfGoneRoot(action, object, root)
	if err != nil {
		return err
	}
	if claim.Spec.VolumeName != "" || e.NoVolume.witness == nil || e.NoVolume.witness.UID != claim.UID {
		return NewUnprovenError("a volume may exist for leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return SpendProofs(root.witness, e.NoVolume.witness, e.Member.witness)
}

// CoversWrite implements Evidence.
func (e ReleasingPromise) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if e.Promise.witness == nil || !hostpv.IsReleasingDisk(e.Promise.pv) || e.Promise.pv.Spec.ClaimRef == nil {
		return NewUnprovenError("no promise is marked as releasing")
	}
	ref, destroys := e.Promise.pv.Spec.ClaimRef, e.Promise.pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if action != SetDelete || !destroys || object.UID != leafUIDOf(e.Promise.pv) || e.NoPods.claim != (types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) {
			return NewUnprovenError("the evidence is not for leaf volume %q", object.Name)
		}
		return SpendProofs(e.Promise.witness, e.NoPods.witness)
	case *corev1.PersistentVolumeClaim:
		if action != DeleteClaim || mirror.StampedRootUID(object) != ref.UID || !e.Leaf.allowsClaimDeletion(object, e.Promise.pv, destroys) {
			return NewUnprovenError("the evidence is not for leaf claim %q", client.ObjectKeyFromObject(object))
		}
		return SpendProofs(e.Promise.witness, e.Leaf.witness)
	}
	return NewUnprovenError("the evidence is not for a %T", object)
}

// claimOfGoneRoot returns the leaf claim to delete, if the proof is for its root.
func claimOfGoneRoot(action Action, object client.Object, root RootGone) (*corev1.PersistentVolumeClaim, error) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || action != DeleteClaim || root.witness == nil || root.witness.UID != mirror.StampedRootUID(claim) {
		return nil, NewUnprovenError("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	return claim, nil
}

// isVolumeOf reports whether the proof is for the leaf PV that a leaf claim names.
func (l LeafVolume) isVolumeOf(claim *corev1.PersistentVolumeClaim) bool {
	return l.witness != nil && l.name == claim.Spec.VolumeName
}

// allowsClaimDeletion reports whether the state of the leaf PV allows deleting the leaf claim. Either the leaf PV
// is the one that the host PV represents, and is retained or must be destroyed. Or it is a
// different PV that remains without the claim, or does not exist.
func (l LeafVolume) allowsClaimDeletion(claim *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume, destroys bool) bool {
	switch {
	case !l.isVolumeOf(claim):
		return false
	case l.pv == nil, OutlivesClaim(l.pv, claim):
		return true
	}
	return destroys && l.pv.UID == leafUIDOf(host)
}
