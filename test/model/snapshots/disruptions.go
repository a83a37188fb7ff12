package snapshots

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// strangers is the handle of a foreign snapshot.
const strangers = "snapshot-of-a-stranger"

// disruptions returns the actions of users and admins, and the failures of clusters and caches.
// Moves that end a disruption do not count against the budget.
func (m *Model) disruptions(w world) []move {
	ms := &moves{model: m, from: w}
	if w.lagging != none {
		ms.add("the cache catches up", func(w *world) { w.lagging, w.stale = none, state{} })
	}
	if w.restoring {
		ms.add("the restore is complete", func(w *world) { w.restoring = false })
	}
	if w.promised != 0 {
		ms.add("the promise has its disk, or its claim is deleted", func(w *world) { w.promised = 0 })
	}
	if w.suspended != neither {
		ms.add("an admin confirms the restore", func(w *world) { w.suspended = neither })
	}
	if w.stopped {
		ms.add("the member's snapshot-controller and csi-snapshotter start", func(w *world) { w.stopped = false })
	}
	if w.budget == 0 {
		return ms.all
	}
	ms.from.budget--
	ms.ofUsers()
	ms.ofHostAdmins()
	ms.ofMemberAdmins()
	ms.ofClusters()
	ms.ofSnapshotters()
	if w.lagging == none {
		for k := rootSnapshots; k <= leafContents; k++ {
			ms.add("a cache becomes stale"+k.String(), func(w *world) {
				from, to := k.of()
				w.lagging = k
				copy(w.stale[from:to], w.state[from:to])
			})
		}
	}
	return ms.all
}

func (ms *moves) ofUsers() {
	m, s := ms.model, ms.model.snapshot(ms.from.state, root)
	switch {
	case s != nil && s.DeletionTimestamp == nil:
		if ready(s) && m.SilentAfter > age {
			ms.add("a claim is restored from the VolumeSnapshot", func(w *world) { w.restoring = true })
			ms.add("a claim that must be restored from the VolumeSnapshot is bound to a promise", func(w *world) { w.promised = numberOf(s.UID) })
		}
		ms.add("the user deletes the VolumeSnapshot", func(w *world) {
			change(m, w, root, func(s *snapshotv1.VolumeSnapshot) { delet(s) })
		})
	case s == nil && ms.from.made < roots:
		ms.add("the user creates another VolumeSnapshot with the same name", func(w *world) {
			w.state[root] = m.objects.keep(newSnapshot(rootUID(int(w.made))))
			w.made++
		})
	}
}

func (ms *moves) ofHostAdmins() {
	m := ms.model
	if s := m.snapshot(ms.from.state, root); ms.from.restoring && s != nil && s.DeletionTimestamp != nil {
		ms.add("somebody changes the content, so the host's snapshot-controller announces the deletion during the restore", func(w *world) {
			if slot := content + int(numberOf(s.UID)) - 1; w.state[slot] != 0 {
				announce(m, w, slot)
			}
		})
	}
	for slot := content; slot < leaf; slot++ {
		c := m.content(ms.from.state, slot)
		if c == nil {
			continue
		}
		policy := func(to snapshotv1.DeletionPolicy) {
			ms.add("the host's admin sets a content to "+string(to), func(w *world) {
				w.kept = w.kept || to == snapshotv1.VolumeSnapshotContentRetain
				change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.DeletionPolicy = to })
			})
		}
		policy(snapshotv1.VolumeSnapshotContentDelete)
		policy(snapshotv1.VolumeSnapshotContentRetain)
		if c.DeletionTimestamp == nil {
			ms.add("the host's admin deletes a content", func(w *world) {
				change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { delet(c) })
			})
		}
		ms.add("the host's admin deletes a content with its finalizers", func(w *world) { w.state[slot], w.givenUp = 0, true })
		ms.add("the host's admin abandons a snapshot", func(w *world) {
			w.givenUp = true
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
			})
		})
	}
}

