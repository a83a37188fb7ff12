package rootpod

import (
	"context"

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
		return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %s is being made in cluster %s, where another Pod of it landed before this one: this Pod waits until it is made there, and fails then, or taken back",
			c.name, placed).problem
	case c.root.DeletionTimestamp != nil && c.leaf == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "claim %s is being deleted: no volume is made for it any more", c.name).problem
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
		return refuse(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %s is in cluster %s and is kept there, also when no Pod uses it, since it is to be retained (volume %s has policy Retain): run the Pod there, with nodeSelector %s=%s, or use another claim",
			c.name, cluster, c.volume.Name, v1alpha1.LabelClusterID, cluster).problem
	}
	return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %s is in cluster %s: this Pod waits until it is released there, which takes that no Pod there uses it (a Deployment that keeps the old Pod until the new one runs never gets there: give it strategy Recreate). If that cluster is lost, an admin has to let go of what is there: by annotation %s=true on volume %s, or by deleting its registration with %s=true",
		c.name, cluster, v1alpha1.AnnotationAbandon, c.volume.Name, v1alpha1.AnnotationForceDeregister).problem
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
