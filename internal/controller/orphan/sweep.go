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
	"github.com/xylem-io/xylem/internal/account/withdrawn"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// sweep reads both sides live, and judges the volumes. It reads the member first, so that the
// root of a volume created in between exists when it reads the host. If a list fails or expires
// between two pages, sweep fails.
func (s *sweeper) sweep(ctx context.Context) ([]account.Orphan, error) {
	claims, err := s.leafClaims(ctx)
	if err != nil {
		return nil, err
	}
	withdrawn, err := s.withdrawn(ctx)
	if err != nil {
		return nil, err
	}
	volumes, err := s.volumes(ctx, owners{s.HostID, claims, withdrawn})
	if err != nil {
		return nil, err
	}
	e := evidence{member: s.Member, suspended: s.MayDestroy() != nil}
	if e.mirrors, e.promised, err = s.mirrors(ctx); err != nil {
		return nil, err
	}
	if e.roots, err = s.roots(ctx, e, volumes); err != nil {
		return nil, err
	}
	if e.lost, err = s.lost(ctx, e, volumes); err != nil {
		return nil, err
	}
	return s.confirmed(ctx, e.judged(volumes))
}

// lost reports which promises the host has lost, by name. It covers the promises of earlier claims
// to which the volumes' roots are bound.
func (s *sweeper) lost(ctx context.Context, e evidence, volumes []volume) (map[string]bool, error) {
	lost := map[string]bool{}
	for _, v := range volumes {
		root := e.roots[v.origin.Root]
		if root == nil || root.UID != v.origin.UID || !hostpv.NamesPromise(root.Spec.VolumeName) || root.Spec.VolumeName == hostpv.PromiseName(root.UID) {
			continue
		}
		pv, err := index.Find[corev1.PersistentVolume](ctx, s.HostLive, index.Named(root.Spec.VolumeName))
		if err != nil {
			return nil, err
		}
		lost[root.Spec.VolumeName] = pv == nil
	}
	return lost, nil
}

// leafClaims returns, by UID, the origins of the member's claims that have this host's stamp.
func (s *sweeper) leafClaims(ctx context.Context) (map[types.UID]mirror.Origin, error) {
	origins := map[types.UID]mirror.Origin{}
	var list corev1.PersistentVolumeClaimList
	err := index.Pages(ctx, s.Live, &list, func() {
		for i := range list.Items {
			if origin, ours := mirror.OriginIn(s.HostID, &list.Items[i]); ours {
				origins[list.Items[i].UID] = origin
			}
		}
	}, client.MatchingLabels{v1alpha1.LabelHost: s.HostID})
	if err != nil {
		return nil, fmt.Errorf("list the member's claims: %w", err)
	}
	return origins, nil
}

// withdrawn returns the leaf claims that were withdrawn while a provisioner may have been
// creating a volume, from the host's record of the member, and from the fence in the member,
// which a restore of the host does not change.
func (s *sweeper) withdrawn(ctx context.Context) (map[types.UID]withdrawn.Claim, error) {
	record, err := index.Find[coordinationv1.Lease](ctx, s.HostLive, types.NamespacedName{Namespace: s.Namespace, Name: hostrecord.Name(s.ClusterID)})
	if err != nil {
		return nil, err
	}
	fence, err := index.Find[coordinationv1.Lease](ctx, s.Live, types.NamespacedName{Namespace: s.Namespace, Name: s.HostID})
	if err != nil {
		return nil, err
	}
	claims, err := withdrawn.Claims(record)
	if err != nil {
		return nil, err
	}
	there, err := withdrawn.Claims(fence)
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

// volumes returns the member's PVs that belong to this host, except those that are being deleted.
func (s *sweeper) volumes(ctx context.Context, o owners) ([]volume, error) {
	var volumes []volume
	var list corev1.PersistentVolumeList
	err := index.Pages(ctx, s.Live, &list, func() {
		for i := range list.Items {
			if v, ours := o.volume(&list.Items[i]); ours {
				volumes = append(volumes, v)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the member's volumes: %w", err)
	}
	return volumes, nil
}

// mirrors returns the host PVs whose leaf PV is in the member, by the leaf PV's UID, and the
// UIDs of the claims of the member's promises without a disk.
func (s *sweeper) mirrors(ctx context.Context) (map[types.UID]mirrorOf, map[types.UID]bool, error) {
	mirrors, promised := map[types.UID]mirrorOf{}, map[types.UID]bool{}
	var list corev1.PersistentVolumeList
	err := index.Pages(ctx, s.HostLive, &list, func() {
		for i := range list.Items {
			pv := &list.Items[i]
			if hostpv.IsPromiseIn(pv, s.ClusterID) && pv.Spec.ClaimRef != nil {
				promised[pv.Spec.ClaimRef.UID] = true
				continue
			}
			cluster, leaf, uid, ours := hostpv.LeafOf(pv)
			if !ours || cluster != s.ClusterID {
				continue
			}
			m := mirrorOf{name: pv.Name, leaf: leaf, released: hostpv.Ended(pv)}
			if pv.Spec.ClaimRef != nil {
				m.claim = pv.Spec.ClaimRef.UID
			}
			mirrors[uid] = m
		}
	}, client.MatchingLabels{v1alpha1.LabelClusterID: s.ClusterID})
	if err != nil {
		return nil, nil, fmt.Errorf("list the host's volumes: %w", err)
	}
	return mirrors, promised, nil
}

// roots returns the host's claims for which the member has a volume whose root must be read. It reads the
// namespaces of these claims, each of which may have claims for all members, so it keeps no others.
func (s *sweeper) roots(ctx context.Context, e evidence, volumes []volume) (map[types.NamespacedName]*corev1.PersistentVolumeClaim, error) {
	roots := map[types.NamespacedName]*corev1.PersistentVolumeClaim{}
	namespaces := map[string]struct{}{}
	for _, v := range volumes {
		if v.origin.Root.Namespace != "" && e.needsRoot(v) {
			roots[v.origin.Root], namespaces[v.origin.Root.Namespace] = nil, struct{}{}
		}
	}
	for namespace := range namespaces {
		var list corev1.PersistentVolumeClaimList
		err := index.Pages(ctx, s.HostLive, &list, func() {
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

// confirmed returns the orphans that still exist. A volume that was being deleted while the lists
// were read may have appeared to have no root.
func (s *sweeper) confirmed(ctx context.Context, found []account.Orphan) ([]account.Orphan, error) {
	var there []account.Orphan
	for _, o := range found {
		pv, err := index.Find[corev1.PersistentVolume](ctx, s.Live, index.Named(o.Volume))
		if err != nil {
			return nil, err
		}
		if pv != nil && pv.UID == o.UID && pv.DeletionTimestamp == nil {
			there = append(there, o)
		}
	}
	return there, nil
}
