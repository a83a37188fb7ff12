package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// handleOf returns the leaf content that a host content represents, as <cluster ID>/<name>. It
// returns "" if the host content has no handle yet.
func handleOf(content *snapshotv1.VolumeSnapshotContent) string {
	if content.Status == nil || content.Status.SnapshotHandle == nil {
		return ""
	}
	return *content.Status.SnapshotHandle
}

// represents reports whether a host content represents a snapshot in a ledger. It compares the
// handle or, if the content has none, the VolumeSnapshot and the placement.
func represents(content *snapshotv1.VolumeSnapshotContent, id string, taken ledger.Entry) bool {
	if handle := handleOf(content); handle != "" {
		return handle == id+"/"+taken.ContentName
	}
	ref := content.Spec.VolumeSnapshotRef
	return ref.Namespace+"/"+ref.Name == taken.VolumeSnapshot && cmp.Or(content.Annotations[v1alpha1.AnnotationPlacedIn], id) == id
}

// snapshotsAccounted checks I1 for snapshots: each existing snapshot has a content in the host, or
// is reported as orphaned.
func snapshotsAccounted(e Evidence, _ *history) []Violation {
	var found []Violation
	for _, member := range slices.Sorted(maps.Keys(e.Ledgers)) {
		var orphans []string
		for id, taken := range e.Ledgers[member].LiveSnapshots() {
			if taken.ClaimNamespace == e.Namespace && !e.represented(member, taken) && !e.forgottenSnapshot(member, taken) {
				orphans = append(orphans, fmt.Sprintf("%s (content %s of snapshot %s)", id, taken.ContentName, taken.VolumeSnapshot))
			}
		}
		slices.Sort(orphans)
		if reported := e.OrphanedSnapshots[member]; len(orphans) > reported {
			found = append(found, Violation{"I1", "snapshots", fmt.Sprintf("%d snapshots of %s have no owner, but only %d are reported as orphaned: %v", len(orphans), member, reported, orphans)})
		}
	}
	return found
}

// represented reports whether the host has a VolumeSnapshotContent for a snapshot at the end of the
// run.
func (e Evidence) represented(member string, taken ledger.Entry) bool {
	return slices.ContainsFunc(e.Live, func(s Sighting) bool {
		content, ok := s.Object.(*snapshotv1.VolumeSnapshotContent)
		return ok && s.Cluster == e.Host && content.Spec.Driver == v1alpha1.ProvisionerName && represents(content, e.IDs[member], taken)
	})
}

// forgottenSnapshot reports whether the member was restored to a state before the snapshot was
// taken, so that only its driver has a record of the snapshot.
func (e Evidence) forgottenSnapshot(member string, taken ledger.Entry) bool {
	return e.Restored != nil && e.Restored.Cluster == member && !slices.ContainsFunc(e.Live, func(s Sighting) bool {
		_, ok := s.Object.(*snapshotv1.VolumeSnapshotContent)
		return ok && s.Cluster == member && s.Object.GetName() == taken.ContentName
	})
}

// snapshotsNotLost checks I2 for snapshots in the ledger: each destroyed snapshot was proven to be
// no longer needed.
func snapshotsNotLost(e Evidence, h *history) []Violation {
	var found []Violation
	for _, member := range slices.Sorted(maps.Keys(e.Ledgers)) {
		taken := map[string]ledger.Entry{}
		for _, entry := range e.Ledgers[member].Entries {
			switch {
			case entry.Method == ledger.CreateSnapshot && entry.SnapshotID != "":
				taken[entry.SnapshotID] = entry
			case entry.Method == ledger.DeleteSnapshot && entry.Done() && !entry.Time.Before(e.Began):
				snapshot := taken[entry.SnapshotID]
				if snapshot.ClaimNamespace != e.Namespace {
					continue
				}
				if why := h.snapshotLost(e, member, snapshot, entry.Time); why != "" {
					found = append(found, Violation{"I2", "snapshots", fmt.Sprintf("snapshot %s of %s in %s was destroyed at %s: %s",
						entry.SnapshotID, snapshot.VolumeSnapshot, member, entry.Time.Format(time.StampMilli), why)})
				}
			}
		}
	}
	return found
}

// contentsPutToDelete checks I2 before a snapshot is destroyed: changing a leaf content's policy
// from Retain to Delete needs the same proof as destroying the snapshot.
func contentsPutToDelete(e Evidence, h *history) []Violation {
	var found []Violation
	for where, states := range h.leafContents {
		for _, s := range putToDelete(states) {
			ref := s.obj.Spec.VolumeSnapshotRef
			if ref.Namespace != e.Namespace {
				continue
			}
			taken := ledger.Entry{ContentName: where.name, VolumeSnapshot: ref.Namespace + "/" + ref.Name}
			if why := h.snapshotLost(e, where.cluster, taken, s.time); why != "" {
				found = append(found, Violation{"I2", "contents", fmt.Sprintf("leaf content %s in %s was set to Delete: %s", where.name, where.cluster, why)})
			}
		}
	}
	return found
}

