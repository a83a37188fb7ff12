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
	// names of claims that there may be.
	names = 2
	// made is for how many leaf claims there are volumes at a time, each of its own name.
	made = 2
	// leaves is for how many leaf PVs there is room: those, and one that the member had before.
	leaves = made + 1
	// hosts is for how many host PVs there is room, each of its own name.
	hosts = 2*leaves + 3
)

// UIDs that objects may have. One that nothing refers to is used again.
var (
	rootUIDs  = []types.UID{"r1", "r2", "r3"}
	claimUIDs = [made]types.UID{"c1", "c2"}
	podUIDs   = []types.UID{"p1", "p2", "p3"}
)

// names of leaf PVs, and of the host PVs that may represent them: the plain name of each,
// then those for where that is taken.
var (
	leafNames = [leaves]string{leafName(claimUIDs[0]), leafName(claimUIDs[1]), handMade}
	hostNames = [hosts]string{
		leafNames[0], leafNames[1], handMade,
		hostpv.Name(leafNames[0], here.ClusterID, true), hostpv.Name(leafNames[1], here.ClusterID, true), hostpv.Name(handMade, here.ClusterID, true),
		hostpv.PromiseName(rootUIDs[0]), hostpv.PromiseName(rootUIDs[1]), hostpv.PromiseName(rootUIDs[2]),
	}
)

// hostUIDs are those that host PVs may have, by hostNames.
var hostUIDs = func() (uids [hosts][]types.UID) {
	for n, name := range hostNames {
		uids[n] = volumeUIDs("h", name)
	}
	return uids
}()

// hostState and memberState are what each cluster has of the claim.
type hostState struct {
	roots [names]id // by claimNames
	pvs   [hosts]id // by hostNames
	pod   id        // of the first claim
}

type memberState struct {
	claims [names]id  // by claimNames
	pvs    [leaves]id // by leafNames
}

// state of both clusters, and what Xylem's process knows of them.
type state struct {
	hostState
	memberState
	second                       memberState // what another modelled member has
	suspended                    restoredCluster
	memberRestored, hostRestored bool
	hostPolicy, leafPolicy       policy // of the classes
	mode                         mode   // of the host's class
}

type policy uint8

// mode of a host class.
type mode uint8

const (
	mirrors mode = iota
	promises
	promisesWhileUsed // disks that go with their last Pods
)

const (
	destroy policy = iota
	retain
)

func (p policy) reclaim() corev1.PersistentVolumeReclaimPolicy {
	return [...]corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain}[p]
}

// restoredCluster whose restore waits for an admin's confirmation.
type restoredCluster uint8

const (
	neither restoredCluster = iota
	theMember
	theHost
)

// kind of objects whose cache does not follow.
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
	return [...]string{"", " (its cache of claims lags)", " (its cache of host PVs lags)", " (its cache of Pods lags)", " (its cache of leaf claims lags)", " (its cache of leaf PVs lags)"}[k]
}

// world is all that there is. It is comparable: two worlds that are equal are one.
type world struct {
	state
	disks [leaves]bool
	// mirrored: a host PV has represented the volume on the disk that is there.
	mirrored [leaves]bool
	// theirs: somebody took a disk's PV away in the member, or restored that: what is
	// forgotten there is no leak of Xylem's.
	theirs bool

	hostBackup   hostState // of a host with a claim
	memberBackup memberState
	backedUp     [2]bool // host, member

	lagging kind
	stale   state // what the cache of that kind shows, nothing else

	// before: it began with a volume that the member had before.
	before bool

	budget uint8 // disruptions still to come
}

// take the objects of a kind from another state.
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

// seen is the state as the caches show it.
func (w world) seen() state {
	s := w.state
	s.take(w.lagging, w.stale)
	return s
}

// lag has the cache of a kind stop at what there is.
func (w *world) lag(k kind) {
	w.lagging = k
	w.stale.take(k, w.state)
}

func (w *world) follow() { w.lagging, w.stale = none, state{} }

// referred are the UIDs that anything in a world has, or refers to.
func (m *Model) referred(w world) map[string]bool {
	found := map[string]bool{}
	note := func(obj client.Object, ref *corev1.ObjectReference) {
		found[string(obj.GetUID())] = true
		for _, value := range obj.GetAnnotations() {
			found[value] = true
			_, uid, _ := strings.Cut(value, "/") // of a record
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
			if _, leaf, uid, ours := hostpv.LeafOf(pv); ours {
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

// unused is the first of some UIDs that nothing in a world refers to; empty if there is none.
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

// volumeUIDs are those that a PV may have: there may be one in each state, backup and cache.
func volumeUIDs(side, name string) []types.UID {
	var uids []types.UID
	for i := range 4 {
		uids = append(uids, types.UID(fmt.Sprintf("%s-%s-%d", side, name, i)))
	}
	return uids
}

// now is when an object is created.
func (s state) now() metav1.Time {
	if s.memberRestored || s.hostRestored {
		return after
	}
	return before
}

// describe a world for a reader of a trace.
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
