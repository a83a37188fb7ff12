package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// withDataSource adds the data source of a root to its leaf claim. It returns nil if the leaf claim
// must not be created now, and the unchanged leaf claim for a root without a data source or with an
// existing volume.
func (r *reconciler) withDataSource(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	source, has := mirror.DataSourceOf(o.Root)
	if !has || o.Observed.Name != "" {
		return leaf, nil
	}
	if source.IsInOneMember() {
		uid, proven, err := proof.ProveSourceHere(ctx, r.NewProver(), o.Root)
		if err != nil || !proven {
			return nil, err
		}
		leaf = pvc.ClaimWithDataSourceUID(leaf, uid)
	}
	return leaf, r.proveKeepsDataSource(ctx, o, leaf)
}

// proveKeepsDataSource proves, by a dry run, that the member's API server keeps the data source. An old API
// server, or an admission webhook, may drop it, and the claim would get an empty disk.
func (r *reconciler) proveKeepsDataSource(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim) error {
	created := leaf.DeepCopy()
	if err := r.MemberWriter.DryRunCreateStamped(ctx, actor, created); err != nil {
		return r.reportNotCreated(ctx, o, leaf, err)
	}
	if mirror.SameDataSource(o.Root, created) {
		return nil
	}
	source, _ := mirror.DataSourceOf(o.Root)
	problem := mirror.NewRefusal(v1alpha1.ReasonDataSourceUnsupported, "member %q drops the claim's data source, %s: the claim would get an empty disk there, so Xylem does not create the claim. Ask the member's admin which admission webhook removes spec.dataSource or spec.dataSourceRef, or whether the cluster is older than Kubernetes 1.24",
		r.Registration, source)
	if err := r.reports.SetPlacedCondition(ctx, o.Root, problem); err != nil {
		return err
	}
	return problem // no watch reports that the member now keeps it, so retry at a limited rate
}

// reassignedByRecovery reports whether recovery assigned the claim to another member. Claims whose data
// source determines the member do not count.
func reassignedByRecovery(root *corev1.PersistentVolumeClaim) bool {
	source, has := mirror.DataSourceOf(root)
	if has && source.IsInOneMember() {
		return false
	}
	return root.Annotations[v1alpha1.AnnotationSteeredTo] != ""
}
