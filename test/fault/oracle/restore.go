package oracle

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// notice is how long after a restore the manager may take to notice it: it probes each
// second here, and reads its record whenever it watches again.
const notice = 5 * time.Second

// suspended is I2 after a restore: from when it must have been noticed until an admin has
// confirmed it, nothing is destroyed where the restored cluster was the proof, or is the
// place. After a restore of the host that is everywhere.
func suspended(e Evidence, h *history) []Violation {
	if e.Restored == nil {
		return nil
	}
	from, to := e.Restored.At.Add(notice), e.Restored.Confirmed
	within := func(at time.Time) bool { return at.After(from) && (to.IsZero() || at.Before(to)) }
	concerns := func(cluster string) bool {
		return cluster != e.Host && (e.Restored.Cluster == e.Host || e.Restored.Cluster == cluster)
	}
	var found []Violation
	for _, cluster := range slices.Sorted(maps.Keys(e.Requests)) {
		for _, r := range e.Requests[cluster].Writes() {
			storage := r.Resource == "persistentvolumeclaims" && r.Namespace == e.Namespace || r.Resource == "persistentvolumes"
			if concerns(cluster) && r.Verb == "delete" && storage && r.Code < http.StatusMultipleChoices && within(r.Time) {
				found = append(found, Violation{"I2", "suspended", fmt.Sprintf("%s %s in %s was deleted %s after %s was restored, and nobody had confirmed that",
					r.Resource, r.Name, cluster, r.Time.Sub(e.Restored.At).Round(time.Millisecond), e.Restored.Cluster)})
			}
		}
	}
	for where, states := range h.volumes {
		held := false
		for i, s := range states {
			if i > 0 && states[i-1].obj.UID != s.obj.UID {
				held = false // somebody made another one of that name
			}
			retain := s.obj.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if held && !retain && !s.gone && concerns(where.cluster) && ofNamespace(s.obj, e.Namespace) && within(s.time) {
				found = append(found, Violation{"I2", "suspended", fmt.Sprintf("leaf PV %s in %s was put to Delete %s after %s was restored, and nobody had confirmed that",
					where.name, where.cluster, s.time.Sub(e.Restored.At).Round(time.Millisecond), e.Restored.Cluster)})
			}
			held = retain
		}
	}
	return found
}
