package leafpv

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// delayUntilNodeReaches returns how long the creation of a host PV must wait for the label with which the selected virtual
// node shows that it reaches the volume, or 0. Without that label, the scheduler would not bind the Pod, and start again.
// If the node never has the label, because the volume is elsewhere, the scheduler must choose another node.
func (r *reconciler) delayUntilNodeReaches(ctx context.Context, s *volume.Observed, plan lifecycle.Plan) (time.Duration, error) {
	if len(r.NodeGroups) == 0 || plan.StepOwnedBy(lifecycle.LeafPV) != lifecycle.CreateHost {
		r.forgetUnreached(s.Name)
		return 0, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Host, index.ClusterScopedKey(s.Root.Annotations[route.AnnSelectedNode]))
	if err != nil || !awaitsTopologyLabel(s, node) {
		return 0, err
	}
	return max(0, r.RecheckInterval-r.unreached.Measure(s.Name, true)), nil
}

func (r *reconciler) forgetUnreached(leaf string) {
	if len(r.NodeGroups) > 0 {
		r.unreached.Measure(leaf, false)
	}
}

// awaitsTopologyLabel reports whether the node that was selected for an unbound root represents a group of the member's nodes, and
// does not show yet that it reaches the root's volume.
func awaitsTopologyLabel(s *volume.Observed, node *corev1.Node) bool {
	driver, _ := mirror.VolumeSourceOf(s.Leaf)
	if s.Root.Spec.VolumeName != "" || !placement.RepresentsMember(node, s.Member) || s.Rules.BackendForClass(driver, s.Leaf.Spec.StorageClassName) != "" {
		return false
	}
	host := hostpv.TranslateVolume(s.Leaf, s.Root, corev1.PersistentVolumeReclaimRetain, s.Member)
	return !placement.Member{Node: node}.Reaches(host)
}

// nodeToUnreachedVolumes enqueues the volumes of the unbound claims for which a virtual node was selected.
func (r *reconciler) nodeToUnreachedVolumes(ctx context.Context, node client.Object) []reconcile.Request {
	if len(r.NodeGroups) == 0 {
		return nil
	}
	var requests []reconcile.Request
	if err := r.Router.VisitObjects(r.RouteOwner(), &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName == "" && claim.Annotations[route.AnnSelectedNode] == node.GetName() {
			requests = append(requests, r.leafClaimKeyToVolume(ctx, client.ObjectKeyFromObject(claim))...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the claims of a virtual node", "node", node.GetName())
	}
	return requests
}
