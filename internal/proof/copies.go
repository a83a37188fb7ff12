package proof

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// CopyObsolete is evidence that a copy of a shared volume can be deleted without deleting data, because
// the copy's PV has policy Retain.
type CopyObsolete struct{ witness *Witness }

// ProveCopyClaimObsolete proves by a live read of the host that the claim of a copy is not needed: the
// host's claim is no longer bound to the volume. A claim that has lost its PV is never needed,
// because it cannot be bound again. A live read of the member proves that the claim's PV outlives the
// claim, even if somebody has removed the PV's stamp. If it does not, ProveCopyClaimObsolete returns an error,
// because the member's admin must act if Xylem cannot.
func ProveCopyClaimObsolete(ctx context.Context, p Prover, claim *corev1.PersistentVolumeClaim) (CopyObsolete, bool, error) {
	c, ours := mirror.VolumeCopyFromHost(p.HostID, claim)
	if !ours {
		return CopyObsolete{}, false, nil
	}
	began := p.Clock.Now()
	host, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(c.Volume))
	if err != nil {
		return CopyObsolete{}, false, fmt.Errorf("prove that claim %s is no longer needed: %w", client.ObjectKeyFromObject(claim), err)
	}
	if IsCopyNeeded(host, c) && claim.Status.Phase != corev1.ClaimLost {
		return CopyObsolete{}, false, nil
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(claim.Spec.VolumeName))
	if err != nil {
		return CopyObsolete{}, false, fmt.Errorf("prove that volume %s outlives claim %s: %w", claim.Spec.VolumeName, client.ObjectKeyFromObject(claim), err)
	}
	if !OutlivesClaim(pv, claim) {
		return CopyObsolete{}, false, fmt.Errorf("claim %s is not deleted, because volume %s has reclaim policy %s: the member could destroy the shared volume",
			client.ObjectKeyFromObject(claim), pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	return CopyObsolete{NewWitness(p.Clock, began, claim.UID, "")}, true, nil
}

// IsCopyNeeded reports whether the host PV of a copy still belongs to the claim for which the copy was
// created.
func IsCopyNeeded(host *corev1.PersistentVolume, c mirror.VolumeCopy) bool {
	return host != nil && host.UID == c.VolumeUID && hostpv.IsClaimedVolume(host) && host.Spec.ClaimRef.UID == c.ClaimUID
}

// ProveCopyVolumeObsolete proves by a live read of the member that no claim is bound to the PV of a
// copy.
func ProveCopyVolumeObsolete(ctx context.Context, p Prover, pv *corev1.PersistentVolume) (CopyObsolete, bool, error) {
	ref := pv.Spec.ClaimRef
	if _, ours := mirror.VolumeCopyFromHost(p.HostID, pv); !ours || !IsLeafRetained(pv) {
		return CopyObsolete{}, false, nil
	}
	began := p.Clock.Now()
	if ref == nil { // the member's admin has freed it
		return CopyObsolete{NewWitness(p.Clock, began, pv.UID, "")}, true, nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return CopyObsolete{}, false, fmt.Errorf("prove that no claim is bound to volume %s: %w", pv.Name, err)
	}
	if claim != nil && claim.UID == ref.UID {
		return CopyObsolete{}, false, nil
	}
	return CopyObsolete{NewWitness(p.Clock, began, pv.UID, "")}, true, nil
}

// CoversWrite implements proof.Evidence.
func (e CopyObsolete) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if action != DeleteCopy || e.witness == nil || e.witness.UID != object.GetUID() {
		return NewUnprovenError("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	return SpendProofs(e.witness)
}

// NoCopy is evidence that a member has no copy of a host PV's volume.
type NoCopy struct {
	witness *Witness
	cluster string
}

// CopyClusterID returns the member's cluster ID.
func (e NoCopy) CopyClusterID() string { return e.cluster }

// CoversWrite implements proof.Evidence.
func (e NoCopy) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if action != DropCopyRecord || e.witness == nil || e.witness.UID != object.GetUID() {
		return NewUnprovenError("the evidence is not for host PV %q", object.GetName())
	}
	return SpendProofs(e.witness)
}

// ProveCopyGone proves by live reads that the member has no copy of a host PV's volume: neither a PV with
// the copy's name, nor a claim.
func ProveCopyGone(ctx context.Context, p Prover, host *corev1.PersistentVolume, name string) (NoCopy, bool, error) {
	began := p.Clock.Now()
	gone, err := isCopyGone(ctx, p, host, name)
	if err != nil || !gone {
		return NoCopy{}, false, err
	}
	return NoCopy{NewWitness(p.Clock, began, host.UID, ""), p.ClusterID}, true, nil
}

func isCopyGone(ctx context.Context, p Prover, host *corev1.PersistentVolume, name string) (bool, error) {
	of := func(obj client.Object) bool {
		c, ours := mirror.VolumeCopyFromHost(p.HostID, obj)
		return ours && c.Volume == host.Name
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(name))
	if err != nil || pv != nil && of(pv) {
		return false, err
	}
	if ref := host.Spec.ClaimRef; ref != nil && ref.UID != "" {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		return err == nil && (claim == nil || !of(claim)), err
	}
	// An admin has freed the host PV, so the claim's name is unknown.
	gone := true
	var list corev1.PersistentVolumeClaimList
	err = index.ListPages(ctx, p.Live, &list, func() {
		gone = gone && !slices.ContainsFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool { return of(&c) })
	}, client.MatchingLabels{v1alpha1.LabelHost: p.HostID})
	return err == nil && gone, err
}
