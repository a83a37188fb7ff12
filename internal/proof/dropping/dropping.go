package dropping

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
// one version of the host PV.
type Droppable struct {
	w       *witness.Witness
	version string
}

// Covers implements proof.Evidence.
func (e Droppable) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if action != proof.DropHost || e.w == nil || e.w.UID != object.GetUID() || e.version != object.GetResourceVersion() {
		return witness.Unproven("the evidence is not for this version of host PV %q", object.GetName())
	}
	return witness.Spend(e.w)
}

func droppable(c clock.PassiveClock, began time.Time, host *corev1.PersistentVolume) Droppable {
	return Droppable{witness.New(c, began, host.UID, host.ResourceVersion), host.ResourceVersion}
}

// LeafGone proves by live reads that neither the leaf PV that a host PV records nor its root's leaf
// claim exists, and that the member was not restored.
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
	return droppable(p.Clock, began, host), true, nil
}

// PromiseEnded proves by live reads that the claim of a promise without a disk was deleted, that the
// promise has not changed, that its leaf claim does not exist, and that the member was not restored.
func PromiseEnded(ctx context.Context, p proof.Prover, promise *corev1.PersistentVolume) (Droppable, bool, error) {
	if !hostpv.IsPromiseIn(promise, p.ClusterID) || !hostpv.Ended(promise) || hostpv.Abandoned(promise) {
		return Droppable{}, false, nil
	}
	if _, proven, err := p.RootGone(ctx, claimOf(promise), promise.Spec.ClaimRef.UID); err != nil || !proven {
		return Droppable{}, false, err
	}
	began := p.Clock.Now()
	if _, same, err := p.HostUnchanged(ctx, promise); err != nil || !same {
		return Droppable{}, false, err
	}
	if gone, err := leafClaimGone(ctx, p, promise); err != nil || !gone {
		return Droppable{}, false, err
	}
	return droppable(p.Clock, began, promise), true, nil
}

// leafClaimGone proves that the member has no leaf claim of a host PV's root, and was not restored.
func leafClaimGone(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume) (bool, error) {
	key := claimOf(host)
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
// restored. Then nothing else names the disk, so the caller must record the disk first.
func DiskKept(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume) (e Droppable, missing bool, err error) {
	if host.DeletionTimestamp == nil {
		return Droppable{}, false, fmt.Errorf("host PV %s is not being deleted: %w", host.Name, proof.ErrUnproven)
	}
	began := p.Clock.Now()
	_, name, uid, records := hostpv.LeafOf(host)
	if !records {
		return droppable(p.Clock, began, host), false, nil
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

// Unneeded proves by live reads that a promise is assigned to no member, that needs rejects its claim,
// and that the promise has not changed. needs receives nil if the claim does not exist.
func Unneeded(ctx context.Context, p proof.Prover, promise *corev1.PersistentVolume, needs func(*corev1.PersistentVolumeClaim) bool) (Droppable, bool, error) {
	if !hostpv.IsUnused(promise) || promise.Spec.ClaimRef == nil {
		return Droppable{}, false, nil
	}
	began := p.Clock.Now()
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.HostLive, claimOf(promise))
	if err != nil || needs(claim) {
		return Droppable{}, false, err
	}
	if _, same, err := p.HostUnchanged(ctx, promise); err != nil || !same {
		return Droppable{}, false, err
	}
	return droppable(p.Clock, began, promise), true, nil
}

// Unclaimed returns evidence for a promise that is being deleted and that never had a claim or a disk.
func Unclaimed(c clock.PassiveClock, promise *corev1.PersistentVolume) (Droppable, bool) {
	ref := promise.Spec.ClaimRef
	if promise.DeletionTimestamp == nil || !hostpv.IsUnfulfilled(promise) || ref != nil && ref.UID != "" {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), promise), true
}

// Abandoned returns evidence for a host PV that an admin has abandoned.
func Abandoned(c clock.PassiveClock, host *corev1.PersistentVolume) (Droppable, bool) {
	if !hostpv.Abandoned(host) {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), host), true
}

// Deregistering returns evidence for a host PV of a member, or with a copy in this member, whose
// registration is being deleted. An object whose deletion has begun cannot be restored to life, so the
// registration may come from a cache.
func Deregistering(c clock.PassiveClock, host *corev1.PersistentVolume, cr *v1alpha1.ClusterRegistration) (Droppable, bool) {
	cluster, _, _, _ := hostpv.LeafOf(host)
	id := cr.Status.ClusterID
	if cr.DeletionTimestamp == nil || id == "" || id != cluster && id != host.Labels[v1alpha1.LabelClusterID] && !slices.Contains(hostpv.CopiedIn(host), id) {
		return Droppable{}, false
	}
	return droppable(c, c.Now(), host), true
}

// claimOf returns the key of the claim in a host PV's claimRef, which must exist.
func claimOf(host *corev1.PersistentVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: host.Spec.ClaimRef.Namespace, Name: host.Spec.ClaimRef.Name}
}
