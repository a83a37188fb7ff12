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
	"github.com/xylem-io/xylem/internal/proof/internal/witness"
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
	// Covers implements the function Covers. Only this package and its subpackages can implement or
	// call it.
	Covers(witness.Key, Action, client.Object) error
}

// Keeps is an Evidence for a write that keeps all data.
type Keeps interface {
	Evidence
	// Keeps can be implemented only by this package and its subpackages.
	Keeps(witness.Key)
}

// Destroys is an Evidence for a write that destroys data, so that the write requires Unneeded, too.
type Destroys interface {
	Evidence
	// Destroys returns the UID of the claim or VolumeSnapshot in the host whose data is destroyed.
	Destroys(witness.Key) types.UID
}

// Covers returns nil if an Evidence is for this action and exactly this object, has not been used
// before, and has not expired. It uses up the Evidence.
func Covers(evidence Evidence, action Action, object client.Object) error {
	return evidence.Covers(witness.Key{}, action, object)
}

// Destroying is evidence that a volume must be destroyed with its root (I2 a). The host PV has
// ended, and the root was deleted. If the leaf PV has the stamp of another root, that root was
// deleted too. To delete the leaf claim, the leaf PV must be the mirrored one, or remain without
// the claim.
type Destroying struct {
	Root    RootGone
	Stamped RootGone
	Leaf    LeafVolume
	Host    HostReleased
}

// Keeping is evidence that deleting a leaf claim keeps its data: the root was deleted, and the leaf
// PV is retained or bound to another claim. It also proves that no other controller needs the
// claim: the host PV is for another root (Host), or no host PV represents the volume (None).
type Keeping struct {
	Host   HostAssigned
	Root   RootGone
	Leaf   LeafVolume
	None   NotMirrored
	Member MemberCurrent
}

// Unmirrored is evidence that a leaf claim's volume was never mirrored to the host (I2 b): the root
// was deleted, the leaf PV has no stamp or does not exist, and no host PV represents it.
type Unmirrored struct {
	Root   RootGone
	Leaf   LeafVolume
	None   NotMirrored
	Member MemberCurrent
}

// Withdrawing is evidence that the host represents no volume of a leaf claim: the claim's root was
// deleted or is unchanged since it was observed, and nothing was provisioned for the claim.
type Withdrawing struct {
	Root   RootGone
	Seen   RootUnchanged
	Made   NothingMade
	Member MemberCurrent
}

// Releasing is evidence that a promise's disk must be released with its last Pod (I2 c): the
// promise is marked as releasing. To set the leaf PV to Delete, no Pod may use the claim. To delete
// the leaf claim, the leaf PV must have policy Delete or not exist.
type Releasing struct {
	Promise HostUnchanged
	Pods    Unused
	Leaf    LeafVolume
}

// Destroys implements Destroys.
func (e Destroying) Destroys(witness.Key) types.UID { return e.Root.uid() }

// Destroys implements Destroys.
func (e Unmirrored) Destroys(witness.Key) types.UID { return e.Root.uid() }

// Destroys implements Destroys.
func (e Releasing) Destroys(witness.Key) types.UID {
	if e.Promise.w == nil {
		return ""
	}
	return rootOf(e.Promise.pv)
}

// Keeps implements Keeps.
func (Keeping) Keeps(witness.Key) {}

// Keeps implements Keeps.
func (Withdrawing) Keeps(witness.Key) {}

// Next begins the evidence with which the leaf claim may be deleted, too, after this evidence has set the leaf PV
// to Delete. Both writes share the proof that the root is gone, because a UID never returns. All else must be
// proven again, because users and admins of both clusters may change it in between.
func (e Destroying) Next() Destroying { return Destroying{Root: RootGone{e.Root.w.Again()}} }

// Covers implements Evidence.
func (e Destroying) Covers(_ witness.Key, action Action, object client.Object) error {
	if e.Host.w == nil || e.Root.w == nil || e.Root.w.UID != rootOf(e.Host.pv) {
		return witness.Unproven("there is no proof that the host PV ended with its root")
	}
	if copied := hostpv.CopiedIn(e.Host.pv); len(copied) > 0 {
		return witness.Unproven("volume %q may have copies in other members (%s)", e.Host.pv.Name, strings.Join(copied, ", "))
	}
	destroys := e.Host.pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		stamp := mirror.RootUID(object)
		another := stamp != e.Root.w.UID
		if action != SetDelete || !destroys || object.UID != leafOf(e.Host.pv) ||
			another && (e.Stamped.w == nil || e.Stamped.w.UID != stamp) {
			return witness.Unproven("the evidence is not for leaf volume %q", object.Name)
		}
		if another {
			return witness.Spend(e.Root.w, e.Stamped.w, e.Host.w)
		}
		return witness.Spend(e.Root.w, e.Host.w)
	case *corev1.PersistentVolumeClaim:
		if action != DeleteClaim || mirror.RootUID(object) != e.Root.w.UID || !e.Leaf.ends(object, e.Host.pv, destroys) {
			return witness.Unproven("the evidence is not for leaf claim %q", client.ObjectKeyFromObject(object))
		}
		return witness.Spend(e.Root.w, e.Leaf.w, e.Host.w)
	}
	return witness.Unproven("the evidence is not for a %T", object)
}

