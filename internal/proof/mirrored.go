package proof

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// provisionedPrefix is the default prefix for the names of provisioned PVs. The claim's UID follows
// (external-provisioner: --volume-name-prefix).
const provisionedPrefix = "pvc-"

// provisionedName returns the default name of the PV that a provisioner creates for a claim. Name
// and disk are always the same, because a repeated call returns the existing disk.
func provisionedName(claim types.UID) string { return provisionedPrefix + string(claim) }

// NotMirrored is the proof that no host PV represents the volume of a leaf claim. If the proof
// fails, MirroredBy is a host PV that represents the volume.
type NotMirrored struct {
	witness    *Witness
	MirroredBy *corev1.PersistentVolume

	leaf     string
	thorough bool
	// restored is set if the member may have lost the stamp of the volume in a restore, or the host
	// may have lost the claim.
	restored bool
}

// ProveNotMirrored proves, by live reads, that the host has no PV with the handle of the leaf PV that a
// leaf claim names, regardless of that leaf PV's current UID. In a restored member, the leaf PV may
// lack the stamp and have a different UID. Then only the host's objects show that the volume is in
// use or must be kept. ProveNotMirrored looks up the host PV by both of its possible names.
//
// If thorough is set, as required before destroying data, it also searches for a PV with any other
// name, for a promise that records the leaf PV, and for a PV of the same claim that represents another
// volume, by a paged list of all PVs in the host. A claim has one volume, so the leaf claim may come from a
// backup, and nobody knows which volume has the newer data. It first reads the cache, which can refute but
// never prove.
func (p Prover) ProveNotMirrored(ctx context.Context, claim *corev1.PersistentVolumeClaim, thorough bool) (NotMirrored, bool, error) {
	began, leaf := p.Clock.Now(), claim.Spec.VolumeName
	by, err := p.findMirrorOf(ctx, leaf, mirror.StampedRootUID(claim), thorough)
	if err != nil || by != nil {
		return NotMirrored{MirroredBy: by}, false, err
	}
	return NotMirrored{witness: p.newWitness(began, claim.UID, claim.ResourceVersion), leaf: leaf, thorough: thorough, restored: p.MayBeRestored(claim) || p.MayLackRoot(claim)}, true, nil
}

// isForClaim reports whether the proof is for a leaf claim's volume.
func (n NotMirrored) isForClaim(claim *corev1.PersistentVolumeClaim) bool {
	return n.witness != nil && n.witness.UID == claim.UID && n.leaf == claim.Spec.VolumeName
}

