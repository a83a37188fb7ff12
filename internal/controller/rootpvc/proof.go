package rootpvc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// notMirrored proves that no host PV has the handle of the leaf claim's volume; thorough as
// for mirrorOf. If one has, Xylem keeps the leaf claim, and says so where root_pv does not
// end it: on a host PV of this very volume, the claim's end is root_pv's.
func (r *reconciler) notMirrored(ctx context.Context, o observed, leaf string, thorough bool) (bool, error) {
	by, err := r.mirrorOf(ctx, leaf, thorough)
	if err != nil || by == nil {
		return err == nil, err
	}
	if _, _, uid, ours := mirror.LeafVolumeOf(by); ours && o.leafVolume != nil && uid == o.leafVolume.UID {
		return false, nil
	}
	return false, r.keep(ctx, o, by)
}

// nothingMirrored proves that an unbound leaf claim has no volume that the host represents:
// nothing was made for it, or what was made is not mirrored. A claim is never unbound again
// once it was bound, so that only a claim that may come from a backup of the member can have
// had one; the others cost a few reads.
func (r *reconciler) nothingMirrored(ctx context.Context, o observed) (bool, error) {
	made, err := index.VolumesForClaim(ctx, r.Cache, o.leaf.UID)
	if err != nil {
		return false, err
	}
	restored := r.LastRestores().Predates(o.leaf)
	if restored {
		if made, err = index.LiveVolumesForClaim(ctx, r.Live, o.leaf); err != nil || len(made) > 0 {
			return false, err // the member is about to bind it: what is bound has a stamp, or gets one
		}
	}
	if by, err := r.mirrorOfRoot(ctx, o); err != nil || by != nil {
		return false, r.kept(ctx, o, by, err)
	}
	names := map[string]struct{}{index.ProvisionedName(o.leaf.UID): {}}
	for i := range made {
		names[made[i].Name] = struct{}{}
	}
	for name := range names {
		by, err := r.mirrorOf(ctx, name, restored)
		if err != nil || by != nil && !ends(by, o.origin.UID) {
			return false, r.kept(ctx, o, by, err)
		}
	}
	return true, nil
}

// mirrorOf is a host PV that represents a leaf PV. It has one of two names, unless somebody
// created it by hand: thorough lists all PVs, which is for what destroys data.
func (r *reconciler) mirrorOf(ctx context.Context, leaf string, thorough bool) (*corev1.PersistentVolume, error) {
	if !thorough {
		return index.MirrorByName(ctx, r.HostLive, r.ClusterID, leaf)
	}
	_, by, err := index.NotMirrored(ctx, r.Host, r.HostLive, r.ClusterID, leaf)
	return by, err
}

// mirrorOfRoot is a host PV of this member that was made for the leaf claim's root, and
// whose leaf PV may be the one of this leaf claim: it is not there, or points at the claim.
func (r *reconciler) mirrorOfRoot(ctx context.Context, o observed) (*corev1.PersistentVolume, error) {
	hosts, err := index.VolumesOfClaim(ctx, r.Host, o.origin.Root)
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		cluster, name, _, _ := mirror.LeafVolumeOf(&hosts[i])
		if ref := hosts[i].Spec.ClaimRef; cluster != r.ClusterID || ref.UID != o.origin.UID {
			continue
		}
		host, err := index.Find[corev1.PersistentVolume](ctx, r.HostLive, index.Named(hosts[i].Name))
		if err != nil {
			return nil, err
		}
		if host == nil || ends(host, o.origin.UID) {
			continue
		}
		leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Live, index.Named(name))
		if err != nil {
			return nil, err
		}
		if leaf == nil || mirror.PointsAt(leaf, o.leaf) {
			return host, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
}

// ends reports whether the data of a host PV go with the claim that it was released from.
// root_pv waits for the leaf claim to go, then.
func ends(host *corev1.PersistentVolume, claim types.UID) bool {
	return mirror.Ended(host) && host.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		host.Spec.ClaimRef.UID == claim && host.Annotations[v1alpha1.AnnotationAbandon] == ""
}

func (r *reconciler) kept(ctx context.Context, o observed, by *corev1.PersistentVolume, err error) error {
	if err != nil {
		return err
	}
	return r.keep(ctx, o, by)
}

// keep reports that a leaf claim is kept, because a host PV represents its volume: on the
// root that waits for its end, or on that PV.
func (r *reconciler) keep(ctx context.Context, o observed, by *corev1.PersistentVolume) error {
	problem := &mirror.Refusal{Reason: v1alpha1.ReasonVolumeKept, Message: fmt.Sprintf(
		"Xylem keeps claim %q in member %q: PersistentVolume %q of the host represents its volume, whose data might go with the claim. "+
			"Check that PersistentVolume: its label %s has to be %q. To give the volume up and keep its data, annotate it %s=true",
		o.origin.Root, r.Registration, by.Name, v1alpha1.LabelClusterID, r.ClusterID, v1alpha1.AnnotationAbandon)}
	if o.root == nil {
		r.eventProblem(by, problem)
		return nil
	}
	return r.say(ctx, o, problem)
}

// rootUnchanged proves by a live read that a root is, in what it says of its place, as it
// was seen: a cache that was filled by an API server that lags behind may lack a placement.
func (r *reconciler) rootUnchanged(ctx context.Context, seen *corev1.PersistentVolumeClaim) (bool, error) {
	now, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.HostLive, client.ObjectKeyFromObject(seen))
	if err != nil {
		return false, fmt.Errorf("prove that claim %s is still as it was: %w", client.ObjectKeyFromObject(seen), err)
	}
	return now != nil && now.UID == seen.UID && now.Spec.VolumeName == seen.Spec.VolumeName &&
		now.Annotations[v1alpha1.AnnotationPlacedIn] == seen.Annotations[v1alpha1.AnnotationPlacedIn] &&
		now.Annotations[route.AnnSelectedNode] == seen.Annotations[route.AnnSelectedNode], nil
}
