package dropping

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/internal/witness"
)

// Droppable is evidence that the host no longer needs a host PV, or the record of its disk. It covers
// one version of the host PV, unless it is from OnceDeleting.
type Droppable struct {
	w *witness.Witness
	// leafGone is set if the proof is that the member has no object left for the host PV.
	leafGone bool
	// deleting is the host PV that is covered as soon as it is being deleted, or nil.
	deleting *corev1.PersistentVolume
}

// OnceDeleting returns evidence of LeafGone once more, for the same host PV as soon as it is being deleted. What
// the member no longer has does not return, and nothing else in the host PV matters for it than the record of
// the disk and the claim.
func (e Droppable) OnceDeleting(host *corev1.PersistentVolume) Droppable {
	if !e.leafGone || e.deleting != nil || !e.w.Saw(host) {
		return Droppable{}
	}
	return Droppable{w: e.w.Again(), deleting: host}
}

// of reports whether the evidence is for a host PV in its current version.
func (e Droppable) of(object client.Object) bool {
	if e.deleting == nil {
		return e.w.Saw(object)
	}
	now, ok := object.(*corev1.PersistentVolume)
	if !ok || now.DeletionTimestamp == nil || now.UID != e.deleting.UID || now.Spec.ClaimRef == nil ||
		hostpv.ClaimKey(now) != hostpv.ClaimKey(e.deleting) || now.Spec.ClaimRef.UID != e.deleting.Spec.ClaimRef.UID {
		return false
	}
	cluster, name, uid, ours := hostpv.LeafOf(now)
	wasCluster, wasName, wasUID, _ := hostpv.LeafOf(e.deleting)
	return ours && cluster == wasCluster && name == wasName && uid == wasUID
}

// CopyLeaves is evidence that the host no longer needs the record of a member's copy of a shared volume.
// It covers one version of the host PV.
type CopyLeaves struct {
	w       *witness.Witness
	cluster string
}

// Covers implements proof.Evidence.
func (e CopyLeaves) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if action != proof.DropCopyRecord || !e.w.Saw(object) {
		return witness.Unproven("the evidence is not for the copy of this version of host PV %q", object.GetName())
	}
	return witness.Spend(e.w)
}

// Cluster returns the ID of the member that has, or had, the copy.
func (e CopyLeaves) Cluster() string { return e.cluster }

// Covers implements proof.Evidence.
func (e Droppable) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if action != proof.DropVolume || !e.of(object) {
		return witness.Unproven("the evidence is not for this version of host PV %q", object.GetName())
	}
	return witness.Spend(e.w)
}

func droppable(c clock.PassiveClock, began time.Time, host *corev1.PersistentVolume) Droppable {
	return Droppable{w: witness.New(c, began, host.UID, host.ResourceVersion)}
}

// LeafGone proves by live reads that neither the leaf PV that a host PV records nor its root's leaf
// claim exists, and that the member was not restored while this process ran.
func LeafGone(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume) (Droppable, bool, error) {
	cluster, name, uid, ours := hostpv.LeafOf(host)
	if !ours || cluster != p.ClusterID {
		return Droppable{}, false, nil
	}
	began := p.Clock.Now()
	leaf, err := index.Find[corev1.PersistentVolume](ctx, p.Live, index.Named(name))
	if err != nil {
		return Droppable{}, false, fmt.Errorf("prove that leaf volume %s is gone: %w", name, err)
	}
	if leaf != nil && leaf.UID == uid {
		return Droppable{}, false, nil
	}
	if gone, err := leafClaimGone(ctx, p, host); err != nil || !gone {
		return Droppable{}, false, err
	}
	e := droppable(p.Clock, began, host)
	e.leafGone = true
	return e, true, nil
}

// PromiseEnded proves by live reads that the claim of a promise without a disk was deleted, that the
// promise has not changed, that its leaf claim does not exist, and that the member was not restored
// while this process ran. If all but the leaf claim's absence is proven, it returns left.
func PromiseEnded(ctx context.Context, p proof.Prover, promise *corev1.PersistentVolume) (e Droppable, ended, left bool, err error) {
	if !hostpv.IsPromiseIn(promise, p.ClusterID) || !hostpv.Ended(promise) || hostpv.Abandoned(promise) {
		return Droppable{}, false, false, nil
	}
	if _, proven, err := p.RootGone(ctx, hostpv.ClaimKey(promise), promise.Spec.ClaimRef.UID); err != nil || !proven {
		return Droppable{}, false, false, err
	}
	began := p.Clock.Now()
	if _, same, err := p.HostUnchanged(ctx, promise); err != nil || !same {
		return Droppable{}, false, false, err
	}
	if gone, err := leafClaimGone(ctx, p, promise); err != nil || !gone {
		return Droppable{}, false, err == nil, err
	}
	return droppable(p.Clock, began, promise), true, false, nil
}

