package clusterregistration

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// announceOrphans emits an event on the registration for each orphan that is new in its status. A
// restart of the manager does not repeat these events.
func (r *Reconciler) announceOrphans(before, after *v1alpha1.ClusterRegistration, found []account.Orphan) {
	for _, o := range after.Status.Orphans {
		known := slices.ContainsFunc(before.Status.Orphans, func(was v1alpha1.OrphanedVolume) bool {
			return was.Volume == o.Volume && was.Reason == o.Reason
		})
		i := slices.IndexFunc(found, func(f account.Orphan) bool { return f.Volume == o.Volume })
		if !known && i >= 0 {
			r.emitOrphanedVolume(after, found[i])
		}
	}
}
