package clusterregistration

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

// reportStatus writes the status if it has changed, and emits events for the changes.
func (r *Reconciler) reportStatus(ctx context.Context, cr *v1alpha1.ClusterRegistration, override ReadyOverride) error {
	state, _ := r.Fleet.MemberState(cr.Name)
	nodeReady, nodeCount, err := r.nodeReadyCondition(ctx, cr, state)
	if err != nil {
		return err
	}
	orphans := r.Orphans.OrphanedVolumes(cr.Name)
	counts, err := r.countVolumes(cr)
	if err != nil {
		return err
	}
	// If the number of orphans is not known yet, keep the last one.
	counts.Orphaned = cr.Status.Volumes.Orphaned
	if orphans.Known {
		counts.Orphaned = boundedInt32(len(orphans.Found))
	}
	reflected, err := r.classesCondition(ctx, cr)
	if err != nil {
		return err
	}
	before := cr.DeepCopy()
	cr.Status.NodeName, cr.Status.Nodes = cr.NodeName(), nodeCount
	cr.Status.ObservedGeneration = cr.Generation
	cr.Status.Volumes = counts
	if orphans.Known {
		cr.Status.Orphans = ListedOrphans(orphans.Found, cr.Status.Orphans, metav1.NewTime(r.Clock.Now()))
	}
	if state.Connected {
		cr.Status.KubernetesVersion = state.Identity.Version
	}
	cr.Status.TokenExpires = nil
	if !state.TokenExpires.IsZero() {
		cr.Status.TokenExpires = ptr.To(metav1.NewTime(state.TokenExpires))
	}
	if !state.LastRestored.IsZero() {
		cr.Status.LastRestored = ptr.To(metav1.NewTime(state.LastRestored))
	}
	all := append(ConnectionAndReady(state, nodeReady, override), VolumesAccounted(orphans, &cr.Status), DeletionsProgressing(r.Stuck.StuckDeletions(cr.Name)))
	all = append(all, reflected...)
	snapshots, err := r.updateSnapshotStatus(ctx, cr)
	if err != nil {
		return err
	}
	all = append(all, snapshots...)
	admitted, err := r.namespacesCondition(ctx, cr)
	if err != nil {
		return err
	}
	all = append(all, admitted...)
	if !cr.Spec.Storage.Reflect.Enabled {
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionClassesReflected)
	}
	all = append(all, TokenFresh(state, &cr.Status)...)
	if state.PolicyState != nil {
		all = append(all, PolicyEnforced(*state.PolicyState))
	}
	SetOnRegistration(cr, all)
	if equality.Semantic.DeepEqual(before.Status, cr.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return fmt.Errorf("write the status of registration %s: %w", cr.Name, err)
	}
	r.announceChanges(before, cr, orphans.Found)
	return nil
}

// nodeReadyCondition returns the NodeReady condition and, with spec.nodes, the number of virtual nodes.
func (r *Reconciler) nodeReadyCondition(ctx context.Context, cr *v1alpha1.ClusterRegistration, state fleet.State) (metav1.Condition, int32, error) {
	if len(cr.Spec.Nodes) == 0 {
		node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(cr.NodeName()))
		return nodes.RegistrationReadyCondition(node, cr), 0, err
	}
	list, err := index.NodesOfMember(ctx, r.Client, cr)
	if err != nil {
		return metav1.Condition{}, 0, err
	}
	names := sets.New[string]()
	for i := range list {
		names.Insert(list[i].Name)
	}
	var taken *corev1.Node
	var problem string
	if state.NodeSummary != nil {
		problem = state.NodeSummary.GroupProblem
		for i := range state.NodeSummary.Groups {
			name := v1alpha1.GroupNodeName(state.NodeSummary.Groups[i].Name, cr.NodeName())
			if taken != nil || names.Has(name) {
				continue
			}
			node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(name))
			if err != nil {
				return metav1.Condition{}, 0, err
			}
			if nodes.NameTaken(node, cr.Status.ClusterID) {
				taken = node
			}
		}
	}
	return nodes.GroupsReadyCondition(list, taken, problem, cr), boundedInt32(len(list)), nil
}

// announceChanges emits events for the changes to the status.
func (r *Reconciler) announceChanges(before, cr *v1alpha1.ClusterRegistration, orphans []account.Orphan) {
	r.announceConnection(before, cr)
	r.announceOrphans(before, cr, orphans)
	r.announceSnapshots(before, cr)
	r.announceStuckDeletions(before, cr)
	r.announceWaiting(before, cr)
	r.announceReflection(before, cr)
	r.announceNamespacesNotAdmitted(before, cr)
}

// countVolumes counts the member's volumes that have a PV or a claim in the host. Package account counts
// the orphans.
func (r *Reconciler) countVolumes(cr *v1alpha1.ClusterRegistration) (v1alpha1.VolumeCounts, error) {
	var counts v1alpha1.VolumeCounts
	cluster := cr.Status.ClusterID
	if cluster == "" {
		return counts, nil
	}
	owner := route.Owner{NodeName: cr.NodeName(), ClusterID: cluster}
	err := errors.Join(
		r.Router.VisitObjects(owner, &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Annotations[v1alpha1.AnnotationPlacedIn] == cluster && claim.Spec.VolumeName == "" {
				counts.Pending++
			}
		}),
		r.Router.VisitObjects(owner, &corev1.PersistentVolume{}, metav1.NamespaceAll, func(obj client.Object) {
			if pv, ok := obj.(*corev1.PersistentVolume); ok {
				tallyVolume(&counts, pv, cluster)
			}
		}))
	if err != nil {
		return counts, fmt.Errorf("count the volumes of registration %s: %w", cr.Name, err)
	}
	return counts, nil
}

// tallyVolume counts a host PV if the member has its volume or must provision it.
func tallyVolume(counts *v1alpha1.VolumeCounts, pv *corev1.PersistentVolume, cluster string) {
	in, _, _, made := hostpv.LeafOfHostVolume(pv)
	promised, released := hostpv.IsUnfulfilledPromiseIn(pv, cluster), hostpv.IsReleasedOrFailed(pv)
	switch {
	case promised && released:
		counts.Deleting++
	case promised:
		counts.Pending++
	case !made || in != cluster:
	case pv.DeletionTimestamp != nil, released && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		counts.Deleting++
	case pv.Status.Phase == corev1.VolumeBound:
		counts.Bound++
	}
}

func boundedInt32(n int) int32 { return int32(min(n, 1<<30)) } //nolint:gosec // capped in the same line
