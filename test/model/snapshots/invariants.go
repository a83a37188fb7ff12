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
)

// numberOf a root by its UID, from 1; 0: it is none.
func numberOf(uid types.UID) uint8 {
	for n := range roots {
		if rootUID(n) == uid {
			return uint8(n + 1)
		}
	}
	return 0
}

// violations of the invariants by a write, in the world before it.
func (m *Model) violations(w world, slot int, before, after client.Object) []string {
	switch {
	case before == nil:
		return m.leafMade(w, after)
	case slot == leaf && before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil:
		return m.leafDeleted(w, before)
	case slot >= leafContent:
		was, is := as[*snapshotv1.VolumeSnapshotContent](before), as[*snapshotv1.VolumeSnapshotContent](after)
		if mirrorsnapshot.Retained(was) && !mirrorsnapshot.Retained(is) || !mirrorsnapshot.Retained(is) && is.DeletionTimestamp != nil && was.DeletionTimestamp == nil {
			return m.destroyed(w, slot-leafContent)
		}
	}
	return nil
}

// leafMade: a leaf is made for a root once, and only where it is recorded first.
func (m *Model) leafMade(w world, made client.Object) []string {
	origin, _ := mirror.OriginIn(here.HostID, made)
	number := numberOf(origin.UID)
	host := m.contentOfRoot(w, number)
	switch {
	case number == 0 || host == nil || mirrorsnapshot.PlacedIn(host) != here.ClusterID:
		return []string{"I3: a leaf is made for a root whose content is not placed here"}
	case slices.Contains(w.of[:], number) && !w.theirs && !w.givenUp:
		return []string{"I3: a second leaf is made for one root"}
	}
	return nil
}

// contentOfRoot is the host's content of a root; nil if there is none.
func (m *Model) contentOfRoot(w world, number uint8) *snapshotv1.VolumeSnapshotContent {
	if number == 0 {
		return nil
	}
	return m.content(w.state, content+int(number)-1)
}

// leafDeleted: its content goes with it, if that is at Delete.
func (m *Model) leafDeleted(w world, was client.Object) []string {
	n := slices.IndexFunc([]int{0, 1, 2}, func(n int) bool { return leafUID(n) == was.GetUID() })
	if n < 0 {
		return []string{"a leaf is deleted that is none"}
	}
	root := m.snapshot(w.state, root)
	if root != nil && root.DeletionTimestamp == nil && numberOf(root.UID) == w.of[n] {
		return []string{"I2: the leaf of a living root is deleted"}
	}
	if c := m.content(w.state, leafContent+n); c != nil && !mirrorsnapshot.Retained(c) {
		return m.destroyed(w, n)
	}
	return nil
}

// destroyed says why the data of a leaf content are not to be destroyed: I2.
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
		found = append(found, "I2: data is destroyed of which the host has no content")
	case host.DeletionTimestamp == nil:
		found = append(found, "I2: data is destroyed whose host content is not being deleted")
	case host.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete:
		found = append(found, "I2: data is destroyed that the host retains")
	case mirrorsnapshot.Abandoned(host):
		found = append(found, "I2: data are destroyed that were abandoned")
	case mirrorsnapshot.HandleOf(c) == strangers:
		found = append(found, "I8: a stranger's data are destroyed")
	}
	if policy := mirrorsnapshot.Policy(c); policy != snapshotv1.VolumeSnapshotContentDelete && (policy != "" || w.leafPolicy != deletes) {
		found = append(found, fmt.Sprintf("I2: data is destroyed that the member retains (%q)", policy))
	}
	if root != nil && root.DeletionTimestamp == nil && numberOf(root.UID) == w.of[n] {
		found = append(found, "I2: data is destroyed of a living root")
	}
	return found
}

// unsettled is what is not as it should be in a world in which nothing moves.
func (m *Model) unsettled(w world) []string {
	var found []string
	if s := m.snapshot(w.state, root); s != nil {
		host := m.contentOfRoot(w, numberOf(s.UID))
		switch {
		case s.DeletionTimestamp != nil:
			found = append(found, "the VolumeSnapshot is not deleted")
		case host == nil, host.Status == nil, !ptr.Deref(host.Status.ReadyToUse, false), !ready(s):
			found = append(found, "the VolumeSnapshot is not ready")
		case !slices.Contains(w.living(), numberOf(s.UID)) && !w.theirs:
			found = append(found, "the VolumeSnapshot is ready, and there are no data")
		}
	}
	for n := range roots {
		c, s := m.content(w.state, content+n), m.snapshot(w.state, root)
		// The snapshot-controller's own deletion waits for the VolumeSnapshot's, too.
		if lives := s != nil && s.UID == rootUID(n) && s.DeletionTimestamp == nil; c != nil && c.DeletionTimestamp != nil && !lives {
			found = append(found, "a host content is not deleted")
		}
	}
	return append(found, m.leftInMember(w)...)
}

// living are the roots whose data still exists.
func (w *world) living() []uint8 {
	var found []uint8
	for n, there := range w.data {
		if there {
			found = append(found, w.of[n])
		}
	}
	return found
}

// leftInMember is what is left there of roots that have ended, and data that nobody can count.
func (m *Model) leftInMember(w world) []string {
	var found []string
	if s := m.snapshot(w.state, leaf); s != nil {
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
			if there && !w.theirs && !w.kept {
				found = append(found, "I1: data is left that nobody knows of")
			}
		default:
			found = append(found, m.orphan(w, c, there)...)
		}
	}
	return found
}

// orphan is what is wrong with a leaf content that no content of the host represents.
func (m *Model) orphan(w world, c *snapshotv1.VolumeSnapshotContent, there bool) []string {
	var found []string
	if _, ours := mirror.OriginIn(here.HostID, c); there && !ours && !w.theirs {
		found = append(found, "I1: data is left that nobody counts")
	}
	if c.DeletionTimestamp == nil && !mirrorsnapshot.Retained(c) {
		found = append(found, "I1: an orphan is not held")
	}
	if both := w.hostPolicy == deletes && w.leafPolicy == deletes; both && there && !w.theirs && !w.givenUp && !w.kept {
		found = append(found, "I1: data is left that both classes delete")
	}
	return found
}
