package proof

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
)

// DroppableVolume is evidence that the host no longer needs a host PV, or the record of its disk. It covers
// one version of the host PV, unless it is from OnceDeleting.
type DroppableVolume struct {
	witness *Witness
	// leafGone is set if the proof is that the member has no object left for the host PV.
	leafGone bool
	// deleting is the host PV that is covered as soon as it is being deleted, or nil.
	deleting *corev1.PersistentVolume
}

// OnceDeleting returns evidence of ProveLeafGone once more, for the same host PV as soon as it is being deleted. What
// the member no longer has does not return, and nothing else in the host PV matters for it than the record of
// the disk and the claim.
func (e DroppableVolume) OnceDeleting(host *corev1.PersistentVolume) DroppableVolume {
	if !e.leafGone || e.deleting != nil || !e.witness.MatchesVersion(host) {
		return DroppableVolume{}
	}
	return DroppableVolume{witness: e.witness.ForOneMoreWrite(), deleting: host}
}

// coversVersionOf reports whether the evidence is for a host PV in its current version.
func (e DroppableVolume) coversVersionOf(object client.Object) bool {
	if e.deleting == nil {
		return e.witness.MatchesVersion(object)
	}
	now, ok := object.(*corev1.PersistentVolume)
	if !ok || now.DeletionTimestamp == nil || now.UID != e.deleting.UID || now.Spec.ClaimRef == nil ||
		hostpv.ClaimRefKey(now) != hostpv.ClaimRefKey(e.deleting) || now.Spec.ClaimRef.UID != e.deleting.Spec.ClaimRef.UID {
		return false
	}
	cluster, name, uid, ours := hostpv.LeafOfHostVolume(now)
	wasCluster, wasName, wasUID, _ := hostpv.LeafOfHostVolume(e.deleting)
	return ours && cluster == wasCluster && name == wasName && uid == wasUID
}

// DroppableCopyRecord is evidence that the host no longer needs the record of a member's copy of a shared volume.
// It covers one version of the host PV.
type DroppableCopyRecord struct {
	witness *Witness
	cluster string
}

// CoversWrite implements proof.Evidence.
func (e DroppableCopyRecord) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if action != DropCopyRecord || !e.witness.MatchesVersion(object) {
		return NewUnprovenError("the evidence is not for the copy of this version of host PV %q", object.GetName())
	}
	return SpendProofs(e.witness)
}

// CopyClusterID returns the ID of the member that has, or had, the copy.
func (e DroppableCopyRecord) CopyClusterID() string { return e.cluster }

// CoversWrite implements proof.Evidence.
func (e DroppableVolume) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if action != DropVolume || !e.coversVersionOf(object) {
		return NewUnprovenError("the evidence is not for this version of host PV %q", object.GetName())
	}
	return SpendProofs(e.witness)
}

func newDroppableVolume(c clock.PassiveClock, began time.Time, host *corev1.PersistentVolume) DroppableVolume {
	return DroppableVolume{witness: NewWitness(c, began, host.UID, host.ResourceVersion)}
}

// ProveLeafGone proves by live reads that neither the leaf PV that a host PV records nor its root's leaf
// claim exists, and that the member was not restored while this process ran.
func ProveLeafGone(ctx context.Context, p Prover, host *corev1.PersistentVolume) (DroppableVolume, bool, error) {
	cluster, name, uid, ours := hostpv.LeafOfHostVolume(host)
	if !ours || cluster != p.ClusterID {
		return DroppableVolume{}, false, nil
	}
	began := p.Clock.Now()
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(name))
	if err != nil {
		return DroppableVolume{}, false, fmt.Errorf("prove that leaf volume %s is gone: %w", name, err)
	}
	if leaf != nil && leaf.UID == uid {
		return DroppableVolume{}, false, nil
	}
	if gone, err := isLeafClaimGone(ctx, p, host); err != nil || !gone {
		return DroppableVolume{}, false, err
	}
	e := newDroppableVolume(p.Clock, began, host)
	e.leafGone = true
	return e, true, nil
}

// ProvePromiseEnded proves by live reads that the claim of a promise without a disk was deleted, that the
// promise has not changed, that its leaf claim does not exist, and that the member was not restored
// while this process ran. If all but the leaf claim's absence is proven, it returns left.
func ProvePromiseEnded(ctx context.Context, p Prover, promise *corev1.PersistentVolume) (e DroppableVolume, ended, left bool, err error) {
	if !hostpv.IsUnfulfilledPromiseIn(promise, p.ClusterID) || !hostpv.IsReleasedOrFailed(promise) || hostpv.IsAbandonedVolume(promise) {
		return DroppableVolume{}, false, false, nil
	}
	if _, proven, err := p.ProveRootGone(ctx, hostpv.ClaimRefKey(promise), promise.Spec.ClaimRef.UID); err != nil || !proven {
		return DroppableVolume{}, false, false, err
	}
	began := p.Clock.Now()
	if _, same, err := p.ProveHostUnchanged(ctx, promise); err != nil || !same {
		return DroppableVolume{}, false, false, err
	}
	if gone, err := isLeafClaimGone(ctx, p, promise); err != nil || !gone {
		return DroppableVolume{}, false, err == nil, err
	}
	return newDroppableVolume(p.Clock, began, promise), true, false, nil
}

