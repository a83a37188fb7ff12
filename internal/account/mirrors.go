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

// Mirrors records the host PVs that were created for claims and may still bind them. A lagging
// cache does not show them, and no other object of the host names them before the claim is bound.
// With Mirrors, Xylem mirrors at most one leaf volume for a claim, however many leaf claims there
// are, in any member (I3).
//
// It costs no write and usually no read, because this process knows the PVs that it creates.
// One live list finds those of earlier processes.
type Mirrors struct {
	host, live client.Reader

	mu     sync.Mutex
	listed bool
	made   map[types.UID]*made // by the UID of the claim
}

// made is a host PV that was created, or is being created, for a claim.
type made struct {
	name    string
	pending bool
}

// NewMirrors creates a Mirrors that reads the host's cache, and reads live where it needs
// proof.
func NewMirrors(host, live client.Reader) *Mirrors {
	return &Mirrors{host: host, live: live, made: map[types.UID]*made{}}
}

// Of returns the name of the host PV that was created for a claim that was seen unbound, and
// may still bind it, or "".
func (m *Mirrors) Of(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(ctx, claim)
}

// Begin records that a host PV of the given name is about to be created for a claim that was
// seen unbound, until end is called. If there is another one, Begin returns its name and
// records nothing.
func (m *Mirrors) Begin(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (other string, end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other, err = m.of(ctx, claim); err != nil || other != "" && other != name {
		return other, nil, err
	}
	pv := &made{name: name, pending: true}
	m.made[claim.UID] = pv
	return "", func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		pv.pending = false
	}, nil
}

// Forget drops a claim that is bound or gone, and so cannot be bound to another volume.
func (m *Mirrors) Forget(claim types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pv := m.made[claim]; pv != nil && !pv.pending {
		delete(m.made, claim)
	}
}

func (m *Mirrors) of(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	if err := m.list(ctx); err != nil {
		return "", err
	}
	there := m.made[claim.UID]
	switch {
	case there == nil:
		return m.boundTo(ctx, claim)
	case there.pending:
		return "", fmt.Errorf("volume %s is being created for claim %s/%s", there.name, claim.Namespace, claim.Name)
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, m.live, index.Named(there.name))
	if err != nil {
		return "", fmt.Errorf("read the volume that was created for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if !binds(pv, claim.UID) {
		delete(m.made, claim.UID)
		return "", nil
	}
	return there.name, nil
}

// boundTo returns the volume to which the claim is bound now. Its mirror was dropped for that
// reason, after the caller had read the cache.
func (m *Mirrors) boundTo(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	now, err := index.Find[corev1.PersistentVolumeClaim](ctx, m.host, client.ObjectKeyFromObject(claim))
	if err != nil || now == nil || now.UID != claim.UID {
		return "", err
	}
	return now.Spec.VolumeName, nil
}

// list finds, once, the PVs that earlier processes created.
func (m *Mirrors) list(ctx context.Context) error {
	if m.listed {
		return nil
	}
	var list corev1.PersistentVolumeList
	var failed error
	err := index.Pages(ctx, m.live, &list, func() {
		for i := range list.Items {
			if err := m.note(ctx, &list.Items[i]); err != nil {
				failed = err
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("list the volumes that were created for claims before: %w", err)
	}
	m.listed = true
	return nil
}

// note records a host PV of Xylem that may still bind its claim, or whose claim may not show
// the binding yet, because the host's PV controller writes the claim last.
func (m *Mirrors) note(ctx context.Context, pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	if ref == nil || !binds(pv, ref.UID) || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != v1alpha1.ProvisionerName {
		return nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, m.host, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return err
	}
	if claim == nil || claim.UID != ref.UID || claim.Spec.VolumeName != pv.Name {
		m.made[ref.UID] = &made{name: pv.Name}
	}
	return nil
}

// binds reports whether a PV may still bind a claim, or has bound it.
func binds(pv *corev1.PersistentVolume, claim types.UID) bool {
	return pv != nil && claim != "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim && !hostpv.Ended(pv)
}
