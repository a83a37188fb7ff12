package rootpv

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/xylem-io/xylem/internal/proof/dropping"
)

// sharedFor is how long the removal of a finalizer may use the evidence of the deletion before it. It is less
// than the time after which evidence expires, because the write may wait for others. Kubernetes removes its
// own finalizer within milliseconds, and Xylem then removes the other one.
const sharedFor = 5 * time.Second

// leafGone keeps evidence that the leaf of a host PV is gone between two steps: root_pv deletes the host PV, and
// then removes its finalizer. If the evidence is missing, for example after a restart, root_pv proves it again.
type leafGone struct{ *cache.Expiring } // by the UID of the host PV

func newLeafGone() leafGone { return leafGone{cache.NewExpiring()} }

// keep keeps evidence for a host PV that is about to be deleted.
func (g leafGone) keep(host *corev1.PersistentVolume, e dropping.Droppable) {
	if host.DeletionTimestamp == nil {
		g.Set(host.UID, e, sharedFor)
	}
}

// take returns the evidence for a host PV that is being deleted, and forgets it.
func (g leafGone) take(host *corev1.PersistentVolume) (dropping.Droppable, bool) {
	if host.DeletionTimestamp == nil {
		return dropping.Droppable{}, false
	}
	value, _ := g.Get(host.UID)
	g.Delete(host.UID)
	e, kept := value.(dropping.Droppable)
	return e, kept
}
