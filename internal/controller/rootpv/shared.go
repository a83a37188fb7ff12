package rootpv

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/sharing"
)

const (
	// SharedName is the name of the controller of shared volumes.
	SharedName  = "shared_pv"
	sharedActor = guarded.Actor("shared-pv")
	// sharedWorkers is the number of shared volumes of one member that are reconciled concurrently.
	sharedWorkers = 2
)

// sharedReconciler reconciles the host PVs of shared volumes, by their names. Once the host's claim no longer has
// the volume, it removes the member's copy, and then the member's finalizer from the host PV. If somebody changes
// the reclaim policy of a copy's PV, it sets Retain again. root_pod creates copies. Package sharing contains the
// decisions.
type sharedReconciler struct{ *sharing.Sharer }

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch

// SetupShared adds the controller of shared volumes to a member's link.
func SetupShared(link *member.Link, sharer *sharing.Sharer) error {
	return link.AddController(SharedName, sharedWorkers, &sharedReconciler{sharer},
		link.RootObjectSource(&corev1.PersistentVolume{}, sharedVolumeToRequest, route.VolumeChanged),
		link.LeafObjectSource(&corev1.PersistentVolume{}, copyToSharedVolume, route.ConcernsPredicate(route.VolumeChanged)),
		link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, copyToSharedVolume, route.ConcernsPredicate(route.LeafClaimChanged)),
	)
}

// Reconcile takes the next step for one shared volume.
func (r *sharedReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.MaintainCopy(ctx, sharedActor, request.Name)
}

func sharedVolumeToRequest(_ context.Context, obj client.Object) []reconcile.Request {
	if pv, ok := obj.(*corev1.PersistentVolume); !ok || hostpv.BackendOfVolume(pv) == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(obj.GetName())}}
}

func copyToSharedVolume(_ context.Context, obj client.Object) []reconcile.Request {
	host := obj.GetAnnotations()[v1alpha1.AnnotationCopyOf]
	if host == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(host)}}
}
