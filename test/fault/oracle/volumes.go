package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// accounted checks I1: each existing disk has an owner that may still need it, or is reported as
// orphaned.
func accounted(e Evidence, _ *history) []Violation {
	live := liveOf(e)
	var found []Violation
	for _, member := range slices.Sorted(maps.Keys(e.Ledgers)) {
		var orphans []string
		for id, disk := range e.Ledgers[member].Live() {
			if disk.ClaimNamespace == e.Namespace && !live.wanted(member, e.IDs[member], disk.PVName) && !forgotten(e, live, member, disk.PVName) {
				orphans = append(orphans, fmt.Sprintf("%s (volume %s of claim %s/%s)", id, disk.PVName, disk.ClaimNamespace, disk.ClaimName))
			}
		}
		if reported := e.Orphaned[member]; len(orphans) > reported {
			found = append(found, Violation{"I1", "accounted", fmt.Sprintf("%d disks of %s have no owner, but only %d are reported as orphaned: %v", len(orphans), member, reported, orphans)})
		}
	}
	return found
}

// forgotten reports whether the member was restored to a state before the volume existed, so that
// only its driver has a record of the volume.
func forgotten(e Evidence, live ends, member, volume string) bool {
	return e.Restored != nil && e.Restored.Cluster == member && live.volumes[place{member, volume}] == nil
}

// ends contains the objects at the end of the run.
type ends struct {
	claims  map[types.UID]bool
	volumes map[place]*corev1.PersistentVolume
	mirrors map[string]*corev1.PersistentVolume
}

func liveOf(e Evidence) ends {
	l := ends{claims: map[types.UID]bool{}, volumes: map[place]*corev1.PersistentVolume{}, mirrors: map[string]*corev1.PersistentVolume{}}
	for _, s := range e.Live {
		switch obj := s.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			l.claims[obj.UID] = true
		case *corev1.PersistentVolume:
			if s.Cluster != e.Host {
				l.volumes[place{s.Cluster, obj.Name}] = obj
			} else if leaf := standsFor(obj); leaf != "" {
				l.mirrors[leaf] = obj
			}
		}
	}
	return l
}

