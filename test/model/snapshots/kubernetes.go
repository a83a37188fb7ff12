package snapshots

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// finalizerSnapshot represents all the finalizers that a snapshot-controller adds to a
// VolumeSnapshot before it creates the content.
const finalizerSnapshot = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"

// move is a transition that Xylem does not cause.
type move struct {
	name string
	to   world
}

// moves collects the moves that change a world.
type moves struct {
	model *Model
	from  world
	all   []move
}

// add adds a move if it changes the world.
func (ms *moves) add(name string, do func(*world)) {
	to := ms.from
	do(&to)
	if to != ms.from {
		ms.all = append(ms.all, move{name, to})
	}
}

// newSnapshot returns a VolumeSnapshot like one that a user creates.
func newSnapshot(uid types.UID) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: snapshotName, UID: uid, CreationTimestamp: made, Finalizers: []string{finalizerSnapshot}},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claimName)}, VolumeSnapshotClassName: ptr.To(className),
		},
	}
}

// kubernetes returns the moves of the controllers of both clusters.
func (m *Model) kubernetes(w world) []move {
	ms := &moves{model: m, from: w}
	ms.controller("host", root, content, roots, w.hostPolicy.of())
	if w.stopped {
		return ms.all
	}
	ms.controller("member", leaf, leafContent, leaves, w.leafPolicy.of())
	for n := range leaves {
		ms.sidecar(n)
	}
	return ms.all
}

// controller makes the moves of a cluster's snapshot-controller.
func (ms *moves) controller(where string, at, contents, many int, policy snapshotv1.DeletionPolicy) {
	m, snapshot := ms.model, ms.model.snapshot(ms.from.state, at)
	if snapshot == nil {
		return
	}
	slot := -1
	for n := range many {
		if nameOf(contents+n) == mirrorsnapshot.ContentName(snapshot.UID) {
			slot = contents + n
		}
	}
	if slot < 0 {
		return
	}
	bound := m.content(ms.from.state, slot)
	if bound != nil && bound.Spec.VolumeSnapshotRef.UID != snapshot.UID {
		bound = nil
	}
	switch {
	case snapshot.DeletionTimestamp != nil:
		ms.ends(where, at, slot, bound)
	case ready(snapshot) && bound == nil:
		ms.add("the "+where+"'s snapshot-controller reports the missing content", func(w *world) {
			change(m, w, at, func(s *snapshotv1.VolumeSnapshot) {
				s.Status.ReadyToUse = ptr.To(false)
				s.Status.Error = &snapshotv1.VolumeSnapshotError{Message: ptr.To("VolumeSnapshotContent is missing")}
			})
		})
	case ready(snapshot):
		// The snapshot-controller no longer reads the content's status.
	case bound == nil:
		ms.add("the "+where+"'s snapshot-controller creates the content", func(w *world) {
			w.state[slot] = m.objects.keep(newContent(m, w, snapshot, at == root, policy))
		})
	default:
		ms.add("the "+where+"'s snapshot-controller binds the VolumeSnapshot, and shows its content's status", func(w *world) {
			change(m, w, at, func(s *snapshotv1.VolumeSnapshot) {
				if status := statusOf(bound); !equality.Semantic.DeepEqual(s.Status, status) {
					s.Status = status
				}
			})
		})
	}
}

// ends makes the moves for a VolumeSnapshot that is being deleted.
func (ms *moves) ends(where string, at, slot int, bound *snapshotv1.VolumeSnapshotContent) {
	m := ms.model
	switch {
	case bound != nil && at == root && ms.from.restoring:
		// The snapshot-controller protects the VolumeSnapshot until no claim is restored from it.
	case bound != nil && !mirrorsnapshot.IsSnapshotBeingDeleted(bound):
		ms.add("the "+where+"'s snapshot-controller announces the deletion", func(w *world) {
			announce(m, w, slot)
		})
	case bound != nil && bound.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete:
		ms.add("the "+where+"'s snapshot-controller deletes the content", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { delet(c) })
		})
	default:
		ms.add("the "+where+"'s snapshot-controller removes the finalizers of the VolumeSnapshot", func(w *world) {
			change(m, w, at, func(s *snapshotv1.VolumeSnapshot) { s.Finalizers = nil })
		})
	}
}