func (ms *moves) ofMemberAdmins() {
	m := ms.model
	for slot := leaf; slot < slots; slot++ {
		obj := m.objects.object(ms.from.state[slot])
		if obj == nil || obj.GetDeletionTimestamp() != nil {
			continue
		}
		what := "a leaf content"
		if slot == leaf {
			what = "the leaf VolumeSnapshot"
		}
		ms.add("the member's admin deletes "+what, func(w *world) {
			w.theirs = true
			change(m, w, slot, func(obj client.Object) { delet(obj) })
		})
		// Before the host records the leaf's UID, only the stamp identifies it.
		if host := m.contentOfRoot(ms.from, numberOf(mirror.StampedRootUID(obj))); slot == leaf && host != nil && mirrorsnapshot.ContentRecordOf(host).Snapshot == obj.GetUID() {
			ms.add("the member's admin removes the stamp of the leaf VolumeSnapshot", func(w *world) {
				w.theirs = true
				change(m, w, slot, func(s *snapshotv1.VolumeSnapshot) { s.Labels, s.Annotations = nil, nil })
			})
		}
		if slot != leaf {
			ms.ofPolicies(slot)
			ms.add("the member's admin deletes "+what+" with its finalizers", func(w *world) { w.state[slot], w.theirs = 0, true })
			ms.ofHandles(slot)
		}
	}
}

// ofHandles makes the move of a member's admin who forges the handle of a leaf content. The move is
// possible only after the host has recorded the driver's handle, because until then, Xylem cannot
// recognize a forged one.
func (ms *moves) ofHandles(slot int) {
	m := ms.model
	host := m.contentOfRoot(ms.from, ms.from.of[slot-leafContent])
	if host == nil || mirrorsnapshot.ContentRecordOf(host).Handle == "" || mirrorsnapshot.SnapshotHandleOf(m.content(ms.from.state, slot)) == "" {
		return
	}
	ms.add("the member's admin gives a leaf content the handle of a foreign snapshot", func(w *world) {
		w.theirs = true
		change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { c.Status.SnapshotHandle = ptr.To(strangers) })
	})
}

// ofPolicies makes the move of a member's admin who sets a leaf content that Xylem retains to Delete.
// Xylem sets it back. A content that is being destroyed has this policy anyway, and the admin decides
// on an orphan.
func (ms *moves) ofPolicies(slot int) {
	c, host := ms.model.content(ms.from.state, slot), ms.model.contentOfRoot(ms.from, ms.from.of[slot-leafContent])
	if host == nil || !mirrorsnapshot.IsContentRetained(c) || mirrorsnapshot.MemberDeletionPolicy(c) == "" {
		return
	}
	ms.add("the member's admin sets a leaf content to Delete", func(w *world) {
		w.armed = true
		change(ms.model, w, slot, func(c *snapshotv1.VolumeSnapshotContent) {
			c.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
		})
	})
}

// ofSnapshotters makes the move that stops the member's snapshot-controller and csi-snapshotter
// before the latter responds. Only a model in which silence is reported has it.
func (ms *moves) ofSnapshotters() {
	for n := range leaves {
		if c := ms.model.content(ms.from.state, leafContent+n); c != nil && (c.Status != nil || metav1.HasAnnotation(c.ObjectMeta, mirrorsnapshot.AnnBeingCreated)) {
			return
		}
	}
	if ms.model.SilentAfter < age {
		ms.add("the member's snapshot-controller and csi-snapshotter stop", func(w *world) { w.stopped = true })
	}
}

func (ms *moves) ofClusters() {
	for cluster, name := range map[restoredCluster]string{theHost: "host", theMember: "member"} {
		from, to := root, leaf
		if cluster == theMember {
			from, to = leaf, slots
		}
		if ms.from.backedUp == neither {
			ms.add("a backup of the "+name, func(w *world) {
				w.backedUp = cluster
				copy(w.backup[from:to], w.state[from:to])
			})
		}
		if ms.from.backedUp == cluster && ms.from.suspended == neither {
			ms.add("the "+name+" is restored", func(w *world) {
				copy(w.state[from:to], w.backup[from:to])
				w.backup, w.backedUp, w.suspended, w.theirs = state{}, neither, cluster, true
				w.lagging, w.stale = none, state{} // the manager restarts
			})
		}
	}
}