// wanted reports whether a volume may still be needed: its root claim exists, or its host PV has
// policy Retain. If a user deleted the leaf PV in the member, the volume is wanted while the host
// has its PV and that PV's claim.
func (l ends) wanted(member, id, volume string) bool {
	mirror := l.mirrors[id+"/"+volume]
	leaf := l.volumes[place{member, volume}]
	if leaf == nil {
		return mirror != nil && mirror.Spec.ClaimRef != nil && l.claims[mirror.Spec.ClaimRef.UID]
	}
	if l.claims[types.UID(leaf.Annotations[v1alpha1.AnnotationRootUID])] {
		return true
	}
	return mirror != nil && mirror.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// notLost checks I2 in the ledger: each destroyed disk was proven to be no longer needed.
func notLost(e Evidence, h *history) []Violation {
	var found []Violation
	for _, member := range slices.Sorted(maps.Keys(e.Ledgers)) {
		made := map[string]ledger.Entry{}
		for _, entry := range e.Ledgers[member].Entries {
			switch {
			case entry.Method == ledger.CreateVolume && entry.VolumeID != "":
				made[entry.VolumeID] = entry
			case entry.Method == ledger.DeleteVolume && entry.Done() && !entry.Time.Before(e.Began):
				disk := made[entry.VolumeID]
				if disk.ClaimNamespace != e.Namespace {
					continue
				}
				if why := h.lost(e, member, disk.PVName, entry.Time); why != "" {
					found = append(found, Violation{"I2", "ledger", fmt.Sprintf("disk %s of %s/%s in %s was destroyed at %s: %s",
						entry.VolumeID, disk.ClaimNamespace, disk.ClaimName, member, entry.Time.Format(time.StampMilli), why)})
				}
			}
		}
	}
	return found
}

// lost returns why a leaf volume should not have been destroyed at the given time, or "".
func (h *history) lost(e Evidence, member, volume string, when time.Time) string {
	states := h.volumes[place{member, volume}]
	mirror, mirrored := before(h.mirrors[e.IDs[member]+"/"+volume], when.Add(lag))
	root := stampedRoot(states)
	if root == "" && !mirrored {
		return h.withdrawn(leafClaim(volume), when)
	}
	return h.unproven(states, mirror, mirrored, root, when)
}

// withdrawn returns why a volume that was never mirrored should not have been destroyed at the
// given time, or "". Once its leaf claim is withdrawn, the member decides what happens to the
// volume. A bound leaf claim must not be withdrawn while its root exists.
func (h *history) withdrawn(uid types.UID, when time.Time) string {
	if !h.goneBy(uid, when) {
		return fmt.Sprintf("the volume was never mirrored, and its leaf claim %s existed", uid)
	}
	leaf, _ := before(h.claims[uid], when.Add(lag))
	root := types.UID(leaf.obj.Annotations[v1alpha1.AnnotationRootUID])
	if leaf.obj.Spec.VolumeName != "" && root != "" && !h.goneBy(root, when) {
		return fmt.Sprintf("its leaf claim %s was bound to it, and its root claim %s existed", uid, root)
	}
	return ""
}

// unproven checks the proof that a mirrored volume could be destroyed at the given time. It returns
// the part that was missing, or "".
func (h *history) unproven(states []volumeAt, mirror volumeAt, mirrored bool, root types.UID, when time.Time) string {
	if root == "" {
		root = mirror.obj.Spec.ClaimRef.UID
	}
	if mirrored && !h.goneBy(root, when) && whenUnused(mirror.obj) {
		return h.used(states, mirror.obj, when)
	}
	switch leaf, known := before(states, when); {
	case !h.goneBy(root, when):
		return fmt.Sprintf("its root claim %s existed", root)
	case mirrored && mirror.obj.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf("host PV %s had policy %s", mirror.obj.Name, mirror.obj.Spec.PersistentVolumeReclaimPolicy)
	case mirrored && mirror.obj.Status.Phase != corev1.VolumeReleased && mirror.obj.Status.Phase != corev1.VolumeFailed:
		return fmt.Sprintf("host PV %s was %s, neither Released nor Failed", mirror.obj.Name, mirror.obj.Status.Phase)
	case known && leaf.obj.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(corev1.PersistentVolumeReclaimRetain):
		return "the member's policy was Retain"
	}
	return ""
}

// flips checks I2 before a disk is destroyed: changing a leaf PV's policy from Retain to Delete
// needs the same proof as destroying the disk.
func flips(e Evidence, h *history) []Violation {
	var found []Violation
	for where, states := range h.volumes {
		root, held := stampedRoot(states), false
		for i, s := range states {
			if i > 0 && states[i-1].obj.UID != s.obj.UID {
				held = false // another PV was created with the same name
			}
			retain := s.obj.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if held && !retain && !s.gone && ofNamespace(s.obj, e.Namespace) {
				mirror, mirrored := before(h.mirrors[e.IDs[where.cluster]+"/"+where.name], s.time.Add(lag))
				if why := h.unproven(states, mirror, mirrored, root, s.time); why != "" {
					found = append(found, Violation{"I2", "policy", fmt.Sprintf("leaf PV %s in %s was set to Delete: %s", where.name, where.cluster, why)})
				}
			}
			held = retain && root != ""
		}
	}
	return found
}

func ofNamespace(pv *corev1.PersistentVolume, namespace string) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Namespace == namespace
}

