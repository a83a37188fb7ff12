package sharedpv

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
	// Name is the name of the controller.
	Name  = "shared_pv"
	actor = guarded.Actor("shared-pv")
	// workers is the number of shared volumes of one member that are reconciled concurrently.
	workers = 2
)

// reconciler reconciles the host PVs of shared volumes, by their names.
type reconciler struct{ *sharing.Sharer }

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, sharer *sharing.Sharer) error {
	return link.AddController(Name, workers, &reconciler{sharer},
		link.RootObjectSource(&corev1.PersistentVolume{}, sharedVolumeToRequest, route.VolumeChanged),
		link.LeafObjectSource(&corev1.PersistentVolume{}, copyToSharedVolume, route.ConcernsPredicate(route.VolumeChanged)),
		link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, copyToSharedVolume, route.ConcernsPredicate(route.LeafClaimChanged)),
	)
}

// Reconcile takes the next step for one shared volume.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.MaintainCopy(ctx, actor, request.Name)
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
