package rootpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// promised says why a promise without a disk keeps a bound Pod waiting; nil if the
// disk is about to be made here.
func (c claim) promised(m mirror.Member) *mirror.Refusal {
	switch placed := c.root.Annotations[v1alpha1.AnnotationPlacedIn]; {
	case placed != "" && placed != m.ClusterID:
		return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is being provisioned in %s, where another Pod of the claim was bound first: this Pod waits for the outcome. If the volume is provisioned there, the Pod fails, and its owner replaces it",
			c.name, memberOf(c.volume, placed)).problem
	case c.root.DeletionTimestamp != nil && c.leaf == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "claim %q is being deleted: no volume is provisioned for it any more. Use another claim", c.name).problem
	}
	return nil
}

// stranded reports whether the disk of a promise was made in another member, for good.
func (c claim) stranded(m mirror.Member) bool {
	if c.volume == nil || !hostpv.IsPromise(c.volume) || hostpv.WhenUnused(c.volume) {
		return false
	}
	cluster, _, _, fulfilled := hostpv.LeafOf(c.volume)
	return fulfilled && cluster != m.ClusterID
}

// unseen reports whether the claim is bound to a promise that the cache does not
// have yet.
func (c claim) unseen() bool {
	return c.root != nil && c.volume == nil && hostpv.NamesPromise(c.root.Spec.VolumeName)
}

// occupied says why a Pod waits for a volume that goes with its last Pod, and that
// another member still has.
func (c claim) occupied(cluster string) *mirror.Refusal {
	if c.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return refuse(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %q is in %s and stays there when no Pod uses it: volume %q has policy Retain. Run the Pod there, with nodeSelector %s=%s, or use another claim",
			c.name, memberOf(c.volume, cluster), c.volume.Name, v1alpha1.LabelClusterID, cluster).problem
	}
	return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is in %s: this Pod waits until no Pod there uses the volume. Delete those Pods; give a Deployment the strategy Recreate, since it keeps the old Pod until the new one runs. If that member is lost, an admin can abandon the volume, by annotation %s=true on volume %q, or delete its registration with %s=true",
		c.name, memberOf(c.volume, cluster), v1alpha1.AnnotationAbandon, c.volume.Name, v1alpha1.AnnotationForceDeregister).problem
}

// memberOf names the member that has a volume of the host, or is to provision it: its
// identity alone only where the volume does not name it.
func memberOf(pv *corev1.PersistentVolume, cluster string) string {
	if pv != nil && pv.Labels[v1alpha1.LabelClusterID] == cluster && pv.Labels[v1alpha1.LabelCluster] != "" {
		return fmt.Sprintf("member %q", pv.Labels[v1alpha1.LabelCluster])
	}
	return "the member with cluster ID " + cluster
}

// released reports whether the disk of a claim, which goes with its last Pod, is
// being destroyed, by what was seen.
func (c claim) released() bool { return c.volume != nil && hostpv.Releasing(c.volume) }

// settled proves by live reads that none of the Pod's disks is being released: who
// releases one marks it first, and looks for Pods like this one then. Nor may one
// say that it is unused: the mark of a time that is over could outlive this Pod, if
// the manager ends, and the grace would be measured from then.
func (r *reconciler) settled(ctx context.Context, o observed) (bool, error) {
	for _, c := range o.claims {
		if c.volume == nil || !hostpv.WhenUnused(c.volume) {
			continue
		}
		pv, err := index.Find[corev1.PersistentVolume](ctx, r.HostLive, index.Named(c.volume.Name))
		if err != nil || pv == nil || pv.UID != c.volume.UID || hostpv.Releasing(pv) || hostpv.MarkedUnused(pv) || pv.Labels[v1alpha1.LabelClusterID] != r.ClusterID {
			return false, err // its event wakes us
		}
	}
	return true, nil
}
