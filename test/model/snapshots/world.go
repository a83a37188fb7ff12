package snapshots

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/test/model/api"
)

const (
	// roots is the maximum number of successive VolumeSnapshots with the same name in the host.
	// leaves is the same for the member.
	roots  = 2
	leaves = 3
)

// The slots of a world's objects: in the host, the VolumeSnapshot and the content of each root; in
// the member, the same for each leaf.
const (
	root = iota
	content
	leaf        = content + roots
	leafContent = leaf + 1
	slots       = leafContent + leaves
)

// kind is the kind of object whose cache is stale.
type kind uint8

const (
	none kind = iota
	rootSnapshots
	rootContents
	leafSnapshots
	leafContents
)

func (k kind) String() string {
	return [...]string{"", " (its cache of VolumeSnapshots is stale)", " (its cache of host contents is stale)", " (its cache of leaf VolumeSnapshots is stale)", " (its cache of leaf contents is stale)"}[k]
}

// of returns the range of a kind's slots.
func (k kind) of() (from, to int) {
	switch k {
	case rootSnapshots:
		return root, content
	case rootContents:
		return content, leaf
	case leafSnapshots:
		return leaf, leafContent
	case leafContents:
		return leafContent, slots
	case none:
	}
	return 0, 0
}

func rootUID(n int) types.UID { return types.UID("r" + strconv.Itoa(n+1)) }
func leafUID(n int) types.UID { return types.UID("l" + strconv.Itoa(n+1)) }

// nameOf returns the name of the object in a slot.
func nameOf(slot int) string {
	switch {
	case slot == root, slot == leaf:
		return snapshotName
	case slot < leaf:
		return mirrorsnapshot.ContentName(rootUID(slot - content))
	}
	return mirrorsnapshot.ContentName(leafUID(slot - leafContent))
}

// restoredCluster is the cluster with a restore that waits for an admin's confirmation.
type restoredCluster uint8

const (
	neither restoredCluster = iota
	theMember
	theHost
)

// id identifies an object in a certain state. It is also the resourceVersion. 0 means no object.
type id int32

type state [slots]id

// policy is the policy of a class.
type policy uint8

const (
	deletes policy = iota
	retains
)

func (p policy) String() string { return string(p.of()) }

func (p policy) of() snapshotv1.DeletionPolicy {
	return [...]snapshotv1.DeletionPolicy{snapshotv1.VolumeSnapshotContentDelete, snapshotv1.VolumeSnapshotContentRetain}[p]
}

// world is the complete state. It is comparable, so that equal worlds are visited only once.
type world struct {
	state
	hostPolicy, leafPolicy policy // policies of the classes
	// data reports whether the data of each leaf content exists.
	data [leaves]bool
	// of is the root of each leaf, counted from 1, or 0 if the leaf never existed.
	of [leaves]uint8
	// made is the number of roots created so far.
	made uint8
	// theirs reports whether a member's admin deleted an object, or a cluster was restored. Later
	// leaks and losses are not Xylem's fault.
	theirs bool
	// armed reports whether a member's admin set a leaf content to Delete. The member may delete the content
	// before Xylem sets it to Retain again, and Xylem does not correct it if no host content represents it.
	armed bool
	// givenUp reports whether an admin of the host abandoned a snapshot or removed its content, and
	// kept whether an admin set a content to Retain.
	givenUp, kept bool

	suspended restoredCluster
	backup    state
	backedUp  restoredCluster

	lagging kind
	stale   state // what the lagging cache shows

	// restoring reports whether a claim in the host is being restored from the VolumeSnapshot.
	restoring bool
	// promised is the number of the root from which a claim that is Bound to a promise without a disk must
	// still be restored, counted from 1, or 0.
	promised uint8

	// stopped reports whether the member's snapshot-controller and csi-snapshotter do not run.
	stopped bool

	budget uint8 // remaining disruptions
}

// seen returns the state that the caches show.
func (w *world) seen() state {
	s := w.state
	from, to := w.lagging.of()
	copy(s[from:to], w.stale[from:to])
	return s
}

