package orphan

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// findOrphanVolumes reads both sides live, and judges the volumes. It reads the member first, so that the
// root of a volume created in between exists when it reads the host. If a list fails or expires
// between two pages, sweep fails.
func (s *inventoryRunner) findOrphanVolumes(ctx context.Context) ([]account.Orphan, error) {
	claims, err := s.listLeafClaimOrigins(ctx)
	if err != nil {
		return nil, err
	}
	withdrawn, err := s.readWithdrawnClaims(ctx)
	if err != nil {
		return nil, err
	}
	volumes, err := s.listLeafVolumes(ctx, rootFinder{s.HostID, claims, withdrawn})
	if err != nil {
		return nil, err
	}
	e := evidence{member: s.Member, destructionSuspended: s.CheckNotSuspended() != nil}
	if e.hostVolumes, e.promisedClaims, err = s.listHostVolumes(ctx); err != nil {
		return nil, err
	}
	if e.rootClaims, err = s.readRootClaims(ctx, e, volumes); err != nil {
		return nil, err
	}
	if e.lostPromises, err = s.findLostPromises(ctx, e, volumes); err != nil {
		return nil, err
	}
	return s.existingOrphanVolumes(ctx, e.orphansAmong(volumes))
}

// findLostPromises reports which promises the host has lost, by name. It covers the promises of earlier claims
// to which the volumes' roots are bound.
func (s *inventoryRunner) findLostPromises(ctx context.Context, e evidence, volumes []leafVolume) (map[string]bool, error) {
	lost := map[string]bool{}
	for _, v := range volumes {
		root := e.rootClaims[v.origin.Root]
		if root == nil || root.UID != v.origin.UID || !hostpv.IsPromiseName(root.Spec.VolumeName) || root.Spec.VolumeName == hostpv.PromiseName(root.UID) {
			continue
		}
		pv, err := index.FindObject[corev1.PersistentVolume](ctx, s.HostLive, index.ClusterScopedKey(root.Spec.VolumeName))
		if err != nil {
			return nil, err
		}
		lost[root.Spec.VolumeName] = pv == nil
	}
	return lost, nil
}

// listLeafClaimOrigins returns, by UID, the origins of the member's claims that have this host's stamp.
func (s *inventoryRunner) listLeafClaimOrigins(ctx context.Context) (map[types.UID]mirror.Origin, error) {
	origins := map[types.UID]mirror.Origin{}
	var list corev1.PersistentVolumeClaimList
	err := index.ListPages(ctx, s.Live, &list, func() {
		for i := range list.Items {
			if origin, ours := mirror.LeafOriginFromHost(s.HostID, &list.Items[i]); ours {
				origins[list.Items[i].UID] = origin
			}
		}
	}, client.MatchingLabels{v1alpha1.LabelHost: s.HostID})
	if err != nil {
		return nil, fmt.Errorf("list the member's claims: %w", err)
	}
	return origins, nil
}

// readWithdrawnClaims returns the leaf claims that were withdrawn while a provisioner may have been
// creating a volume, from the host's record of the member, and from the fence in the member,
// which a restore of the host does not change.
func (s *inventoryRunner) readWithdrawnClaims(ctx context.Context) (map[types.UID]account.WithdrawnClaim, error) {
	record, err := index.FindObject[coordinationv1.Lease](ctx, s.HostLive, types.NamespacedName{Namespace: s.Namespace, Name: fencing.HostRecordName(s.ClusterID)})
	if err != nil {
		return nil, err
	}
	fence, err := index.FindObject[coordinationv1.Lease](ctx, s.Live, types.NamespacedName{Namespace: s.Namespace, Name: s.HostID})
	if err != nil {
		return nil, err
	}
	claims, err := account.WithdrawnClaimsInRecord(record)
	if err != nil {
		return nil, err
	}
	there, err := account.WithdrawnClaimsInRecord(fence)
	if err != nil { // the member's admin can write anything there
		log.FromContext(ctx).Error(err, "could not read the member's record of withdrawn claims; Xylem uses only the host's record")
	}
	for uid, claim := range there {
		if _, known := claims[uid]; !known {
			claims[uid] = claim
		}
	}
	return claims, nil
}

