package leafpv

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// recordImport records on an admin's host PV which leaf PV it represents. Live reads must first prove
// that both are unchanged, that no other host PV represents the volume, and that neither the
// member's claim in claimRef nor the root in the stamp still exists.
func (r *reconciler) recordImport(ctx context.Context, s *volume.Observed) error {
	asks := s.ImportingHostVolume()
	if _, same, err := r.NewProver().ProveHostUnchanged(ctx, asks); err != nil || !same {
		return err
	}
	if _, same, err := r.NewProver().ProveLeafVolume(ctx, s.Name, func(leaf *corev1.PersistentVolume) bool {
		return leaf != nil && leaf.UID == s.UID && leaf.ResourceVersion == s.Leaf.ResourceVersion
	}); err != nil || !same {
		return err
	}
	key, uid := s.UnstampedClaimRef()
	if gone, err := proof.ProveMemberClaimGone(ctx, r.NewProver(), key, uid); err != nil || !gone {
		return err
	}
	if s.LeafStamped && s.Stamp.Root.Namespace != "" && s.StampRoot == nil {
		if _, gone, err := r.NewProver().ProveRootGone(ctx, s.Stamp.Root, s.Stamp.UID); err != nil || !gone {
			return err
		}
	}
	if sole, err := proof.ProveSoleImport(ctx, r.NewProver(), asks, s.Name); err != nil || !sole {
		return err
	}
	if _, err := r.NewProver().ProveMemberCurrent(ctx); err != nil {
		return err
	}
	return r.HostWriter.RecordVolumeImport(ctx, actor, asks, s.Leaf, r.Member)
}

// takeLeafVolume stamps the leaf PV that an admin's host PV represents.
func (r *reconciler) takeLeafVolume(ctx context.Context, s *volume.Observed) error {
	if err := r.MemberWriter.StampImportedVolume(ctx, actor, s.Leaf, volume.TakenLeafVolume(s), s.Host); err != nil {
		return err
	}
	r.emitVolumeTaken(s)
	return nil
}

// reportImportProblems reports, on each admin's host PV that has not adopted the volume yet, why it
// cannot. It returns when to do so again, or 0.
func (r *reconciler) reportImportProblems(s *volume.Observed) (again time.Duration) {
	for i := range s.Imports {
		if problem := volume.WhyImportRefused(s, &s.Imports[i]); problem != nil {
			again = route.SoonerDelay(again, r.warnOnHostVolume(&s.Imports[i], problem))
		}
	}
	return again
}

// reportMissingVolume reports on the host PVs that request a leaf PV that does not exist. It returns when to do so
// again, or 0.
func (r *reconciler) reportMissingVolume(ctx context.Context, name string) (again time.Duration, err error) {
	s, err := observe.ObserverOfLink(r.Link, r.Options.Options).ObserveMissingVolume(ctx, name)
	if err != nil {
		return 0, err
	}
	return r.reportImportProblems(s), nil
}

// importToLeafVolume enqueues the leaf PV that an admin's host PV requests.
func (r *reconciler) importToLeafVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	leaf, _ := hostpv.RequestedImportIn(pv, r.ClusterID)
	return requestForVolume(leaf)
}

// classToImportedVolumes enqueues the leaf PVs that admins' host PVs of a class request.
func (r *reconciler) classToImportedVolumes(ctx context.Context, class client.Object) []reconcile.Request {
	imports, err := index.ImportsInCluster(ctx, r.Host, r.ClusterID)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the host PVs that admins created", "class", class.GetName())
	}
	var found []reconcile.Request
	for i := range imports {
		if imports[i].Spec.StorageClassName == class.GetName() {
			found = append(found, r.importToLeafVolume(ctx, &imports[i])...)
		}
	}
	return found
}
