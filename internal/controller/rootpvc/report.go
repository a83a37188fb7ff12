package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// reportPlanProblem reports the plan's problem to the user, after a live read if the problem requires one.
func (r *reconciler) reportPlanProblem(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error {
	switch {
	case plan.Report == nil:
	case plan.Phase == lifecycle.Unconfirmed: // the cache may only lack the placement
		if _, same, err := r.NewProver().ProveRootUnchanged(ctx, o.Root); err != nil || !same {
			return err
		}
	case plan.Report.Reason == v1alpha1.ReasonDataSourceUnsupported:
		source, _ := mirror.DataSourceOf(o.Root)
		populated, err := index.HasPopulator(ctx, r.HostLive, source)
		if err != nil {
			return err
		}
		if populated {
			return r.reports.ReportProblem(ctx, o, nil)
		}
	case plan.Phase == lifecycle.InUse:
		if used, err := r.usedByOtherClaim(ctx, o); err != nil || !used {
			return err
		}
	}
	return r.reports.ReportProblem(ctx, o, plan.Report)
}

// usedByOtherClaim reports whether another claim in the member uses the claim's volume. If none does, the
// member is about to release the volume.
func (r *reconciler) usedByOtherClaim(ctx context.Context, o observe.Claim) (bool, error) {
	used, asked := o.Observed.Leaf, o.Observed.Placement.RequestedVolume
	if used == nil {
		used = asked
	}
	ref := used.Spec.ClaimRef
	other, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || other == nil || other.UID != ref.UID {
		return false, err
	}
	if _, ours := mirror.LeafOriginFromHost(r.HostID, other); used == asked && ours {
		return false, nil // an earlier leaf claim that is not in the cache yet
	}
	return true, nil
}

// nameTakenRefusal reports that the member has a claim with the root's name that does not count as Xylem's.
func nameTakenRefusal(there, root *corev1.PersistentVolumeClaim, m mirror.Member) *mirror.Refusal {
	key, of, host := client.ObjectKeyFromObject(there).String(), mirror.StampedRootUID(there), there.Labels[v1alpha1.LabelHost]
	switch copied, isCopy := mirror.VolumeCopyFromHost(m.HostID, there); {
	case isCopy:
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q still has a claim %q that is a copy of the shared volume %q of another claim. Xylem removes it once no Pod in that member uses it, and then continues", m.Registration, key, copied.Volume)
	case of == root.UID, of == "" && host == m.HostID:
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a claim %q that lacks some of the labels and annotations by which Xylem recognizes its own objects, so Xylem does not change it. "+
			"If it is the counterpart of this claim, ask the member's admin to restore them: labels %s=%s and %s=%s, annotations %s=%s and %s=%s. Otherwise, use another name, or ask for the deletion of that claim",
			m.Registration, key, v1alpha1.LabelHost, m.HostID, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue, v1alpha1.AnnotationRoot, key, v1alpha1.AnnotationRootUID, root.UID)
	case of != "" && (host == "" || host == m.HostID):
		return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a claim %q that was created for an earlier claim, and lacks some of the labels and annotations by which Xylem recognizes its own objects, so Xylem does not change it. "+
			"Use another name, or ask the member's admin to delete that claim once nobody needs its data", m.Registration, key)
	}
	return mirror.NewRefusal(v1alpha1.ReasonNameTaken, "member %q has a claim %q that Xylem did not create and does not change. Use another name, or ask the member's admin to delete that claim", m.Registration, key)
}