// Kept proves by live reads that deleting a leaf claim keeps the host PV's volume, which the claim
// names. The host PV is for the same root as before, and the leaf claim's root was deleted. The
// leaf PV is retained, bound to another claim, or does not exist.
func (p Prover) Kept(ctx context.Context, host *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (e Keeping, proven bool, err error) {
	if e.Host, proven, err = p.HostAssigned(ctx, host); err != nil || !proven {
		return e, false, err
	}
	origin, _ := mirror.OriginIn(p.HostID, claim)
	if e.Root, proven, err = p.RootGone(ctx, origin.Root, origin.UID); err != nil || !proven {
		return e, false, err
	}
	e.Leaf, proven, err = p.LeafVolume(ctx, claim.Spec.VolumeName, func(leaf *corev1.PersistentVolume) bool {
		return Outlives(leaf, claim) && (leaf == nil || leaf.UID == leafOf(host))
	})
	return e, proven, err
}

// Covers implements Evidence.
func (e Keeping) Covers(_ witness.Key, action Action, object client.Object) error {
	claim, err := endsRoot(action, object, e.Root)
	if err != nil {
		return err
	}
	if !e.Leaf.of(claim) || !Outlives(e.Leaf.pv, claim) {
		return witness.Unproven("the volume of leaf claim %q may be deleted with it", client.ObjectKeyFromObject(claim))
	}
	if e.Host.w == nil {
		if !e.None.of(claim) {
			return witness.Unproven("a host PV may represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
		}
		return witness.Spend(e.Root.w, e.Leaf.w, e.None.w, e.Member.w)
	}
	if e.Leaf.pv != nil && e.Leaf.pv.UID != leafOf(e.Host.pv) {
		return witness.Unproven("the host PV does not represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return witness.Spend(e.Host.w, e.Root.w, e.Leaf.w)
}

// Covers implements Evidence.
func (e Unmirrored) Covers(_ witness.Key, action Action, object client.Object) error {
	claim, err := endsRoot(action, object, e.Root)
	if err != nil {
		return err
	}
	if pv := e.Leaf.pv; !e.Leaf.of(claim) || pv != nil && (e.Leaf.stamped || pv.Labels[v1alpha1.LabelHost] != "" || e.None.restored || !hostpv.HeldBy(pv, claim)) {
		return witness.Unproven("the volume of leaf claim %q may have been mirrored", client.ObjectKeyFromObject(claim))
	}
	if !e.None.of(claim) || !e.None.thorough {
		return witness.Unproven("a host PV may represent the volume of leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return witness.Spend(e.Root.w, e.Leaf.w, e.None.w, e.Member.w)
}

// Covers implements Evidence.
func (e Withdrawing) Covers(_ witness.Key, action Action, object client.Object) error {
	root := e.Root
	if e.Seen.w != nil {
		root.w = e.Seen.w
	}
	claim, err := endsRoot(action, object, root)
	if err != nil {
		return err
	}
	if claim.Spec.VolumeName != "" || e.Made.w == nil || e.Made.w.UID != claim.UID {
		return witness.Unproven("a volume may exist for leaf claim %q", client.ObjectKeyFromObject(claim))
	}
	return witness.Spend(root.w, e.Made.w, e.Member.w)
}

// Covers implements Evidence.
func (e Releasing) Covers(_ witness.Key, action Action, object client.Object) error {
	if e.Promise.w == nil || !hostpv.Releasing(e.Promise.pv) || e.Promise.pv.Spec.ClaimRef == nil {
		return witness.Unproven("no promise is marked as releasing")
	}
	ref, destroys := e.Promise.pv.Spec.ClaimRef, e.Promise.pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if action != SetDelete || !destroys || object.UID != leafOf(e.Promise.pv) || e.Pods.claim != (types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) {
			return witness.Unproven("the evidence is not for leaf volume %q", object.Name)
		}
		return witness.Spend(e.Promise.w, e.Pods.w)
	case *corev1.PersistentVolumeClaim:
		if action != DeleteClaim || mirror.RootUID(object) != ref.UID || !e.Leaf.ends(object, e.Promise.pv, destroys) {
			return witness.Unproven("the evidence is not for leaf claim %q", client.ObjectKeyFromObject(object))
		}
		return witness.Spend(e.Promise.w, e.Leaf.w)
	}
	return witness.Unproven("the evidence is not for a %T", object)
}

// endsRoot returns the leaf claim to delete, if the proof is for its root.
func endsRoot(action Action, object client.Object, root RootGone) (*corev1.PersistentVolumeClaim, error) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || action != DeleteClaim || root.w == nil || root.w.UID != mirror.RootUID(claim) {
		return nil, witness.Unproven("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	return claim, nil
}

// of reports whether the proof is for the leaf PV that a leaf claim names.
func (l LeafVolume) of(claim *corev1.PersistentVolumeClaim) bool {
	return l.w != nil && l.name == claim.Spec.VolumeName
}

// ends reports whether the state of the leaf PV allows deleting the leaf claim. Either the leaf PV
// is the one that the host PV represents, and is retained or must be destroyed. Or it is a
// different PV that remains without the claim, or does not exist.
func (l LeafVolume) ends(claim *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume, destroys bool) bool {
	switch {
	case !l.of(claim):
		return false
	case l.pv == nil, Outlives(l.pv, claim):
		return true
	}
	return destroys && l.pv.UID == leafOf(host)
}
