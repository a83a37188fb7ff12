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
// cache does not contain them, and no other host object names them before the claim is bound.
// Mirrors ensures that Xylem mirrors at most one leaf volume for a claim, regardless of how many
// leaf claims exist in all members (I3).
//
// It needs no writes and usually no reads, because this process records the PVs that it creates.
// One live list finds the PVs that earlier processes created.
type Mirrors struct {
	host, live client.Reader

	mu     sync.Mutex
	listed bool
	made   map[types.UID]*made // by claim UID
}

// made is a host PV for a claim. pending is set while the PV is being created.
type made struct {
	name    string
	pending bool
}

// NewMirrors creates a Mirrors that reads the host's cache, and reads live when it needs proof.
func NewMirrors(host, live client.Reader) *Mirrors {
	return &Mirrors{host: host, live: live, made: map[types.UID]*made{}}
}

// Of returns the name of the host PV that was created for a claim and may still bind it, or "". The
// caller has observed the claim as unbound.
func (m *Mirrors) Of(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(ctx, claim)
}

// Begin records that a host PV with the given name is being created, until end is called, for a
// claim that the caller has observed as unbound. If another host PV exists, Begin returns its name
// and records nothing.
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

// boundTo returns the volume to which the claim is now bound. Mirrors drops a claim once it is
// bound, even if the caller has not observed the binding yet.
func (m *Mirrors) boundTo(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	now, err := index.Find[corev1.PersistentVolumeClaim](ctx, m.host, client.ObjectKeyFromObject(claim))
	if err != nil || now == nil || now.UID != claim.UID {
		return "", err
	}
	return now.Spec.VolumeName, nil
}

// list finds the PVs that earlier processes created. It reads them only once.
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
		return fmt.Errorf("list the volumes that earlier processes created for claims: %w", err)
	}
	m.listed = true
	return nil
}

// note records a host PV created by Xylem that may still bind its claim. This includes a bound PV
// whose claim may not show the binding yet, because the host's PV controller writes the claim last.
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
