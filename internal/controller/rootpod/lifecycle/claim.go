package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// Claim is one claim of the Pod.
type Claim struct {
	Name string
	// Root claim; Volume is the host PV that it is bound to, UIDs agreeing.
	Root   *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Leaf claim of this root, and whether its class waits for a consumer.
	Leaf      *corev1.PersistentVolumeClaim
	LeafWaits bool
	// Mirrored: there is no leaf claim, and the host has a PV of this member for the
	// claim. Looked up only while the Pod has no node and its leaf is gone.
	Mirrored bool
	// Foreign: the Pod's generic ephemeral volume wants that name, and the claim is
	// not the Pod's.
	Foreign bool
	// Shared: other Pods that have not ended use the unbound claim.
	Shared bool
}

// here reports why a claim keeps a bound Pod waiting; nil if its volume is in this
// member, or about to be.
func (c Claim) here(m mirror.Member) *mirror.Refusal {
	switch {
	case c.Root == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "there is no claim %q. Create it, or name another one in the Pod", c.Name).Problem
	case c.Foreign:
		return refuse(v1alpha1.ReasonClaimForeign, "claim %q, which the Pod's ephemeral volume needs, exists already and does not belong to the Pod. Delete that claim, or rename the Pod", c.Name).Problem
	case c.unseen():
		return nil
	case c.Root.Spec.VolumeName == "" || c.Volume == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "claim %q is not bound: somebody set spec.nodeName to %q, so the scheduler does not request its volume. Leave spec.nodeName to the scheduler", c.Name, m.NodeName).Problem
	}
	if hostpv.IsUnfulfilled(c.Volume) {
		return c.promised(m)
	}
	cluster, _, _, ours := hostpv.LeafOf(c.Volume)
	switch {
	case ours && cluster != m.ClusterID && hostpv.WhenUnused(c.Volume):
		return c.occupied(cluster)
	case !ours || cluster != m.ClusterID:
		return refuse(v1alpha1.ReasonVolumeUnreachable, "claim %q is bound to volume %q, which member %q cannot reach. Run the Pod where the volume is, or use another claim", c.Name, c.Volume.Name, m.Registration).Problem
	}
	return nil
}

// promised reports why a promise without a disk keeps a bound Pod waiting; nil if the
// disk is about to be created here.
func (c Claim) promised(m mirror.Member) *mirror.Refusal {
	switch placed := c.Root.Annotations[v1alpha1.AnnotationPlacedIn]; {
	case placed != "" && placed != m.ClusterID:
		return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is being provisioned in %s, to which another Pod of the claim was bound first: this Pod waits for the outcome. If that succeeds, Xylem fails this Pod, and its owner replaces it",
			c.Name, memberOf(c.Volume, placed)).Problem
	case c.Root.DeletionTimestamp != nil && c.Leaf == nil:
		return refuse(v1alpha1.ReasonClaimNotBound, "claim %q is being deleted, and gets no volume. Use another claim", c.Name).Problem
	}
	return nil
}

// stranded reports whether the disk of a promise was created in another member, permanently.
func (c Claim) stranded(m mirror.Member) bool {
	if c.Volume == nil || !hostpv.IsPromise(c.Volume) || hostpv.WhenUnused(c.Volume) {
		return false
	}
	cluster, _, _, fulfilled := hostpv.LeafOf(c.Volume)
	return fulfilled && cluster != m.ClusterID
}

// unseen reports whether the claim is bound to a promise that the cache does not
// have yet.
func (c Claim) unseen() bool {
	return c.Root != nil && c.Volume == nil && hostpv.NamesPromise(c.Root.Spec.VolumeName)
}

// occupied reports why a Pod waits for a volume that goes with its last Pod, and that
// another member still has.
func (c Claim) occupied(cluster string) *mirror.Refusal {
	if c.Volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return refuse(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %q is in %s, and Xylem keeps it there when no Pod uses it, because volume %q has policy Retain. Run the Pod there, with nodeSelector %s=%s, or use another claim",
			c.Name, memberOf(c.Volume, cluster), c.Volume.Name, v1alpha1.LabelClusterID, cluster).Problem
	}
	return refuse(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is in %s: this Pod waits until no Pod there uses the volume. Delete those Pods; give a Deployment the strategy Recreate, since it keeps the old Pod until the new one runs. If that member is lost, an admin can abandon the volume, by annotation %s=true on volume %q, or delete its registration with %s=true",
		c.Name, memberOf(c.Volume, cluster), v1alpha1.AnnotationAbandon, c.Volume.Name, v1alpha1.AnnotationForceDeregister).Problem
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
func (c Claim) released() bool { return c.Volume != nil && hostpv.Releasing(c.Volume) }
