package account

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// MirrorTracker records the host PVs that were created for claims and may still bind them. A lagging
// cache does not contain them, and no other host object names them before the claim is bound.
// Mirrors ensures that Xylem mirrors at most one leaf volume for a claim, regardless of how many
// leaf claims exist in all members (I3).
//
// It needs no writes and usually no reads, because this process records the PVs that it creates.
// One live list finds the PVs that earlier processes created.
type MirrorTracker struct {
	host, live client.Reader

	mu                   sync.Mutex
	earlierVolumesListed bool
	created              map[types.UID]*createdVolume // by claim UID
}

// createdVolume is a host PV for a claim. pending is set while the PV is being created.
type createdVolume struct {
	name         string
	beingCreated bool
}

// NewMirrorTracker creates a MirrorTracker that reads the host's cache, and reads live when it needs proof.
func NewMirrorTracker(host, live client.Reader) *MirrorTracker {
	return &MirrorTracker{host: host, live: live, created: map[types.UID]*createdVolume{}}
}

// HostVolumeFor returns the name of the host PV that was created for a claim and may still bind it, or "". The
// caller has observed the claim as unbound.
func (m *MirrorTracker) HostVolumeFor(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hostVolumeForLocked(ctx, claim)
}

// BeginCreation records that a host PV with the given name is being created, until end is called, for a
// claim that the caller has observed as unbound. If another host PV exists, BeginCreation returns its name
// and records nothing.
func (m *MirrorTracker) BeginCreation(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (other string, end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other, err = m.hostVolumeForLocked(ctx, claim); err != nil || other != "" && other != name {
		return other, nil, err
	}
	pv := &createdVolume{name: name, beingCreated: true}
	m.created[claim.UID] = pv
	return "", func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		pv.beingCreated = false
	}, nil
}

// ForgetClaim drops a claim that is bound or gone, and so cannot be bound to another volume.
func (m *MirrorTracker) ForgetClaim(claim types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pv := m.created[claim]; pv != nil && !pv.beingCreated {
		delete(m.created, claim)
	}
}

func (m *MirrorTracker) hostVolumeForLocked(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	if err := m.listEarlierVolumes(ctx); err != nil {
		return "", err
	}
	there := m.created[claim.UID]
	switch {
	case there == nil:
		return m.boundVolumeOf(ctx, claim)
	case there.beingCreated:
		return "", fmt.Errorf("volume %s is being created for claim %s/%s", there.name, claim.Namespace, claim.Name)
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, m.live, index.ClusterScopedKey(there.name))
	if err != nil {
		return "", fmt.Errorf("read the volume that was created for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if !mayBindClaim(pv, claim.UID) {
		delete(m.created, claim.UID)
		return "", nil
	}
	return there.name, nil
}

// boundVolumeOf returns the volume to which the claim is now bound. Mirrors drops a claim once it is
// bound, even if the caller has not observed the binding yet.
func (m *MirrorTracker) boundVolumeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	now, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, m.host, client.ObjectKeyFromObject(claim))
	if err != nil || now == nil || now.UID != claim.UID {
		return "", err
	}
	return now.Spec.VolumeName, nil
}

// listEarlierVolumes finds the PVs that earlier processes created. It reads them only once.
func (m *MirrorTracker) listEarlierVolumes(ctx context.Context) error {
	if m.earlierVolumesListed {
		return nil
	}
	var list corev1.PersistentVolumeList
	var failed error
	err := index.ListPages(ctx, m.live, &list, func() {
		for i := range list.Items {
			if err := m.recordEarlierVolume(ctx, &list.Items[i]); err != nil {
				failed = err
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("list the volumes that earlier processes created for claims: %w", err)
	}
	m.earlierVolumesListed = true
	return nil
}

// recordEarlierVolume records a host PV created by Xylem that may still bind its claim. This includes a bound PV
// whose claim may not show the binding yet, because the host's PV controller writes the claim last.
func (m *MirrorTracker) recordEarlierVolume(ctx context.Context, pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	if ref == nil || !mayBindClaim(pv, ref.UID) || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != v1alpha1.ProvisionerName {
		return nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, m.host, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return err
	}
	if claim == nil || claim.UID != ref.UID || claim.Spec.VolumeName != pv.Name {
		m.created[ref.UID] = &createdVolume{name: pv.Name}
	}
	return nil
}

// mayBindClaim reports whether a PV may still bind a claim, or has bound it.
func mayBindClaim(pv *corev1.PersistentVolume, claim types.UID) bool {
	return pv != nil && claim != "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim && !hostpv.IsReleasedOrFailed(pv)
}
