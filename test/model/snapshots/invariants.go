package snapshots

import (
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/test/model/api"
)

// numberOf returns the number, counted from 1, of the root with this UID, or 0 if no root has it.
func numberOf(uid types.UID) uint8 {
	for n := range roots {
		if rootUID(n) == uid {
			return uint8(n + 1)
		}
	}
	return 0
}

// violations returns the invariants that a write violates. w is the world before the write.
func (m *Model) violations(w world, slot int, before, after client.Object) []string {
	switch {
	case before == nil:
		return m.leafMade(w, after)
	case slot == leaf && before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil:
		return m.leafDeleted(w, before)
	case slot >= leafContent:
		was, is := api.As[*snapshotv1.VolumeSnapshotContent](before), api.As[*snapshotv1.VolumeSnapshotContent](after)
		if mirrorsnapshot.IsContentRetained(was) && !mirrorsnapshot.IsContentRetained(is) || !mirrorsnapshot.IsContentRetained(is) && is.DeletionTimestamp != nil && was.DeletionTimestamp == nil {
			return m.destroyed(w, slot-leafContent)
		}
	}
	return nil
}

// leafMade checks that Xylem creates only one leaf for a root, and only after it has recorded the
// placement.
func (m *Model) leafMade(w world, made client.Object) []string {
	origin, _ := mirror.LeafOriginFromHost(here.HostID, made)
	number := numberOf(origin.UID)
	host := m.contentOfRoot(w, number)
	switch {
	case number == 0 || host == nil || mirrorsnapshot.ContentPlacedIn(host) != here.ClusterID:
		return []string{"I3: a leaf is created for a root whose content is not placed here"}
	case slices.Contains(w.of[:], number) && !w.theirs && !w.givenUp:
		return []string{"I3: a second leaf is created for one root"}
	}
	return nil
}

// contentOfRoot returns the host content of a root, or nil.
func (m *Model) contentOfRoot(w world, number uint8) *snapshotv1.VolumeSnapshotContent {
	if number == 0 {
		return nil
	}
	return m.content(w.state, content+int(number)-1)
}

// leafDeleted checks the deletion of a leaf. If its content has policy Delete, the data is
// destroyed too.
func (m *Model) leafDeleted(w world, was client.Object) []string {
	n := slices.IndexFunc([]int{0, 1, 2}, func(n int) bool { return leafUID(n) == was.GetUID() })
	if n < 0 {
		return []string{"the deleted object is not a leaf"}
	}
	root := m.snapshot(w.state, root)
	if root != nil && root.DeletionTimestamp == nil && numberOf(root.UID) == w.of[n] {
		return []string{"I2: the leaf of an existing root is deleted"}
	}
	if c := m.content(w.state, leafContent+n); c != nil && !mirrorsnapshot.IsContentRetained(c) {
		return m.destroyed(w, n)
	}
	return nil
}

// destroyed returns why the data of a leaf content must not be destroyed (I2).
func (m *Model) destroyed(w world, n int) []string {
	c, host, root := m.content(w.state, leafContent+n), m.contentOfRoot(w, w.of[n]), m.snapshot(w.state, root)
	if c == nil {
		return nil
	}
	var found []string
	if w.suspended != neither {
		found = append(found, "I2: data is destroyed while destruction is suspended")
	}
	switch {
	case host == nil:
		found = append(found, "I2: data is destroyed although the host has no content for it")
	case host.DeletionTimestamp == nil:
		found = append(found, "I2: data is destroyed although its host content is not being deleted")
	case host.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete:
		found = append(found, "I2: data is destroyed although the host retains it")
	case mirrorsnapshot.IsAbandonedSnapshot(host):
		found = append(found, "I2: abandoned data is destroyed")
	case mirrorsnapshot.SnapshotHandleOf(c) == strangers:
		found = append(found, "I8: foreign data is destroyed")
	}
	if policy := mirrorsnapshot.MemberDeletionPolicy(c); policy != snapshotv1.VolumeSnapshotContentDelete && (policy != "" || w.leafPolicy != deletes) {
		found = append(found, fmt.Sprintf("I2: data is destroyed although the member retains it (%q)", policy))
	}
	if root != nil && root.DeletionTimestamp == nil && numberOf(root.UID) == w.of[n] {
		found = append(found, "I2: an existing root's data is destroyed")
	}
	if w.promised != 0 && w.promised == w.of[n] {
		found = append(found, "I2: data is destroyed from which a claim must still be restored")
	}
	return found
}

