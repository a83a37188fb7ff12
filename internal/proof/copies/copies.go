package copies

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
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/internal/witness"
)

// Obsolete is evidence that a copy of a shared volume can be deleted without deleting data, because
// the copy's PV has policy Retain.
type Obsolete struct{ w *witness.Witness }

// ClaimObsolete proves by a live read of the host that the claim of a copy is not needed: the
// host's claim is no longer bound to the volume. A claim that has lost its PV is never needed,
// because it cannot be bound again. A live read of the member proves that the claim's PV outlives the
// claim, even if somebody has removed the PV's stamp. If it does not, ClaimObsolete returns an error,
// because the member's admin must act if Xylem cannot.
func ClaimObsolete(ctx context.Context, p proof.Prover, claim *corev1.PersistentVolumeClaim) (Obsolete, bool, error) {
	c, ours := mirror.VolumeCopyIn(p.HostID, claim)
	if !ours {
		return Obsolete{}, false, nil
	}
	began := p.Clock.Now()
	host, err := index.Find[corev1.PersistentVolume](ctx, p.HostLive, index.Named(c.Volume))
	if err != nil {
		return Obsolete{}, false, fmt.Errorf("prove that claim %s is no longer needed: %w", client.ObjectKeyFromObject(claim), err)
	}
	if Needed(host, c) && claim.Status.Phase != corev1.ClaimLost {
		return Obsolete{}, false, nil
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, p.Live, index.Named(claim.Spec.VolumeName))
	if err != nil {
		return Obsolete{}, false, fmt.Errorf("prove that volume %s outlives claim %s: %w", claim.Spec.VolumeName, client.ObjectKeyFromObject(claim), err)
	}
	if !proof.Outlives(pv, claim) {
		return Obsolete{}, false, fmt.Errorf("claim %s is not deleted, because volume %s has reclaim policy %s: the member could destroy the shared volume",
			client.ObjectKeyFromObject(claim), pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	return Obsolete{witness.New(p.Clock, began, claim.UID, "")}, true, nil
}

// Needed reports whether the host PV of a copy still belongs to the claim for which the copy was
// created.
func Needed(host *corev1.PersistentVolume, c mirror.VolumeCopy) bool {
	return host != nil && host.UID == c.UID && hostpv.Claimed(host) && host.Spec.ClaimRef.UID == c.Claim
}

// VolumeObsolete proves by a live read of the member that no claim is bound to the PV of a
// copy.
func VolumeObsolete(ctx context.Context, p proof.Prover, pv *corev1.PersistentVolume) (Obsolete, bool, error) {
	ref := pv.Spec.ClaimRef
	if _, ours := mirror.VolumeCopyIn(p.HostID, pv); !ours || !proof.Retained(pv) {
		return Obsolete{}, false, nil
	}
	began := p.Clock.Now()
	if ref == nil { // the member's admin has freed it
		return Obsolete{witness.New(p.Clock, began, pv.UID, "")}, true, nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return Obsolete{}, false, fmt.Errorf("prove that no claim is bound to volume %s: %w", pv.Name, err)
	}
	if claim != nil && claim.UID == ref.UID {
		return Obsolete{}, false, nil
	}
	return Obsolete{witness.New(p.Clock, began, pv.UID, "")}, true, nil
}

// Covers implements proof.Evidence.
func (e Obsolete) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if action != proof.DeleteCopy || e.w == nil || e.w.UID != object.GetUID() {
		return witness.Unproven("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	return witness.Spend(e.w)
}

// NoCopy is evidence that a member has no copy of a host PV's volume.
type NoCopy struct {
	w       *witness.Witness
	cluster string
}

// Cluster returns the member's cluster ID.
func (e NoCopy) Cluster() string { return e.cluster }

// Covers implements proof.Evidence.
func (e NoCopy) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if action != proof.DropCopyRecord || e.w == nil || e.w.UID != object.GetUID() {
		return witness.Unproven("the evidence is not for host PV %q", object.GetName())
	}
	return witness.Spend(e.w)
}

// Gone proves by live reads that the member has no copy of a host PV's volume: neither a PV with
// the copy's name, nor a claim.
func Gone(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume, name string) (NoCopy, bool, error) {
	began := p.Clock.Now()
	gone, err := gone(ctx, p, host, name)
	if err != nil || !gone {
		return NoCopy{}, false, err
	}
	return NoCopy{witness.New(p.Clock, began, host.UID, ""), p.ClusterID}, true, nil
}

func gone(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume, name string) (bool, error) {
	of := func(obj client.Object) bool {
		c, ours := mirror.VolumeCopyIn(p.HostID, obj)
		return ours && c.Volume == host.Name
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, p.Live, index.Named(name))
	if err != nil || pv != nil && of(pv) {
		return false, err
	}
	if ref := host.Spec.ClaimRef; ref != nil && ref.UID != "" {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		return err == nil && (claim == nil || !of(claim)), err
	}
	// An admin has freed the host PV, so the claim's name is unknown.
	gone := true
	var list corev1.PersistentVolumeClaimList
	err = index.Pages(ctx, p.Live, &list, func() {
		gone = gone && !slices.ContainsFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool { return of(&c) })
	}, client.MatchingLabels{v1alpha1.LabelHost: p.HostID})
	return err == nil && gone, err
}
