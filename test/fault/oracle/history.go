package oracle

import (
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// lag is the maximum delay between an event and its observation. Evidence from two clusters and a
// ledger is ordered only to this precision.
const lag = 500 * time.Millisecond

// at is an observed state of an object, with the time of the observation.
type at[T any] struct {
	time time.Time
	gone bool
	obj  T
}

type (
	claimAt  = at[*corev1.PersistentVolumeClaim]
	volumeAt = at[*corev1.PersistentVolume]
	podAt    = at[*corev1.Pod]

	snapshotAt = at[*snapshotv1.VolumeSnapshot]
	contentAt  = at[*snapshotv1.VolumeSnapshotContent]
)

// placedIn returns the ID of the member in which a root claim is placed, or "".
func placedIn(c claimAt) string {
	if c.obj == nil {
		return ""
	}
	return c.obj.Annotations[v1alpha1.AnnotationPlacedIn]
}

// place identifies an object by its cluster and its name.
type place struct{ cluster, name string }

// history contains the observed states of each object.
type history struct {
	host string
	// claims are keyed by UID, and the members' volumes by name.
	claims  map[types.UID][]claimAt
	volumes map[place][]volumeAt
	// mirrors are the host PVs. The key is the leaf PV that they represent: <cluster ID>/<name>.
	mirrors map[string][]volumeAt
	// pods are the host's Pods by UID. leaves are their leaf Pods, by the UIDs of root and leaf.
	pods   map[types.UID][]podAt
	leaves map[types.UID]map[types.UID][]podAt
	// snapshots are the host's VolumeSnapshots, and contents its contents with Xylem's driver, by
	// UID.
	snapshots map[types.UID][]snapshotAt
	contents  map[types.UID][]contentAt
	// leafContents are the members' contents.
	leafContents map[place][]contentAt
}

// standsFor returns the leaf PV that a host PV represents, from the volume handle or, for a
// promise, from the annotation that records it. It returns "" if the host PV represents none.
func standsFor(pv *corev1.PersistentVolume) string {
	switch csi := pv.Spec.CSI; {
	case csi == nil:
		return ""
	case csi.Driver == v1alpha1.PromiseDriverName:
		return pv.Annotations[v1alpha1.AnnotationVolume]
	default:
		return csi.VolumeHandle
	}
}

func index(e Evidence) *history {
	h := &history{
		host: e.Host, claims: map[types.UID][]claimAt{}, volumes: map[place][]volumeAt{}, mirrors: map[string][]volumeAt{},
		pods: map[types.UID][]podAt{}, leaves: map[types.UID]map[types.UID][]podAt{},
		snapshots: map[types.UID][]snapshotAt{}, contents: map[types.UID][]contentAt{}, leafContents: map[place][]contentAt{},
	}
	for _, s := range e.History {
		switch obj := s.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			h.claims[obj.UID] = append(h.claims[obj.UID], claimAt{s.At, s.Gone, obj})
		case *corev1.PersistentVolume:
			state := volumeAt{s.At, s.Gone, obj}
			if s.Cluster == e.Host {
				if leaf := standsFor(obj); leaf != "" {
					h.mirrors[leaf] = append(h.mirrors[leaf], state)
				}
				continue
			}
			where := place{s.Cluster, obj.Name}
			h.volumes[where] = append(h.volumes[where], state)
		case *corev1.Pod:
			h.addPod(e, s, obj)
		case *snapshotv1.VolumeSnapshot:
			if s.Cluster == e.Host {
				h.snapshots[obj.UID] = append(h.snapshots[obj.UID], snapshotAt{s.At, s.Gone, obj})
			}
		case *snapshotv1.VolumeSnapshotContent:
			h.addContent(e, contentAt{s.At, s.Gone, obj}, s.Cluster)
		}
	}
	return h
}

func (h *history) addContent(e Evidence, state contentAt, cluster string) {
	if cluster != e.Host {
		where := place{cluster, state.obj.Name}
		h.leafContents[where] = append(h.leafContents[where], state)
		return
	}
	if state.obj.Spec.Driver == v1alpha1.ProvisionerName {
		h.contents[state.obj.UID] = append(h.contents[state.obj.UID], state)
	}
}

func (h *history) addPod(e Evidence, s Sighting, pod *corev1.Pod) {
	state := podAt{s.At, s.Gone, pod}
	if s.Cluster == e.Host {
		h.pods[pod.UID] = append(h.pods[pod.UID], state)
		return
	}
	root := leafOf(e, s.Cluster, pod)
	if root == "" {
		return
	}
	if h.leaves[root] == nil {
		h.leaves[root] = map[types.UID][]podAt{}
	}
	h.leaves[root][pod.UID] = append(h.leaves[root][pod.UID], state)
}

// goneBy reports whether the deletion of a claim was observed before the given time.
func (h *history) goneBy(uid types.UID, when time.Time) bool {
	for _, c := range h.claims[uid] {
		if c.gone && !c.time.After(when.Add(lag)) {
			return true
		}
	}
	return false
}

// before returns the last state that was observed by the given time, and whether one was observed.
func before[T any](states []at[T], when time.Time) (at[T], bool) {
	var last at[T]
	found := false
	for _, s := range states {
		if s.time.After(when) {
			break
		}
		last, found = s, true
	}
	return last, found
}

// around returns the states that may have been current at the given time, because times from two
// clusters can be compared only with limited precision.
func around[T any](states []at[T], when time.Time) []at[T] {
	var held []at[T]
	for i, s := range states {
		if ended := i+1 < len(states) && states[i+1].time.Before(when.Add(-lag)); !ended && !s.time.After(when.Add(lag)) {
			held = append(held, s)
		}
	}
	return held
}

// stampedRoot returns the root claim's UID from any stamp that a leaf PV ever had.
func stampedRoot(states []volumeAt) types.UID {
	for _, s := range states {
		if uid := s.obj.Annotations[v1alpha1.AnnotationRootUID]; uid != "" {
			return types.UID(uid)
		}
	}
	return ""
}

// leafClaim returns the UID of the leaf claim for which a volume was created.
func leafClaim(volume string) types.UID { return types.UID(strings.TrimPrefix(volume, "pvc-")) }