// once checks I3: a root claim never has two volumes. A promise with release WhenUnused is exempt:
// it has one volume at a time, because its PV records only one.
func once(e Evidence, h *history) []Violation {
	handles := map[types.UID]map[string]bool{}
	for handle, states := range h.mirrors {
		for _, s := range states {
			if ref := s.obj.Spec.ClaimRef; ref != nil && ref.UID != "" && ref.Namespace == e.Namespace && !whenUnused(s.obj) {
				if handles[ref.UID] == nil {
					handles[ref.UID] = map[string]bool{}
				}
				handles[ref.UID][handle] = true
			}
		}
	}
	var found []Violation
	for uid, of := range handles {
		if len(of) > 1 {
			found = append(found, Violation{"I3", "mirrored", fmt.Sprintf("claim %s had host PVs for %d volumes: %v", uid, len(of), slices.Sorted(maps.Keys(of)))})
		}
	}
	return slices.Concat(found, surviving(e), moved(e, h), unplaced(e, h))
}

// moved checks I3 for placed-in: it never changes directly from one member to another. Xylem first
// removes it, once the first member is proven empty. Observations from before a restore of the host
// do not count.
func moved(e Evidence, h *history) []Violation {
	var found []Violation
	for uid, states := range h.claims {
		for i := 1; i < len(states); i++ {
			was, is := placedIn(states[i-1]), placedIn(states[i])
			if was != "" && is != "" && was != is && states[i].obj.Namespace == e.Namespace && !e.undone(states[i-1].time, states[i].time) {
				found = append(found, Violation{"I3", "placed", fmt.Sprintf("root claim %s moved directly from %s to %s", uid, was, is)})
			}
		}
	}
	return found
}

// unplaced checks I3 before a volume is created: a leaf claim is created only after the host's
// claim records the placement. Claims that were never observed in the host, because no writes to
// them occurred, do not count. Neither do observations from before a restore of the host.
func unplaced(e Evidence, h *history) []Violation {
	var found []Violation
	seen := map[types.UID]bool{}
	for _, s := range e.History {
		leaf, ok := s.Object.(*corev1.PersistentVolumeClaim)
		if !ok || s.Cluster == e.Host || leaf.Namespace != e.Namespace || leaf.Labels[v1alpha1.LabelHost] == "" || isForged(leaf) || seen[leaf.UID] ||
			leaf.CreationTimestamp.Time.Before(e.Began.Truncate(time.Second)) {
			continue
		}
		seen[leaf.UID] = true
		states := around(h.claims[types.UID(leaf.Annotations[v1alpha1.AnnotationRootUID])], s.At)
		here := func(root claimAt) bool { return placedIn(root) == e.IDs[s.Cluster] }
		if n := len(states); n > 0 && !e.undone(states[n-1].time, s.At) && !slices.ContainsFunc(states, here) {
			found = append(found, Violation{"I3", "placed", fmt.Sprintf("leaf claim %s was created in %s while its root was placed in %q", leaf.Name, s.Cluster, placedIn(states[n-1]))})
		}
	}
	return found
}

// surviving checks I3 for the disks: at the end, a root claim has only one. After a restore, there
// may be others if they are reported as orphaned: disks that the restore brought back in a member,
// or that the host no longer records.
func surviving(e Evidence) []Violation {
	live := liveOf(e)
	volumes := map[types.UID][]string{}
	for where, leaf := range live.volumes {
		if e.Restored != nil && e.Orphaned[where.cluster] > 0 && live.mirrors[e.IDs[where.cluster]+"/"+where.name] == nil {
			continue
		}
		if uid := leaf.Annotations[v1alpha1.AnnotationRootUID]; uid != "" && ofNamespace(leaf, e.Namespace) && !isForged(leaf) {
			volumes[types.UID(uid)] = append(volumes[types.UID(uid)], where.cluster+"/"+where.name)
		}
	}
	var found []Violation
	for uid, of := range volumes {
		if len(of) > 1 {
			slices.Sort(of)
			found = append(found, Violation{"I3", "surviving", fmt.Sprintf("root claim %s has %d leaf volumes: %v", uid, len(of), of)})
		}
	}
	return found
}