// leafClaimGone proves that the member has no leaf claim of a host PV's root, and was not restored
// while this process ran.
func leafClaimGone(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume) (bool, error) {
	key := hostpv.ClaimKey(host)
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.Live, key)
	if err != nil {
		return false, fmt.Errorf("prove that leaf claim %s is gone: %w", key, err)
	}
	if claim != nil && mirror.RootUID(claim) == host.Spec.ClaimRef.UID {
		return false, nil
	}
	err = p.Unrestored(ctx)
	return err == nil, err
}

// DiskKept examines a host PV that is being deleted and whose disk is kept. Live reads show whether the
// member has the disk. If it does not, DiskKept returns missing and proves that the member was not
// restored while this process ran. Then nothing else names the disk, so the caller first records it if a
// restore may have lost the leaf PV.
func DiskKept(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume) (e Droppable, missing bool, err error) {
	if host.DeletionTimestamp == nil {
		return Droppable{}, false, fmt.Errorf("host PV %s is not being deleted: %w", host.Name, proof.ErrUnproven)
	}
	began := p.Clock.Now()
	cluster, name, uid, records := hostpv.LeafOf(host)
	if !records || cluster != p.ClusterID {
		return Droppable{}, false, fmt.Errorf("host PV %s records no disk in member %q: %w", host.Name, p.Registration, proof.ErrUnproven)
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, p.Live, index.Named(name))
	if err != nil {
		return Droppable{}, false, fmt.Errorf("look for leaf volume %s: %w", name, err)
	}
	missing = leaf == nil || leaf.UID != uid && !hostpv.SameDisk(host, leaf)
	if missing {
		if err := p.Unrestored(ctx); err != nil {
			return Droppable{}, false, err
		}
	}
	return droppable(p.Clock, began, host), missing, nil
}

// Unneeded proves by live reads that a promise is assigned to no member, that its claim does not need
// it (needs returns false), and that the promise has not changed. needs receives nil if the claim does
// not exist.
func Unneeded(ctx context.Context, p proof.Prover, promise *corev1.PersistentVolume, needs func(*corev1.PersistentVolumeClaim) bool) (Droppable, bool, error) {
	if !hostpv.IsUnused(promise) || promise.Spec.ClaimRef == nil {
		return Droppable{}, false, nil
	}
	began := p.Clock.Now()
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.HostLive, hostpv.ClaimKey(promise))
	if err != nil || needs(claim) {
		return Droppable{}, false, err
	}
	if _, same, err := p.HostUnchanged(ctx, promise); err != nil || !same {
		return Droppable{}, false, err
	}
	return droppable(p.Clock, began, promise), true, nil
}

// NoDisk returns evidence for a promise that is being deleted, records no disk, and is free: no claim is
// bound to it.
func NoDisk(c clock.PassiveClock, promise *corev1.PersistentVolume) (Droppable, bool) {
	if promise.DeletionTimestamp == nil || !hostpv.IsUnfulfilled(promise) || !hostpv.Free(promise) {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), promise), true
}

// AbandonedByAdmin returns evidence for a host PV that an admin has abandoned.
func AbandonedByAdmin(c clock.PassiveClock, host *corev1.PersistentVolume) (Droppable, bool) {
	if !hostpv.Abandoned(host) {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), host), true
}

// MemberLeaves returns evidence for the host PV of a volume, or of a promise, that a member has, if that
// member's registration is being deleted. A deletion cannot be undone, so the registration may come from
// a cache.
func MemberLeaves(c clock.PassiveClock, host *corev1.PersistentVolume, cr *v1alpha1.ClusterRegistration) (Droppable, bool) {
	cluster, _, _, _ := hostpv.LeafOf(host)
	if id := cr.Status.ClusterID; !leaves(cr) || id != cluster && !hostpv.IsPromiseIn(host, id) {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), host), true
}

// MemberOfCopyLeaves returns evidence for the record of a copy of a shared volume, if the registration of
// the member that has the copy is being deleted.
func MemberOfCopyLeaves(c clock.PassiveClock, host *corev1.PersistentVolume, cr *v1alpha1.ClusterRegistration) (CopyLeaves, bool) {
	if !leaves(cr) || !slices.Contains(hostpv.CopiedIn(host), cr.Status.ClusterID) {
		return CopyLeaves{}, false
	}
	return CopyLeaves{witness.New(c, c.Now(), host.UID, host.ResourceVersion), cr.Status.ClusterID}, true
}

func leaves(cr *v1alpha1.ClusterRegistration) bool {
	return cr.DeletionTimestamp != nil && cr.Status.ClusterID != ""
}