// announce annotates a content whose VolumeSnapshot is being deleted.
func announce(m *Model, w *world, slot int) {
	change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, mirrorsnapshot.AnnBeingDeleted, "yes")
	})
}

func ready(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.BoundVolumeSnapshotContentName != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

// statusOf returns the status that a VolumeSnapshot gets from its content.
func statusOf(c *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotStatus {
	status := &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To(c.Name), ReadyToUse: ptr.To(false)}
	if c.Status != nil {
		status.ReadyToUse, status.Error = ptr.To(ptr.Deref(c.Status.ReadyToUse, false)), c.Status.Error.DeepCopy()
	}
	return status
}

func newContent(m *Model, w *world, snapshot *snapshotv1.VolumeSnapshot, host bool, policy snapshotv1.DeletionPolicy) *snapshotv1.VolumeSnapshotContent {
	prefix := "leaf-content"
	c := &snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{
		Driver: driver, DeletionPolicy: policy, VolumeSnapshotClassName: ptr.To(className),
		VolumeSnapshotRef: corev1.ObjectReference{Namespace: namespace, Name: snapshotName, UID: snapshot.UID},
		Source:            snapshotv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To("disk-1")},
	}}
	if host {
		prefix, c.Spec.Driver = "content", v1alpha1.ProvisionerName
		c.Spec.Source.VolumeHandle = ptr.To(hostHandle)
	}
	c.Name, c.UID, c.CreationTimestamp = mirrorsnapshot.ContentName(snapshot.UID), m.unusedUID(w, prefix), made
	c.Finalizers = []string{mirrorsnapshot.FinalizerContent}
	return c
}

// hostHandle is the volume handle of the host PV.
var hostHandle = func() string {
	for _, obj := range fixedOf[hostSide] {
		if pv, ok := obj.(*corev1.PersistentVolume); ok {
			return pv.Spec.CSI.VolumeHandle
		}
	}
	panic("the host has no volume")
}()

// sidecar makes the moves of the member's csi-snapshotter and its driver for one leaf content.
func (ms *moves) sidecar(n int) {
	m, slot := ms.model, leafContent+n
	c := m.content(ms.from.state, slot)
	if c == nil {
		return
	}
	if ends := c.DeletionTimestamp != nil && !metav1.HasAnnotation(c.ObjectMeta, mirrorsnapshot.AnnBeingCreated) && mirrorsnapshot.IsSnapshotBeingDeleted(c); ends {
		if c.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete && c.Status != nil && c.Status.SnapshotHandle != nil {
			ms.add("the member's driver deletes the snapshot", func(w *world) {
				w.data[n] = false
				change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { c.Status.SnapshotHandle, c.Status.ReadyToUse = nil, nil })
			})
			return
		}
		ms.add("the member's csi-snapshotter removes the finalizers of the content", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { c.Finalizers = nil })
		})
		return
	}
	ms.takes(n, c)
}

// takes makes the moves of the csi-snapshotter and the driver until the snapshot is ready.
func (ms *moves) takes(n int, c *snapshotv1.VolumeSnapshotContent) {
	m, slot := ms.model, leafContent+n
	switch being := metav1.HasAnnotation(c.ObjectMeta, mirrorsnapshot.AnnBeingCreated); {
	case c.Status == nil && !being:
		ms.add("the member's csi-snapshotter begins to take the snapshot", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, mirrorsnapshot.AnnBeingCreated, "yes")
			})
		})
	case c.Status == nil && !ms.from.data[n]:
		ms.add("the member's driver takes the snapshot", func(w *world) { w.data[n] = true })
	case c.Status == nil:
		ms.add("the member's csi-snapshotter records the snapshot", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) {
				c.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr.To("snapshot-" + c.Name), ReadyToUse: ptr.To(false), RestoreSize: ptr.To[int64](1 << 30)}
			})
		})
	case being:
		ms.add("the member's csi-snapshotter finishes taking the snapshot", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { delete(c.Annotations, mirrorsnapshot.AnnBeingCreated) })
		})
	case c.DeletionTimestamp == nil && c.Status.SnapshotHandle != nil && !ptr.Deref(c.Status.ReadyToUse, false):
		ms.add("the snapshot is uploaded", func(w *world) {
			change(m, w, slot, func(c *snapshotv1.VolumeSnapshotContent) { c.Status.ReadyToUse = ptr.To(true) })
		})
	}
}