// objects contains all objects that were ever created, by id. They never change.
type objects struct {
	mu  sync.RWMutex
	ids map[string]id
	all []client.Object
}

// keep stores an object and returns its id, or 0 for nil. The caller must not modify the object
// afterwards.
func (o *objects) keep(obj client.Object) id {
	obj.SetResourceVersion("")
	bytes, err := json.Marshal(obj) // Marshal sorts map keys
	if err != nil {
		panic(err)
	}
	key := fmt.Sprintf("%T%s", obj, bytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.ids[key]; ok {
		return known
	}
	o.all = append(o.all, obj)
	made := id(len(o.all)) //nolint:gosec // memory ends before
	o.ids[key] = made
	obj.SetResourceVersion(strconv.Itoa(int(made)))
	return made
}

// object returns the object with the given id, or nil for 0. Do not modify it.
func (o *objects) object(i id) client.Object {
	if i == 0 {
		return nil
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.all[i-1]
}

// snapshot returns the VolumeSnapshot in a slot, or nil.
func (m *Model) snapshot(s state, slot int) *snapshotv1.VolumeSnapshot {
	snapshot, _ := m.objects.object(s[slot]).(*snapshotv1.VolumeSnapshot)
	return snapshot
}

// content returns the content in a slot, or nil.
func (m *Model) content(s state, slot int) *snapshotv1.VolumeSnapshotContent {
	content, _ := m.objects.object(s[slot]).(*snapshotv1.VolumeSnapshotContent)
	return content
}

// left returns the id of an object after a write, or 0 if the object was deleted and has no
// finalizers.
func (m *Model) left(obj client.Object) id {
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		return 0
	}
	return m.objects.keep(obj)
}

// change applies a change to the object in a slot.
func change[T client.Object](m *Model, w *world, slot int, do func(T)) {
	obj := api.As[T](m.objects.object(w.state[slot]).DeepCopyObject())
	do(obj)
	w.state[slot] = m.left(obj)
}

func delet(obj client.Object) {
	if obj.GetDeletionTimestamp() == nil {
		obj.SetDeletionTimestamp(&deleted)
	}
}

// unusedUID returns a UID that no object in a world, its backup or its caches has.
func (m *Model) unusedUID(w *world, prefix string) types.UID {
	var used []types.UID
	for _, s := range []state{w.state, w.backup, w.stale} {
		for _, i := range s {
			if obj := m.objects.object(i); obj != nil {
				used = append(used, obj.GetUID())
				for _, value := range obj.GetAnnotations() {
					used = append(used, types.UID(value))
				}
			}
		}
	}
	for n := 1; ; n++ {
		if uid := types.UID(prefix + "-" + strconv.Itoa(n)); !slices.Contains(used, uid) {
			return uid
		}
	}
}

// describe describes a world in a trace.
func (m *Model) describe(w world) string {
	var parts []string
	for slot, i := range w.state {
		side := "host"
		if slot >= leaf {
			side = "leaf"
		}
		switch obj := m.objects.object(i).(type) {
		case *snapshotv1.VolumeSnapshot:
			status, _ := json.Marshal(obj.Status)
			parts = append(parts, fmt.Sprintf("%s VolumeSnapshot %s%s: %s", side, obj.UID, deleting(obj), status))
		case *snapshotv1.VolumeSnapshotContent:
			status, _ := json.Marshal(obj.Status)
			parts = append(parts, fmt.Sprintf("%s %s (%s)%s: %s, finalizers %d, %v: %s", side, obj.Name, obj.UID, deleting(obj), obj.Spec.DeletionPolicy, len(obj.Finalizers), obj.Annotations, status))
		}
	}
	parts = append(parts, fmt.Sprintf("data %v; policies of the classes: %s and %s; restore to be confirmed: %v", w.data, w.hostPolicy, w.leafPolicy, w.suspended != neither))
	return strings.Join(parts, "\n    ")
}

func deleting(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return ", deleting"
}

var (
	made    = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	deleted = metav1.NewTime(made.Add(age))
)

// age is the age of every object.
const age = time.Hour
