package rootpvc

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// consumerWait is how long Xylem waits for a Pod of a claim. A Pod that was deleted may be replaced,
// and the member's scheduler then selects a better node, because it knows what the Pod needs.
const consumerWait = 10 * time.Second

// nodeSearchInterval is the interval at which Xylem looks again for a node, if the member has no suitable one or the
// provisioner has rejected one.
const nodeSearchInterval = time.Minute

// selectNodeForLeaf sets the selected node of a leaf claim whose class waits for a consumer, if an importer or a
// populator wrote the selected node of the claim, and no Pod of the claim is left to place. Provisioners need
// nothing else. As in a single cluster, a Pod that is created later must run where the volume is.
func (r *reconciler) selectNodeForLeaf(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error {
	within, problem := consumerWait, plan.Report
	if shown := report.ClaimConditionProblem(o.Root, v1alpha1.ClaimPlaced); problem == nil && shown != nil && shown.Reason == v1alpha1.ReasonNotScheduled {
		problem = shown // until the next attempt
	}
	if problem != nil {
		within = nodeSearchInterval
	}
	if !r.reports.StateLasted(o.Root.UID, within, r.Clock.Now()) {
		return r.reports.ReportProblem(ctx, o, problem)
	}
	if imported, err := proof.ProveImportedHere(ctx, r.NewProver(), o.Root); err != nil || !imported {
		return errors.Join(err, r.reports.ReportProblem(ctx, o, plan.Report))
	}
	pods, err := r.NewProver().LivePodsOfClaim(ctx, client.ObjectKeyFromObject(o.Root))
	if err != nil || slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return observe.SchedulerMayPlace(&pod) }) {
		return err // the Pod's event enqueues the claim
	}
	var consumer *corev1.Pod
	if at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return !podstatus.IsPodFinished(&pod) && pod.DeletionTimestamp == nil }); at >= 0 {
		consumer = &pods[at]
	}
	suitable, err := r.suitableNodes(ctx, o, consumer)
	if err != nil {
		return err
	}
	if len(suitable) == 0 {
		r.reports.StateLasted(o.Root.UID, nodeSearchInterval, r.Clock.Now())
		return r.reports.ReportProblem(ctx, o, noSuitableNodeRefusal(o, r.Member))
	}
	after := o.Leaf.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, route.AnnSelectedNode, chooseNode(suitable, consumer, o.Leaf))
	if err := r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, after); err != nil {
		return r.reports.ReportMemberRejection(ctx, o.Root, "update", err)
	}
	return nil
}

// chooseNode returns one of several nodes. Claims that the same Pod uses get the same node, if it suits all. After a
// rejection, the leaf claim of a claim without a Pod has another resourceVersion, and may get another node.
func chooseNode(suitable []string, consumer *corev1.Pod, leaf *corev1.PersistentVolumeClaim) string {
	hash := fnv.New32a()
	if consumer != nil {
		_, _ = fmt.Fprint(hash, consumer.UID)
	} else {
		_, _ = fmt.Fprint(hash, leaf.UID, leaf.ResourceVersion)
	}
	return suitable[hash.Sum32()%uint32(len(suitable))] //nolint:gosec // not empty, and few
}

// reachesOtherVolumes returns whether a node can reach the other volumes of a claim's Pod, which exist or for which a node
// was selected.
func (r *reconciler) reachesOtherVolumes(ctx context.Context, root *corev1.PersistentVolumeClaim, consumer *corev1.Pod) (func(corev1.Node) bool, error) {
	var volumes []*corev1.PersistentVolume
	var selected []string
	for _, name := range podspec.ClaimNamesOfPod(consumer) {
		if name == root.Name {
			continue
		}
		leaf, _, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, client.ObjectKey{Namespace: root.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		switch {
		case leaf == nil:
		case leaf.Spec.VolumeName != "":
			// The cache does not keep all node affinities.
			volume, err := index.FindObject[corev1.PersistentVolume](ctx, r.Live, index.ClusterScopedKey(leaf.Spec.VolumeName))
			if err != nil {
				return nil, err
			}
			if volume != nil {
				volumes = append(volumes, volume)
			}
		case leaf.Annotations[route.AnnSelectedNode] != "":
			selected = append(selected, leaf.Annotations[route.AnnSelectedNode])
		}
	}
	return func(node corev1.Node) bool {
		return !slices.ContainsFunc(volumes, func(volume *corev1.PersistentVolume) bool {
			return volumehelpers.CheckNodeAffinity(volume, node.Labels) != nil
		}) && !slices.ContainsFunc(selected, func(name string) bool { return name != node.Name })
	}, nil
}

// selectsGroup returns whether a node belongs to the group of the member's nodes that was selected for a claim. If the
// Node that represents the group is missing or incomplete, no node does.
func (r *reconciler) selectsGroup(ctx context.Context, root *corev1.PersistentVolumeClaim) (func(*corev1.Node) bool, error) {
	selected := root.Annotations[route.AnnSelectedNode]
	if selected == r.NodeName || !r.HasNode(selected) {
		return func(*corev1.Node) bool { return true }, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Host, index.ClusterScopedKey(selected))
	group, ok := podspec.GroupSelectorOf(node)
	if err != nil || !ok || !placement.RepresentsMember(node, r.Member) {
		return func(*corev1.Node) bool { return false }, err
	}
	selector := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{group}})
	return func(node *corev1.Node) bool {
		matches, _ := selector.Match(node) // GroupSelectorOf has parsed the term
		return matches
	}, nil
}

// suitableNodes returns the names of the member's nodes on which the leaf claim's volume can be provisioned, and
// that can reach the other volumes of its Pod, if it has one. It reads live, because few claims need these
// objects.
func (r *reconciler) suitableNodes(ctx context.Context, o observe.Claim, consumer *corev1.Pod) (suitable []string, err error) {
	inGroup, err := r.selectsGroup(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	reaches := func(corev1.Node) bool { return true }
	if consumer != nil {
		if reaches, err = r.reachesOtherVolumes(ctx, o.Root, consumer); err != nil {
			return nil, err
		}
	}
	class, size := o.Observed.Placement.LeafClass, o.Leaf.Spec.Resources.Requests.Storage()
	var published storagev1.CSIStorageCapacityList
	var capacities []storagev1.CSIStorageCapacity
	err = index.ListPages(ctx, r.Live, &published, func() {
		capacities = append(capacities, slices.DeleteFunc(published.Items, func(c storagev1.CSIStorageCapacity) bool { return c.StorageClassName != class.Name })...)
	})
	if err != nil {
		return nil, fmt.Errorf("list the member's CSIStorageCapacities: %w", err)
	}
	var nodes corev1.NodeList
	err = index.ListPages(ctx, r.Live, &nodes, func() {
		reachable := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return !inGroup(&node) || !reaches(node) })
		suitable = append(suitable, placement.NodesForVolume(class, size, reachable, capacities)...)
	})
	if err != nil {
		return nil, fmt.Errorf("list the member's nodes: %w", err)
	}
	return suitable, nil
}

// noSuitableNodeRefusal reports that no node of the member can be selected for a claim without a Pod to schedule.
func noSuitableNodeRefusal(o observe.Claim, m mirror.Member) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonNotScheduled, "StorageClass %q of member %q waits for a Pod that uses the claim, and there is none to schedule. Xylem selects a node for the volume instead, but finds none that is ready, without taints, allowed by the class, in the selected group of nodes if the member has groups, with enough capacity, and that can reach the other volumes of the claim's Pod. "+
		"Create a Pod that uses the claim, or ask the member's admin to add a suitable node", o.Observed.Placement.LeafClass.Name, m.Registration)
}
