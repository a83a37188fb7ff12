package tree

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// facts is all that a tree is built of; nil is absent, or could not be read, which
// missing tells.
type facts struct {
	now time.Time
	// pod is what was asked for; nil if it was the one claim.
	pod    *podFacts
	claims []claimFacts
	// registrations of all members; members are those that were read, by cluster ID.
	registrations []v1alpha1.ClusterRegistration
	members       map[string]bool
	missing       []Missing
}

// claimFacts is what was read about one claim of the host.
type claimFacts struct {
	key    types.NamespacedName
	claim  *corev1.PersistentVolumeClaim
	class  *storagev1.StorageClass
	volume *corev1.PersistentVolume
	// earlier are volumes that a claim of this name had, if there is no claim now.
	earlier []corev1.PersistentVolume
	pods    []podFacts

	// leaf and leafVolume in the member; known: they, or their absence, were read.
	leaf                       *corev1.PersistentVolumeClaim
	leafVolume                 *corev1.PersistentVolume
	leafKnown, leafVolumeKnown bool

	events, volumeEvents, leafEvents, leafVolumeEvents []corev1.Event
}

// podFacts is what was read about one Pod of the host.
type podFacts struct {
	pod, leaf          *corev1.Pod
	leafKnown          bool
	events, leafEvents []corev1.Event
}

// memberOf is the cluster ID of the member that a claim is, or is to be, in; empty
// if there is none.
func (f *facts) memberOf(c *claimFacts) string {
	if c.volume != nil {
		if id, _, _, ours := mirror.LeafVolumeOf(c.volume); ours {
			return id
		}
		if id := c.volume.Labels[v1alpha1.LabelClusterID]; id != "" {
			return id
		}
	}
	if c.claim == nil {
		return ""
	}
	if id := c.claim.Annotations[v1alpha1.AnnotationPlacedIn]; id != "" {
		return id
	}
	return f.memberOfNode(c.claim.Annotations[annSelectedNode])
}

// annSelectedNode is the scheduler's choice for a claim.
const annSelectedNode = "volume.kubernetes.io/selected-node"

// memberOfPod is the member whose node a Pod is bound to, or about to be.
func (f *facts) memberOfPod(p *podFacts) string {
	if node := p.pod.Spec.NodeName; node != "" {
		return f.memberOfNode(node)
	}
	return f.memberOfNode(p.pod.Status.NominatedNodeName)
}

func (f *facts) memberOfNode(node string) string {
	for i := range f.registrations {
		if node != "" && f.registrations[i].NodeName() == node {
			return f.registrations[i].Status.ClusterID
		}
	}
	return ""
}

// registration of a cluster; nil if there is none. Of two, the one that is connected.
func (f *facts) registration(clusterID string) *v1alpha1.ClusterRegistration {
	var found *v1alpha1.ClusterRegistration
	for i := range f.registrations {
		r := &f.registrations[i]
		if clusterID != "" && r.Status.ClusterID == clusterID && (found == nil || connected(r)) {
			found = r
		}
	}
	return found
}

// nameOf a member for people: its registration's, else what the volume remembers of
// it, else its cluster ID.
func (f *facts) nameOf(clusterID string, volume *corev1.PersistentVolume) string {
	if r := f.registration(clusterID); r != nil {
		return r.Name
	}
	if volume != nil && volume.Labels[v1alpha1.LabelClusterID] == clusterID && volume.Labels[v1alpha1.LabelCluster] != "" {
		return volume.Labels[v1alpha1.LabelCluster]
	}
	return clusterID
}

// clusterIDs are the members that the facts lead to.
func (f *facts) clusterIDs() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	addPods := func(pods []podFacts) {
		for i := range pods {
			add(f.memberOfPod(&pods[i]))
		}
	}
	if f.pod != nil {
		add(f.memberOfPod(f.pod))
	}
	for i := range f.claims {
		add(f.memberOf(&f.claims[i]))
		addPods(f.claims[i].pods)
	}
	return ids
}

// ours reports whether Xylem has a part in a claim.
func (c *claimFacts) ours() bool {
	switch {
	case c.volume != nil:
		_, _, _, leaf := mirror.LeafVolumeOf(c.volume)
		return leaf || mirror.IsPromise(c.volume)
	case c.class != nil:
		return mirror.OwnClass(c.class)
	}
	return true // what cannot be read may be
}