// isLeafClaimGone proves that the member has no leaf claim of a host PV's root, and was not restored
// while this process ran.
func isLeafClaimGone(ctx context.Context, p Prover, host *corev1.PersistentVolume) (bool, error) {
	key := hostpv.ClaimRefKey(host)
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.Live, key)
	if err != nil {
		return false, fmt.Errorf("prove that leaf claim %s is gone: %w", key, err)
	}
	if claim != nil && mirror.StampedRootUID(claim) == host.Spec.ClaimRef.UID {
		return false, nil
	}
	err = p.CheckUnrestored(ctx)
	return err == nil, err
}

// ProveDiskKept examines a host PV that is being deleted and whose disk is kept. Live reads show whether the
// member has the disk. If it does not, ProveDiskKept returns missing and proves that the member was not
// restored while this process ran. Then nothing else names the disk, so the caller first records it if a
// restore may have lost the leaf PV.
func ProveDiskKept(ctx context.Context, p Prover, host *corev1.PersistentVolume) (e DroppableVolume, missing bool, err error) {
	if host.DeletionTimestamp == nil {
		return DroppableVolume{}, false, fmt.Errorf("host PV %s is not being deleted: %w", host.Name, ErrUnproven)
	}
	began := p.Clock.Now()
	cluster, name, uid, records := hostpv.LeafOfHostVolume(host)
	if !records || cluster != p.ClusterID {
		return DroppableVolume{}, false, fmt.Errorf("host PV %s records no disk in member %q: %w", host.Name, p.Registration, ErrUnproven)
	}
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(name))
	if err != nil {
		return DroppableVolume{}, false, fmt.Errorf("look for leaf volume %s: %w", name, err)
	}
	missing = leaf == nil || leaf.UID != uid && !hostpv.HasRecordedDisk(host, leaf)
	if missing {
		if err := p.CheckUnrestored(ctx); err != nil {
			return DroppableVolume{}, false, err
		}
	}
	return newDroppableVolume(p.Clock, began, host), missing, nil
}

// ProvePromiseUnneeded proves by live reads that a promise is assigned to no member, that its claim does not need
// it (needs returns false), and that the promise has not changed. needs receives nil if the claim does
// not exist.
func ProvePromiseUnneeded(ctx context.Context, p Prover, promise *corev1.PersistentVolume, needs func(*corev1.PersistentVolumeClaim) bool) (DroppableVolume, bool, error) {
	if !hostpv.IsUnassignedPromise(promise) || promise.Spec.ClaimRef == nil {
		return DroppableVolume{}, false, nil
	}
	began := p.Clock.Now()
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, hostpv.ClaimRefKey(promise))
	if err != nil || needs(claim) {
		return DroppableVolume{}, false, err
	}
	if _, same, err := p.ProveHostUnchanged(ctx, promise); err != nil || !same {
		return DroppableVolume{}, false, err
	}
	return newDroppableVolume(p.Clock, began, promise), true, nil
}

// DroppableIfNoDisk returns evidence for a promise that is being deleted, records no disk, and is free: no claim is
// bound to it.
func DroppableIfNoDisk(c clock.PassiveClock, promise *corev1.PersistentVolume) (DroppableVolume, bool) {
	if promise.DeletionTimestamp == nil || !hostpv.IsUnfulfilledPromise(promise) || !hostpv.IsAvailableVolume(promise) {
		return DroppableVolume{}, false
	}
	return newDroppableVolume(c, c.Now(), promise), true
}

// DroppableIfAbandoned returns evidence for a host PV that an admin has abandoned.
func DroppableIfAbandoned(c clock.PassiveClock, host *corev1.PersistentVolume) (DroppableVolume, bool) {
	if !hostpv.IsAbandonedVolume(host) {
		return DroppableVolume{}, false
	}
	return newDroppableVolume(c, c.Now(), host), true
}

// DroppableIfMemberLeaves returns evidence for the host PV of a volume, or of a promise, that a member has, if that
// member's registration is being deleted. A deletion cannot be undone, so the registration may come from
// a cache.
func DroppableIfMemberLeaves(c clock.PassiveClock, host *corev1.PersistentVolume, cr *v1alpha1.ClusterRegistration) (DroppableVolume, bool) {
	cluster, _, _, _ := hostpv.LeafOfHostVolume(host)
	if id := cr.Status.ClusterID; !isMemberLeaving(cr) || id != cluster && !hostpv.IsUnfulfilledPromiseIn(host, id) {
		return DroppableVolume{}, false
	}
	return newDroppableVolume(c, c.Now(), host), true
}

// CopyDroppableIfMemberLeaves returns evidence for the record of a copy of a shared volume, if the registration of
// the member that has the copy is being deleted.
func CopyDroppableIfMemberLeaves(c clock.PassiveClock, host *corev1.PersistentVolume, cr *v1alpha1.ClusterRegistration) (DroppableCopyRecord, bool) {
	if !isMemberLeaving(cr) || !slices.Contains(hostpv.MembersWithCopies(host), cr.Status.ClusterID) {
		return DroppableCopyRecord{}, false
	}
	return DroppableCopyRecord{NewWitness(c, c.Now(), host.UID, host.ResourceVersion), cr.Status.ClusterID}, true
}

func isMemberLeaving(cr *v1alpha1.ClusterRegistration) bool {
	return cr.DeletionTimestamp != nil && cr.Status.ClusterID != ""
}
