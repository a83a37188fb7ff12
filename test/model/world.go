package model

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	// names is the maximum number of names that claims can have. The last one is the name of a move's copy.
	names = 3
	// made is the maximum number of leaf claims with volumes at the same time, each with its own name.
	made = 2
	// leaves is the maximum number of leaf PVs: the provisioned ones, and one that already existed in
	// the member.
	leaves = made + 1
	// hosts is the maximum number of host PVs, each with its own name.
	hosts = 2*leaves + 3
)

// The UIDs that objects can have. Unreferenced UIDs are reused.
var (
	rootUIDs  = []types.UID{"r1", "r2", "r3"}
	claimUIDs = [made]types.UID{"c1", "c2"}
	podUIDs   = []types.UID{"p1", "p2", "p3"}
)

// The names of leaf PVs, and of host PVs: first the leaf PVs' names, then the names that are used
// on conflicts, and last the names of promises.
var (
	leafNames = [leaves]string{leafName(claimUIDs[0]), leafName(claimUIDs[1]), handMade}
	hostNames = [hosts]string{
		leafNames[0], leafNames[1], handMade,
		hostpv.HostVolumeName(leafNames[0], here.ClusterID, true), hostpv.HostVolumeName(leafNames[1], here.ClusterID, true), hostpv.HostVolumeName(handMade, here.ClusterID, true),
		hostpv.PromiseName(rootUIDs[0]), hostpv.PromiseName(rootUIDs[1]), hostpv.PromiseName(rootUIDs[2]),
	}
)

// hostUIDs are the UIDs that host PVs can have, in the order of hostNames.
var hostUIDs = func() (uids [hosts][]types.UID) {
	for n, name := range hostNames {
		uids[n] = volumeUIDs("h", name)
	}
	return uids
}()

// hostState and memberState are the claim's objects in each cluster.
type hostState struct {
	roots [names]id // in the order of claimNames
	pvs   [hosts]id // in the order of hostNames
	pod   id        // the first claim's Pod

	snapshot snapshot // of the first claim
	moving   moving   // the move of the first claim
}

type memberState struct {
	claims [names]id  // in the order of claimNames
	pvs    [leaves]id // in the order of leafNames
}

// state is the state of both clusters, and of Xylem's process.
type state struct {
	hostState
	memberState
	second                       memberState // objects of the second member, if it is modeled
	suspended                    restoredCluster
	memberRestored, hostRestored bool
	hostPolicy, leafPolicy       policy // policies of the classes
	lacksHostClass               bool   // the class was deleted in the host
	lacksLeafClass               bool   // the class was deleted in the member
	mode                         mode   // mode of the host's class
}

type policy uint8

// mode is the mode of the host's class.
type mode uint8

const (
	mirrors mode = iota
	promises
	promisesWhileUsed // promise mode with release WhenUnused
)

const (
	destroy policy = iota
	retain
)

func (p policy) reclaim() corev1.PersistentVolumeReclaimPolicy {
	return [...]corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain}[p]
}

// restoredCluster is the cluster with a restore that waits for an admin's confirmation.
type restoredCluster uint8

const (
	neither restoredCluster = iota
	theMember
	theHost
)

// kind is the kind of object whose cache is stale.
type kind uint8

const (
	none kind = iota
	rootClaims
	hostVolumes
	hostPods
	leafClaims
	leafVolumes
)

func (k kind) String() string {
	return [...]string{"", " (its cache of claims is stale)", " (its cache of host PVs is stale)", " (its cache of Pods is stale)", " (its cache of leaf claims is stale)", " (its cache of leaf PVs is stale)"}[k]
}

// world is the complete state. It is comparable, so that equal worlds are visited only once.
type world struct {
	state
	disks [leaves]bool
	// mirrored reports whether a host PV has ever represented the volume on an existing disk.
	mirrored [leaves]bool
	// theirs reports whether an admin deleted a disk's PV in the member or restored the member. After
	// that, a disk without a PV is not Xylem's leak.
	theirs bool

	hostBackup   hostState // valid if backedUp is set for the host
	memberBackup memberState
	backedUp     [2]bool // for the host and the member

	lagging kind
	stale   state // contains only the cached objects of the lagging kind

	// before reports whether the path began with a member's existing volume.
	before bool
	// damage is what a command of a user has destroyed, or "".
	damage string

	budget uint8 // the number of disruptions that are still allowed
}

// take copies the objects of a kind from another state.
func (s *state) take(k kind, from state) {
	switch k {
	case none:
	case rootClaims:
		s.roots = from.roots
	case hostVolumes:
		s.hostState.pvs = from.hostState.pvs
	case hostPods:
		s.pod = from.pod
	case leafClaims:
		s.claims = from.claims
	case leafVolumes:
		s.memberState.pvs = from.memberState.pvs
	}
}

// seen returns the state that the caches show.
func (w world) seen() state {
	s := w.state
	s.take(w.lagging, w.stale)
	return s
}

// lag freezes the cache of a kind in its current state.
func (w *world) lag(k kind) {
	w.lagging = k
	w.stale.take(k, w.state)
}

func (w *world) follow() { w.lagging, w.stale = none, state{} }

