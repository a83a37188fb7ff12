package inspect

import (
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// Facts contains the objects of a tree. An object is nil if it is absent or could not be read. In
// the latter case, Missing lists it.
type Facts struct {
	Now time.Time
	// Pod is the requested Pod, or nil if a claim, a volume or a snapshot was requested.
	Pod *PodFacts
	// Snapshot is the requested snapshot, or nil. Its claim is the only one in Claims.
	Snapshot *SnapshotFacts
	// Claims are the requested claim, or those of the Pod. The Key is zero if a volume was requested that
	// no claim is bound to.
	Claims []ClaimFacts
	// Registrations are the registrations of all members. Members contains the cluster IDs of the
	// members that were read.
	Registrations []v1alpha1.ClusterRegistration
	Members       map[string]bool
	// Leaderless explains why no manager is the leader, or is empty.
	Leaderless string
	Missing    []Missing
}

// ClaimFacts contains a claim in the host and related objects.
type ClaimFacts struct {
	Key   types.NamespacedName
	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass
	// ClassAbsent is true if the claim's class does not exist in the host.
	ClassAbsent bool
	Volume      *corev1.PersistentVolume
	// Earlier are the volumes of an earlier claim with this name, if the claim no longer exists.
	Earlier []corev1.PersistentVolume
	Pods    []PodFacts

	// Leaf and LeafVolume are the objects in the member. Known means that the object, or its absence,
	// was read.
	Leaf                       *corev1.PersistentVolumeClaim
	LeafVolume                 *corev1.PersistentVolume
	LeafKnown, LeafVolumeKnown bool

	Events, VolumeEvents, LeafEvents, LeafVolumeEvents []corev1.Event
}

// SnapshotFacts contains a VolumeSnapshot in the host and its content.
type SnapshotFacts struct {
	Snapshot *snapshotv1.VolumeSnapshot
	Content  *snapshotv1.VolumeSnapshotContent
	Events   []corev1.Event
}

// IsReadyToUse reports whether claims can be restored from the snapshot.
func (s *SnapshotFacts) IsReadyToUse() bool {
	return s.Snapshot.Status != nil && ptr.Deref(s.Snapshot.Status.ReadyToUse, false)
}

// PodFacts contains a Pod in the host and related objects.
type PodFacts struct {
	Pod, Leaf          *corev1.Pod
	LeafKnown          bool
	Events, LeafEvents []corev1.Event
}

// MemberOfClaim returns the cluster ID of the member that a claim is or will be in, or "".
func (f *Facts) MemberOfClaim(c *ClaimFacts) string {
	if c.Volume != nil {
		if id, _, _, ours := hostpv.LeafOfHostVolume(c.Volume); ours {
			return id
		}
		if id := c.Volume.Labels[v1alpha1.LabelClusterID]; id != "" {
			return id
		}
	}
	if c.Claim == nil {
		return ""
	}
	if id := c.Claim.Annotations[v1alpha1.AnnotationPlacedIn]; id != "" {
		return id
	}
	return f.memberOfNode(c.Claim.Annotations[annSelectedNode])
}

// annSelectedNode is the annotation with the node that the scheduler selected for a claim.
const annSelectedNode = "volume.kubernetes.io/selected-node"

// MemberOfPod returns the cluster ID of the member whose node a Pod is bound or nominated to.
func (f *Facts) MemberOfPod(p *PodFacts) string {
	if node := p.Pod.Spec.NodeName; node != "" {
		return f.memberOfNode(node)
	}
	return f.memberOfNode(p.Pod.Status.NominatedNodeName)
}

func (f *Facts) memberOfNode(node string) string {
	for i := range f.Registrations {
		if f.Registrations[i].HasNode(node) {
			return f.Registrations[i].Status.ClusterID
		}
	}
	return ""
}

// NodeNames returns the names of a registration's virtual nodes: with spec.nodes, those among the given Nodes. Without any, it
// returns the member's node name.
func NodeNames(r *v1alpha1.ClusterRegistration, virtualNodes []corev1.Node) []string {
	var names []string
	for i := range virtualNodes {
		if len(r.Spec.Nodes) > 0 && r.HasNode(virtualNodes[i].Name) {
			names = append(names, virtualNodes[i].Name)
		}
	}
	if len(names) == 0 {
		return []string{r.NodeName()}
	}
	slices.Sort(names)
	return names
}

// Registration returns the registration of a cluster, or nil. If there are two, it returns the
// connected one.
func (f *Facts) Registration(clusterID string) *v1alpha1.ClusterRegistration {
	var found *v1alpha1.ClusterRegistration
	for i := range f.Registrations {
		r := &f.Registrations[i]
		if clusterID != "" && r.Status.ClusterID == clusterID && (found == nil || IsConnected(r)) {
			found = r
		}
	}
	return found
}

// NameOfMember returns the member's name to print: its registration's name, the name recorded on the
// volume, or its cluster ID.
func (f *Facts) NameOfMember(clusterID string, volume *corev1.PersistentVolume) string {
	if r := f.Registration(clusterID); r != nil {
		return r.Name
	}
	if volume != nil && volume.Labels[v1alpha1.LabelClusterID] == clusterID && volume.Labels[v1alpha1.LabelCluster] != "" {
		return volume.Labels[v1alpha1.LabelCluster]
	}
	return clusterID
}

// ClusterIDs returns the cluster IDs of the members that the facts lead to.
func (f *Facts) ClusterIDs() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	addPods := func(pods []PodFacts) {
		for i := range pods {
			add(f.MemberOfPod(&pods[i]))
		}
	}
	if f.Pod != nil {
		add(f.MemberOfPod(f.Pod))
	}
	for i := range f.Claims {
		add(f.MemberOfClaim(&f.Claims[i]))
		addPods(f.Claims[i].Pods)
	}
	return ids
}

// BelongsToXylem reports whether a claim belongs to Xylem, by its volume or class.
func (c *ClaimFacts) BelongsToXylem() bool {
	switch {
	case c.Volume != nil:
		_, _, _, leaf := hostpv.LeafOfHostVolume(c.Volume)
		return leaf || hostpv.IsPromise(c.Volume)
	case c.Class != nil:
		return hostpv.IsXylemClass(c.Class)
	}
	return true // assume so if neither could be read
}

// IsConnected reports whether a registration's member is connected.
func IsConnected(r *v1alpha1.ClusterRegistration) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionConnected)
}