// putToDelete returns the states of a stamped content whose policy had just changed from Retain
// to Delete.
func putToDelete(states []contentAt) []contentAt {
	var all []contentAt
	held := false
	for i, s := range states {
		if i > 0 && states[i-1].obj.UID != s.obj.UID {
			held = false // another content was created with the same name
		}
		retain := s.obj.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain
		if held && !retain && !s.gone {
			all = append(all, s)
		}
		held = retain && s.obj.Labels[v1alpha1.LabelHost] != ""
	}
	return all
}

// snapshotLost checks the proof that a snapshot could be destroyed at the given time: its host
// content was being deleted with policy Delete, its VolumeSnapshot was deleted or being deleted,
// and the member's policy was Delete. It returns the part that was missing, or "".
func (h *history) snapshotLost(e Evidence, member string, taken ledger.Entry, when time.Time) string {
	leaf := h.leafContents[place{member, taken.ContentName}]
	if len(leaf) > 0 && leaf[0].obj.Labels[v1alpha1.LabelHost] == "" && leaf[0].obj.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
		return "the member's policy was Retain"
	}
	contents := h.contentsOf(e.IDs[member], taken, leaf, when)
	if len(contents) == 0 {
		return "the host never had a content for the snapshot"
	}
	for _, states := range contents {
		if why := h.contentWanted(states, when); why != "" {
			return why
		}
	}
	return ""
}

// contentsOf returns the host contents that ever represented a snapshot: those with its handle or,
// if none has it, the VolumeSnapshot's last content when the leaf content was created.
func (h *history) contentsOf(id string, taken ledger.Entry, leaf []contentAt, when time.Time) [][]contentAt {
	made := when
	if len(leaf) > 0 {
		made = leaf[0].time
	}
	var handled [][]contentAt
	var last []contentAt
	for _, states := range h.contents {
		first := states[0]
		switch {
		case slices.ContainsFunc(states, func(s contentAt) bool { return handleOf(s.obj) == id+"/"+taken.ContentName }):
			handled = append(handled, states)
		case !slices.ContainsFunc(states, func(s contentAt) bool { return handleOf(s.obj) == "" && represents(s.obj, id, taken) }):
		case first.time.Before(made.Add(lag)) && (last == nil || last[0].time.Before(first.time)):
			last = states
		}
	}
	if len(handled) > 0 || last == nil {
		return handled
	}
	return [][]contentAt{last}
}

// contentWanted checks the proof that a host content was no longer wanted at the given time. It
// returns the part that was missing, or "".
func (h *history) contentWanted(states []contentAt, when time.Time) string {
	state, known := before(states, when.Add(lag))
	if !known {
		return ""
	}
	content := state.obj
	ref := content.Spec.VolumeSnapshotRef
	switch {
	case content.DeletionTimestamp == nil && !state.gone:
		return fmt.Sprintf("host content %s was not being deleted", content.Name)
	case content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete:
		return fmt.Sprintf("host content %s had policy %s", content.Name, content.Spec.DeletionPolicy)
	case !h.snapshotEnded(ref.UID, when):
		return fmt.Sprintf("VolumeSnapshot %s/%s existed", ref.Namespace, ref.Name)
	}
	return ""
}

// snapshotEnded reports whether a VolumeSnapshot in the host was gone or being deleted by the given
// time.
func (h *history) snapshotEnded(uid types.UID, when time.Time) bool {
	return slices.ContainsFunc(h.snapshots[uid], func(s snapshotAt) bool {
		return (s.gone || s.obj.DeletionTimestamp != nil) && !s.time.After(when.Add(lag))
	})
}

// takenOnce checks I3 for snapshots: a host content never represents two snapshots.
func takenOnce(e Evidence, h *history) []Violation {
	var found []Violation
	for _, states := range h.contents {
		handles := map[string]bool{}
		for _, s := range states {
			if handle := handleOf(s.obj); handle != "" {
				handles[handle] = true
			}
		}
		if content := states[0].obj; len(handles) > 1 && content.Spec.VolumeSnapshotRef.Namespace == e.Namespace {
			found = append(found, Violation{"I3", "snapshots", fmt.Sprintf("host content %s represented %v", content.Name, slices.Sorted(maps.Keys(handles)))})
		}
	}
	return found
}