// unsettled returns what is wrong in a world without moves.
func (m *Model) unsettled(w world) []string {
	var found []string
	if s := m.snapshot(w.state, root); s != nil {
		host := m.contentOfRoot(w, numberOf(s.UID))
		there := m.snapshot(w.state, leaf)
		switch {
		case s.DeletionTimestamp != nil:
			found = append(found, "the VolumeSnapshot is not deleted")
		case m.SilentAfter > age && there != nil && mirror.StampedRootUID(there) != "" && mirror.StampedRootUID(there) != s.UID:
			// This model does not wait until the report that an earlier root's leaf has its name.
		case host == nil, host.Status == nil, !ptr.Deref(host.Status.ReadyToUse, false), !ready(s):
			found = append(found, "the VolumeSnapshot is not ready")
		case !slices.Contains(w.living(), numberOf(s.UID)) && !w.theirs:
			found = append(found, "the VolumeSnapshot is ready, but its data does not exist")
		}
	}
	for n := range roots {
		c, s := m.content(w.state, content+n), m.snapshot(w.state, root)
		// If a user deletes the content, the snapshot-controller waits for the VolumeSnapshot's
		// deletion.
		if lives := s != nil && s.UID == rootUID(n) && s.DeletionTimestamp == nil; c != nil && c.DeletionTimestamp != nil && !lives {
			found = append(found, "a host content is not deleted")
		}
	}
	return append(found, m.leftInMember(w)...)
}

// exposed returns what is wrong if a leaf content that must be kept has policy Delete in a world without
// moves. Xylem does not secure a content before the csi-snapshotter has begun, nor one that replaced the
// recorded content, nor one whose host content an admin removed with its finalizers.
func (m *Model) exposed(w world) []string {
	var found []string
	for n := range leaves {
		c, host := m.content(w.state, leafContent+n), m.contentOfRoot(w, w.of[n])
		if c == nil || host == nil || mirrorsnapshot.IsContentRetained(c) || !mirrorsnapshot.HasSnapshotBegun(c) || mirrorsnapshot.IsAbandonedSnapshot(host) || mirrorsnapshot.ContentPlacedIn(host) == "" {
			continue
		}
		if record := mirrorsnapshot.ContentRecordOf(host); record.Content != "" && record.Content != c.UID || mirrorsnapshot.SnapshotHandleOf(c) == strangers {
			continue
		}
		if s := m.snapshot(w.state, root); host.DeletionTimestamp == nil || !mirrorsnapshot.IsSnapshotBeingDeleted(host) || s != nil && numberOf(s.UID) == w.of[n] && s.DeletionTimestamp == nil {
			found = append(found, "a leaf content that must be kept has policy Delete")
		}
	}
	return found
}

// lost reports whether the VolumeSnapshot exists, but the member lacks its recorded content or leaf, and
// Xylem has not been asked to destroy or keep it.
func (m *Model) lost(w world) bool {
	s := m.snapshot(w.state, root)
	if s == nil {
		return false
	}
	host, there := m.contentOfRoot(w, numberOf(s.UID)), m.snapshot(w.state, leaf)
	if host == nil || host.DeletionTimestamp != nil && mirrorsnapshot.IsSnapshotBeingDeleted(host) {
		return false
	}
	record := mirrorsnapshot.ContentRecordOf(host)
	contentGone := record.Content != "" && !slices.ContainsFunc([]int{0, 1, 2}, func(n int) bool {
		c := m.content(w.state, leafContent+n)
		return c != nil && c.UID == record.Content
	})
	return contentGone || record.Snapshot != "" && (there == nil || there.UID != record.Snapshot)
}

// living returns the roots whose data exists.
func (w *world) living() []uint8 {
	var found []uint8
	for n, there := range w.data {
		if there {
			found = append(found, w.of[n])
		}
	}
	return found
}

// leftInMember reports leftovers of deleted roots, and data that no object represents.
func (m *Model) leftInMember(w world) []string {
	var found []string
	// If the host's admin removed a content with its finalizers, the member's admin decides what happens to
	// the orphan.
	decided := w.theirs && w.givenUp
	if s := m.snapshot(w.state, leaf); s != nil && len(s.Labels) > 0 && !decided { // without its stamp, it is the member's own
		n := slices.IndexFunc([]int{0, 1, 2}, func(n int) bool { return leafUID(n) == s.UID })
		if r := m.snapshot(w.state, root); (r == nil || n < 0 || numberOf(r.UID) != w.of[n]) && m.contentOfRoot(w, w.of[max(n, 0)]) == nil {
			found = append(found, "a leaf VolumeSnapshot is left behind")
		}
	}
	for n, there := range w.data {
		c, host := m.content(w.state, leafContent+n), m.contentOfRoot(w, w.of[n])
		switch {
		case host != nil:
		case c == nil:
			if there && !w.theirs && !w.kept && !w.armed {
				found = append(found, "I1: unrecorded data is left")
			}
		default:
			found = append(found, m.orphan(w, c, there, decided)...)
		}
	}
	return found
}

// orphan returns what is wrong with a leaf content that lacks a host content.
func (m *Model) orphan(w world, c *snapshotv1.VolumeSnapshotContent, there, decided bool) []string {
	var found []string
	if _, ours := mirror.LeafOriginFromHost(here.HostID, c); there && !ours && !w.theirs {
		found = append(found, "I1: data is left without a stamp, so it cannot be counted")
	}
	if c.DeletionTimestamp == nil && !mirrorsnapshot.IsContentRetained(c) && !decided && !w.armed {
		found = append(found, "I1: an orphan lacks policy Retain")
	}
	if both := w.hostPolicy == deletes && w.leafPolicy == deletes; both && there && !w.theirs && !w.givenUp && !w.kept {
		found = append(found, "I1: data is left although both classes have policy Delete")
	}
	return found
}