// findMirrorOf returns a host PV that represents a leaf PV, or nil. thorough is the same as for
// ProveNotMirrored. A host PV of the root counts, too, unless it ends with the root.
func (p Prover) findMirrorOf(ctx context.Context, leaf string, root types.UID, thorough bool) (*corev1.PersistentVolume, error) {
	if !thorough {
		return p.findMirrorByName(ctx, leaf)
	}
	known, err := index.HostVolumesOfLeaf(ctx, p.Host, p.ClusterID, leaf)
	if err != nil {
		return nil, err
	}
	if len(known) > 0 {
		return &known[0], nil
	}
	by, err := p.findMirrorByName(ctx, leaf)
	if err != nil || by != nil {
		return by, err
	}
	var list corev1.PersistentVolumeList
	err = index.ListPages(ctx, p.HostLive, &list, func() {
		for i := range list.Items {
			pv := &list.Items[i]
			if by == nil && (hostpv.RecordsLeaf(pv, p.ClusterID, leaf) || root != "" && rootUIDOf(pv) == root && leafUIDOf(pv) != "" && !isDeletedWithClaim(pv, root)) {
				by = pv.DeepCopy()
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("prove that no host PV represents leaf volume %s: %w", leaf, err)
	}
	return by, nil
}

// findMirrorByName returns the host PV that represents a leaf PV and has one of a mirror's two names,
// or nil.
func (p Prover) findMirrorByName(ctx context.Context, leaf string) (*corev1.PersistentVolume, error) {
	for _, collides := range []bool{false, true} {
		pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(hostpv.HostVolumeName(leaf, p.ClusterID, collides)))
		if err != nil {
			return nil, err
		}
		if pv != nil && hostpv.RecordsLeaf(pv, p.ClusterID, leaf) {
			return pv, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
}

// NothingProvisioned is the proof that no host PV represents a volume of an unbound leaf claim: nothing
// was provisioned, or the volume is not mirrored. If the proof fails, MirroredBy is a host PV that
// represents the claim's volume, or nil if the member is about to bind one.
type NothingProvisioned struct {
	witness    *Witness
	MirroredBy *corev1.PersistentVolume
}

// ProveNothingProvisioned proves by live reads that no host PV represents a volume of an unbound leaf claim. It
// reads the host PVs for the claim's root, the leaf PVs that these record, and the host PVs that
// represent a volume created for the claim. A bound claim never becomes unbound, so an unbound
// claim can have been bound before only if it may come from a backup of the member. In that case,
// NothingMade lists all PVs in both clusters.
func (p Prover) ProveNothingProvisioned(ctx context.Context, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (NothingProvisioned, bool, error) {
	began := p.Clock.Now()
	made, err := index.LeafVolumesOfClaim(ctx, p.Cache, claim.UID)
	if err != nil {
		return NothingProvisioned{}, false, err
	}
	restored := p.MayBeRestored(claim)
	if restored {
		if made, err = p.listVolumesFor(ctx, claim); err != nil || len(made) > 0 {
			return NothingProvisioned{}, false, err // the member is about to bind it, and bound volumes get a stamp
		}
	}
	if by, err := p.findMirrorOfRoot(ctx, claim, origin); err != nil || by != nil {
		return NothingProvisioned{MirroredBy: by}, false, err
	}
	names := map[string]struct{}{provisionedName(claim.UID): {}}
	for i := range made {
		names[made[i].Name] = struct{}{}
	}
	for name := range names {
		by, err := p.findMirrorOf(ctx, name, "", restored) // findMirrorOfRoot has read those of the root
		if err != nil {
			return NothingProvisioned{}, false, err
		}
		if by != nil && !isDeletedWithClaim(by, origin.UID) {
			return NothingProvisioned{MirroredBy: by}, false, nil
		}
	}
	return NothingProvisioned{witness: p.newWitness(began, claim.UID, claim.ResourceVersion)}, true, nil
}

// findMirrorOfRoot returns a host PV for this member that was created for the leaf claim's root, and
// whose leaf PV may belong to this leaf claim: the leaf PV is missing, or refers to the claim.
func (p Prover) findMirrorOfRoot(ctx context.Context, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (*corev1.PersistentVolume, error) {
	hosts, err := index.HostVolumesOfClaim(ctx, p.Host, origin.Root)
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		cluster, name, _, _ := hostpv.LeafOfHostVolume(&hosts[i])
		if cluster != p.ClusterID || rootUIDOf(&hosts[i]) != origin.UID {
			continue
		}
		host, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(hosts[i].Name))
		if err != nil {
			return nil, err
		}
		if host == nil || isDeletedWithClaim(host, origin.UID) {
			continue
		}
		leaf, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(name))
		if err != nil {
			return nil, err
		}
		if leaf == nil || hostpv.ClaimRefNamesClaim(leaf, claim) {
			return host, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
}

// isDeletedWithClaim reports whether a host PV's data is deleted with the claim from which the PV was
// released. root_pv then waits until the leaf claim is gone.
func isDeletedWithClaim(host *corev1.PersistentVolume, claim types.UID) bool {
	return hostpv.IsReleasedOrFailed(host) && host.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		rootUIDOf(host) == claim && host.Annotations[v1alpha1.AnnotationAbandon] == ""
}

// listVolumesFor returns the member's PVs that were created for a claim or wait to be bound to it, from
// a live list.
func (p Prover) listVolumesFor(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	var found []corev1.PersistentVolume
	err := index.ListPages(ctx, p.Live, &list, func() {
		for i := range list.Items {
			if hostpv.ClaimRefNamesClaim(&list.Items[i], claim) {
				found = append(found, list.Items[i])
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the volumes that were created for claim %s: %w", client.ObjectKeyFromObject(claim), err)
	}
	return found, nil
}