// listLeafVolumes returns the member's PVs that belong to this host, except those that are being deleted.
func (s *inventoryRunner) listLeafVolumes(ctx context.Context, o rootFinder) ([]leafVolume, error) {
	var volumes []leafVolume
	var list corev1.PersistentVolumeList
	err := index.ListPages(ctx, s.Live, &list, func() {
		for i := range list.Items {
			if v, ours := o.factsOfVolume(&list.Items[i]); ours {
				volumes = append(volumes, v)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the member's volumes: %w", err)
	}
	return volumes, nil
}

// listHostVolumes returns the host PVs whose leaf PV is in the member, by the leaf PV's UID, and the
// UIDs of the claims of the member's promises without a disk.
func (s *inventoryRunner) listHostVolumes(ctx context.Context) (map[types.UID]hostVolumeRecord, map[types.UID]bool, error) {
	mirrors, promised := map[types.UID]hostVolumeRecord{}, map[types.UID]bool{}
	var list corev1.PersistentVolumeList
	err := index.ListPages(ctx, s.HostLive, &list, func() {
		for i := range list.Items {
			pv := &list.Items[i]
			if hostpv.IsUnfulfilledPromiseIn(pv, s.ClusterID) && pv.Spec.ClaimRef != nil {
				promised[pv.Spec.ClaimRef.UID] = true
				continue
			}
			cluster, leaf, uid, ours := hostpv.LeafOfHostVolume(pv)
			if !ours || cluster != s.ClusterID {
				continue
			}
			m := hostVolumeRecord{name: pv.Name, leafName: leaf, released: hostpv.IsReleasedOrFailed(pv)}
			if pv.Spec.ClaimRef != nil {
				m.claimUID = pv.Spec.ClaimRef.UID
			}
			mirrors[uid] = m
		}
	}, client.MatchingLabels{v1alpha1.LabelClusterID: s.ClusterID})
	if err != nil {
		return nil, nil, fmt.Errorf("list the host's volumes: %w", err)
	}
	return mirrors, promised, nil
}

// readRootClaims returns the host's claims for which the member has a volume whose root must be read. It reads the
// namespaces of these claims, each of which may have claims for all members, so it keeps no others.
func (s *inventoryRunner) readRootClaims(ctx context.Context, e evidence, volumes []leafVolume) (map[types.NamespacedName]*corev1.PersistentVolumeClaim, error) {
	roots := map[types.NamespacedName]*corev1.PersistentVolumeClaim{}
	namespaces := map[string]struct{}{}
	for _, v := range volumes {
		if v.origin.Root.Namespace != "" && e.needsRootClaim(v) {
			roots[v.origin.Root], namespaces[v.origin.Root.Namespace] = nil, struct{}{}
		}
	}
	for namespace := range namespaces {
		var list corev1.PersistentVolumeClaimList
		err := index.ListPages(ctx, s.HostLive, &list, func() {
			for i := range list.Items {
				key := client.ObjectKeyFromObject(&list.Items[i])
				if _, needed := roots[key]; needed {
					root := list.Items[i] // a pointer to the item would keep the whole page
					root.ManagedFields = nil
					roots[key] = &root
				}
			}
		}, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("list the host's claims in namespace %s: %w", namespace, err)
		}
	}
	return roots, nil
}

// existingOrphanVolumes returns the orphans that still exist. A volume that was being deleted while the lists
// were read may have appeared to have no root.
func (s *inventoryRunner) existingOrphanVolumes(ctx context.Context, found []account.Orphan) ([]account.Orphan, error) {
	var there []account.Orphan
	for _, o := range found {
		pv, err := index.FindObject[corev1.PersistentVolume](ctx, s.Live, index.ClusterScopedKey(o.Volume))
		if err != nil {
			return nil, err
		}
		if pv != nil && pv.UID == o.UID && pv.DeletionTimestamp == nil {
			there = append(there, o)
		}
	}
	return there, nil
}
