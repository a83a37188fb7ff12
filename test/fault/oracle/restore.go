package oracle

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// notice is how long the manager may take to detect a restore. In these tests, it probes every
// second, and reads its record when it restarts a watch.
const notice = 5 * time.Second

// suspended checks I2 after a restore. From the time at which the manager must have detected the
// restore until an admin confirms it, nothing is destroyed in a restored member. After a restore of
// the host, which is part of every proof, nothing is destroyed in any member.
func suspended(e Evidence, h *history) []Violation {
	if e.Restored == nil {
		return nil
	}
	return slices.Concat(deletedUnconfirmed(e), putToDeleteUnconfirmed(e, h), contentsPutToDeleteUnconfirmed(e, h))
}

// unconfirmed reports whether a write in a cluster was made after a restore that affects the
// cluster, and before its confirmation.
func (e Evidence) unconfirmed(cluster string, at time.Time) bool {
	from, to := e.Restored.At.Add(notice), e.Restored.Confirmed
	return cluster != e.Host && (e.Restored.Cluster == e.Host || e.Restored.Cluster == cluster) &&
		at.After(from) && (to.IsZero() || at.Before(to))
}

// undone reports whether the host was restored between two times, so that the earlier observation
// may no longer hold.
func (e Evidence) undone(seen, later time.Time) bool {
	return e.Restored != nil && e.Restored.Cluster == e.Host && seen.Before(e.Restored.At) && later.After(e.Restored.Began)
}

// deletedUnconfirmed finds claims, volumes, snapshots and contents that were deleted before the
// confirmation.
func deletedUnconfirmed(e Evidence) []Violation {
	var found []Violation
	for _, cluster := range slices.Sorted(maps.Keys(e.Requests)) {
		for _, r := range e.Requests[cluster].Writes() {
			storage := r.Namespace == e.Namespace && (r.Resource == "persistentvolumeclaims" || r.Resource == "volumesnapshots") ||
				r.Resource == "persistentvolumes" || r.Resource == "volumesnapshotcontents"
			if r.Verb == "delete" && storage && r.Code < http.StatusMultipleChoices && e.unconfirmed(cluster, r.Time) {
				found = append(found, Violation{"I2", "suspended", fmt.Sprintf("%s %s in %s was deleted %s after the restore of %s, before an admin confirmed it",
					r.Resource, r.Name, cluster, r.Time.Sub(e.Restored.At).Round(time.Millisecond), e.Restored.Cluster)})
			}
		}
	}
	return found
}

// putToDeleteUnconfirmed finds leaf PVs whose policy was set to Delete before the confirmation.
func putToDeleteUnconfirmed(e Evidence, h *history) []Violation {
	var found []Violation
	for where, states := range h.volumes {
		held := false
		for i, s := range states {
			if i > 0 && states[i-1].obj.UID != s.obj.UID {
				held = false // another PV was created with the same name
			}
			retain := s.obj.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if held && !retain && !s.gone && ofNamespace(s.obj, e.Namespace) && e.unconfirmed(where.cluster, s.time) {
				found = append(found, Violation{"I2", "suspended", fmt.Sprintf("leaf PV %s in %s was set to Delete %s after the restore of %s, before an admin confirmed it",
					where.name, where.cluster, s.time.Sub(e.Restored.At).Round(time.Millisecond), e.Restored.Cluster)})
			}
			held = retain
		}
	}
	return found
}

// contentsPutToDeleteUnconfirmed finds leaf contents whose policy was set to Delete before the
// confirmation.
func contentsPutToDeleteUnconfirmed(e Evidence, h *history) []Violation {
	var found []Violation
	for where, states := range h.leafContents {
		for _, s := range putToDelete(states) {
			if s.obj.Spec.VolumeSnapshotRef.Namespace == e.Namespace && e.unconfirmed(where.cluster, s.time) {
				found = append(found, Violation{"I2", "suspended", fmt.Sprintf("leaf content %s in %s was set to Delete %s after the restore of %s, before an admin confirmed it",
					where.name, where.cluster, s.time.Sub(e.Restored.At).Round(time.Millisecond), e.Restored.Cluster)})
			}
		}
	}
	return found
}