// referred returns the UIDs that a world's objects have or refer to.
func (m *Model) referred(w world) map[string]bool {
	found := map[string]bool{}
	note := func(obj client.Object, ref *corev1.ObjectReference) {
		found[string(obj.GetUID())] = true
		for _, value := range obj.GetAnnotations() {
			found[value] = true
			_, uid, _ := strings.Cut(value, "/") // the UID in a record
			found[uid] = true
		}
		if ref != nil {
			found[string(ref.UID)] = true
		}
	}
	for _, s := range []state{w.state, w.stale, {hostState: w.hostBackup, memberState: w.memberBackup}, {memberState: w.second}} {
		for _, i := range append(s.roots[:], s.claims[:]...) {
			if claim := m.objects.claim(i); claim != nil {
				note(claim, nil)
			}
		}
		for _, i := range append(s.hostState.pvs[:], s.memberState.pvs[:]...) {
			pv := m.objects.pv(i)
			if pv == nil {
				continue
			}
			note(pv, pv.Spec.ClaimRef)
			found[strings.TrimPrefix(pv.Name, "pvc-mock-")] = true
			if _, leaf, uid, ours := hostpv.LeafOfHostVolume(pv); ours {
				found[string(uid)] = true
				found[strings.TrimPrefix(leaf, "pvc-")] = true
			} else {
				found[strings.TrimPrefix(pv.Name, "pvc-")] = true
			}
		}
	}
	for _, s := range []state{w.state, w.stale, {hostState: w.hostBackup}} {
		if pod := m.objects.pod(s.pod); pod != nil {
			found[string(pod.UID)] = true
		}
	}
	for n, there := range w.disks {
		if there && n < made {
			found[string(claimUIDs[n])] = true
		}
	}
	return found
}

// unused returns the first of the UIDs that a world does not use, or "".
func (m *Model) unused(w world, uids ...types.UID) types.UID {
	return firstUnused(m.referred(w), uids...)
}

func firstUnused(referred map[string]bool, uids ...types.UID) types.UID {
	for _, uid := range uids {
		if !referred[string(uid)] {
			return uid
		}
	}
	return ""
}

// volumeUIDs returns the UIDs that a PV can have. The state, the backup and the cache may each
// contain a different one.
func volumeUIDs(side, name string) []types.UID {
	var uids []types.UID
	for i := range 4 {
		uids = append(uids, types.UID(fmt.Sprintf("%s-%s-%d", side, name, i)))
	}
	return uids
}

// now returns the creation time of a new object.
func (s state) now() metav1.Time {
	if s.memberRestored || s.hostRestored {
		return after
	}
	return before
}

// describe describes a world in a trace.
func (m *Model) describe(w world) string {
	var parts []string
	for _, i := range w.roots {
		if root := m.objects.claim(i); root != nil {
			parts = append(parts, "claim "+claimWords(root))
		}
	}
	for _, i := range w.hostState.pvs {
		if pv := m.objects.pv(i); pv != nil {
			parts = append(parts, "host PV "+volumeWords(pv))
		}
	}
	for _, i := range w.claims {
		if claim := m.objects.claim(i); claim != nil {
			parts = append(parts, "leaf claim "+claimWords(claim))
		}
	}
	for _, i := range w.memberState.pvs {
		if pv := m.objects.pv(i); pv != nil {
			parts = append(parts, "leaf PV "+volumeWords(pv))
		}
	}
	for _, i := range w.second.claims {
		if claim := m.objects.claim(i); claim != nil {
			parts = append(parts, "second member's leaf claim "+claimWords(claim))
		}
	}
	for _, i := range w.second.pvs {
		if pv := m.objects.pv(i); pv != nil {
			parts = append(parts, "second member's leaf PV "+volumeWords(pv))
		}
	}
	if pod := m.objects.pod(w.pod); pod != nil {
		parts = append(parts, fmt.Sprintf("Pod %s: on node %q, %s", pod.UID, pod.Spec.NodeName, pod.Status.Phase))
	}
	parts = append(parts, fmt.Sprintf("disks %v, restore to be confirmed: %v", w.disks, w.suspended != neither))
	return strings.Join(parts, "\n    ")
}

func claimWords(c *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("%s (%s): volume %q, %s%s%s", c.Name, c.UID, c.Spec.VolumeName, c.Status.Phase, deleting(c), annotations(c))
}

func volumeWords(pv *corev1.PersistentVolume) string {
	ref := "none"
	if pv.Spec.ClaimRef != nil {
		ref = string(pv.Spec.ClaimRef.UID)
	}
	return fmt.Sprintf("%s (%s): claimRef %s, %s, %s%s, finalizers %v%s", pv.Name, pv.UID, ref, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy, deleting(pv), pv.Finalizers, annotations(pv))
}

func deleting(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return ", deleting"
}

func annotations(obj client.Object) string {
	var words []string
	for key, value := range obj.GetAnnotations() {
		if strings.Contains(key, "xylem.io/") || strings.Contains(key, "selected-node") {
			words = append(words, key[strings.Index(key, "/")+1:]+"="+value)
		}
	}
	slices.Sort(words)
	if len(words) == 0 {
		return ""
	}
	return ", " + strings.Join(words, " ")
}
