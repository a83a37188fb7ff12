package rootpv

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/xylem-io/xylem/internal/proof"
)

// evidenceLifetime is how long the removal of a finalizer may use the evidence of the deletion before it. It is less
// than the time after which evidence expires, because the write may wait for others. Kubernetes removes its
// own finalizer within milliseconds, and Xylem then removes the other one.
const evidenceLifetime = 5 * time.Second

// leafGoneEvidence keeps evidence that the leaf of a host PV is gone between two steps: root_pv deletes the host PV, and
// then removes its finalizer. If the evidence is missing, for example after a restart, root_pv proves it again.
type leafGoneEvidence struct{ *cache.Expiring } // by the UID of the host PV

func newLeafGoneEvidence() leafGoneEvidence { return leafGoneEvidence{cache.NewExpiring()} }

// keepEvidence keeps evidence for a host PV that is about to be deleted.
func (g leafGoneEvidence) keepEvidence(host *corev1.PersistentVolume, e proof.DroppableVolume) {
	if host.DeletionTimestamp == nil {
		g.Set(host.UID, e, evidenceLifetime)
	}
}

// takeEvidence returns the evidence for a host PV that is being deleted, and forgets it.
func (g leafGoneEvidence) takeEvidence(host *corev1.PersistentVolume) (proof.DroppableVolume, bool) {
	if host.DeletionTimestamp == nil {
		return proof.DroppableVolume{}, false
	}
	value, _ := g.Get(host.UID)
	g.Delete(host.UID)
	e, kept := value.(proof.DroppableVolume)
	return e, kept
}
