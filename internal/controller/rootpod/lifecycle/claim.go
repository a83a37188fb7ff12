package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
)

// Claim is one of the Pod's claims, as observed in the host and the member.
type Claim struct {
	Name string
	// Root is the claim in the host. Volume is the host PV that it is bound to, if the UIDs
	// match.
	Root   *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// ProvisionedByXylem means that Xylem provisions the unbound claim: its annotation storage-provisioner, or its class before
	// kube-controller-manager has written that annotation, names Xylem.
	ProvisionedByXylem bool
	// Leaf is the root's leaf claim. LeafClassWaits means that its class waits for a consumer.
	Leaf           *corev1.PersistentVolumeClaim
	LeafClassWaits bool
	// BoundHere means that live reads show that this member has bound the claim: its leaf claim is bound,
	// or a host PV represents this member's volume, or records a copy in this member. It is read only to
	// prove that a leaf was withdrawn.
	BoundHere bool
	// NotOwnedByPod means that the Pod needs a claim with this name for a generic ephemeral volume, but
	// does not own the existing one.
	NotOwnedByPod bool
	// NeedsVolumeCopy means that another member has the claim's volume, and that this member shares its
	// backend. Leaf is then the claim of this member's copy, once it is bound.
	NeedsVolumeCopy bool
	// GroupsUnknown means that the claim's volume is in this member and can be used by some of its nodes only, but that the
	// host PV does not show by which groups: it was created before the member had groups, or is reachable from other members.
	GroupsUnknown bool
	// UsedByOlderPod means that an older unfinished Pod uses the unbound claim. It is read only if the scheduler does
	// not nominate nodes.
	UsedByOlderPod bool
	// WantedByOtherPod means that another Pod that uses the unbound claim is about to be bound to this member's node. It
	// is read only if the scheduler lost the Pod's nomination.
	WantedByOtherPod bool
}

// whyPodMustWait reports why a bound Pod must wait for a claim. It returns nil if the claim's volume is
// in this member, or will be.
func (c Claim) whyPodMustWait(m mirror.Member) *mirror.Refusal {
	switch {
	case c.Root == nil:
		return refusalDecision(v1alpha1.ReasonClaimNotBound, "no claim %q. Create it, or name another one in the Pod", c.Name).Problem
	case c.NotOwnedByPod:
		return refusalDecision(v1alpha1.ReasonClaimForeign, "claim %q, which the Pod's ephemeral volume needs, already exists and does not belong to the Pod. Delete that claim, or rename the Pod", c.Name).Problem
	case c.promiseNotCached():
		return nil
	case c.Root.Spec.VolumeName != "" && c.Volume == nil:
		return refusalDecision(v1alpha1.ReasonClaimNotBound, "claim %q names PersistentVolume %q, which does not exist, or is not bound to the claim. The claim's events and conditions show why", c.Name, c.Root.Spec.VolumeName).Problem
	case c.Root.Spec.VolumeName == "":
		return refusalDecision(v1alpha1.ReasonClaimNotBound, "claim %q is not bound: somebody set the Pod's spec.nodeName to %q, so the scheduler does not request the claim's volume. Let the scheduler set spec.nodeName", c.Name, m.NodeName).Problem
	}
	if hostpv.IsUnfulfilledPromise(c.Volume) {
		return c.whyPromiseMustWait(m)
	}
	if _, asks := hostpv.RequestedImportIn(c.Volume, m.ClusterID); asks {
		return refusalDecision(v1alpha1.ReasonAdoptionRefused, "claim %q is bound to PersistentVolume %q, which has not adopted its volume in member %q yet. "+
			"Check the claim's condition %s and the events of the PersistentVolume", c.Name, c.Volume.Name, m.Registration, v1alpha1.ClaimPlaced).Problem
	}
	cluster, _, _, ours := hostpv.LeafOfHostVolume(c.Volume)
	switch {
	case c.NeedsVolumeCopy:
		return nil
	case ours && cluster != m.ClusterID && hostpv.ReleasesWhenUnused(c.Volume):
		return c.whyVolumeOccupied(cluster)
	case !ours || cluster != m.ClusterID:
		return refusalDecision(v1alpha1.ReasonVolumeUnreachable, "claim %q is bound to volume %q, which member %q cannot reach. Run the Pod where the volume is, or use another claim", c.Name, c.Volume.Name, m.Registration).Problem
	}
	return nil
}

// pendingHere reports whether a bound Pod must wait for the claim, although it is, or will be, in this member.
func (c Claim) pendingHere(m mirror.Member) bool {
	return c.awaitsLeafClaim() || c.promiseNotCached() || c.diskBeingReleased() || c.bindingHere(m)
}

// bindingHere reports whether the claim's volume is, or will be, requested in this member, or the claim is Bound and its
// host PV is not in the cache yet. The scheduler binds a Pod as soon as its claims are bound, and the Pod's
// event may precede the claim's and the PV's, which enqueue the Pod again.
func (c Claim) bindingHere(m mirror.Member) bool {
	switch {
	case c.Root == nil || c.NotOwnedByPod || c.Root.DeletionTimestamp != nil || c.Volume != nil || c.promiseNotCached():
		return false
	case c.Root.Spec.VolumeName == "":
		placed := c.Root.Annotations[v1alpha1.AnnotationPlacedIn]
		return c.ProvisionedByXylem && m.HasNode(c.Root.Annotations[route.AnnSelectedNode]) && (placed == "" || placed == m.ClusterID)
	}
	return c.Root.Status.Phase == corev1.ClaimBound
}

// volumeAllowsNode reports whether the node affinity of a bound claim's volume allows a node.
func (c Claim) volumeAllowsNode(node *corev1.Node) bool {
	return node != nil && c.Volume != nil && volumehelpers.CheckNodeAffinity(c.Volume, node.Labels) == nil
}

// deletingWithDisk reports whether the claim is being deleted and its disk exists. As with a kubelet, no
// further Pod can then use it. `kubectl xylem move` relies on this.
func (c Claim) deletingWithDisk() bool {
	return c.Root != nil && c.Root.DeletionTimestamp != nil && c.Volume != nil && !hostpv.IsUnfulfilledPromise(c.Volume)
}

// whyPromiseMustWait reports why a bound Pod must wait for a promise without a disk. It returns nil if
// this member will provision the disk.
func (c Claim) whyPromiseMustWait(m mirror.Member) *mirror.Refusal {
	switch placed := c.Root.Annotations[v1alpha1.AnnotationPlacedIn]; {
	case placed != "" && placed != m.ClusterID:
		return refusalDecision(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is being provisioned in %s, to which another Pod that uses the claim was bound first: this Pod waits for the outcome. If provisioning succeeds, Xylem fails this Pod, and its owner replaces it",
			c.Name, describeMember(c.Volume, placed)).Problem
	case c.Root.DeletionTimestamp != nil && c.Leaf == nil:
		return refusalDecision(v1alpha1.ReasonClaimNotBound, "claim %q is being deleted, so no volume is provisioned for it. Use another claim", c.Name).Problem
	}
	return nil
}

// strandedInOtherMember reports whether the disk of a promise was permanently provisioned in another
// member.
func (c Claim) strandedInOtherMember(m mirror.Member) bool {
	if c.Volume == nil || !hostpv.IsPromise(c.Volume) || hostpv.ReleasesWhenUnused(c.Volume) {
		return false
	}
	cluster, _, _, fulfilled := hostpv.LeafOfHostVolume(c.Volume)
	return fulfilled && cluster != m.ClusterID
}

// promiseNotCached reports whether the claim is bound to a promise that is not in the cache yet.
func (c Claim) promiseNotCached() bool {
	return c.Root != nil && c.Volume == nil && hostpv.IsPromiseName(c.Root.Spec.VolumeName)
}

// whyVolumeOccupied reports why a Pod must wait for a volume that is released with its last Pod and is
// still in another member.
func (c Claim) whyVolumeOccupied(cluster string) *mirror.Refusal {
	if c.Volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return refusalDecision(v1alpha1.ReasonVolumeUnreachable, "the volume of claim %q is in %s, and Xylem keeps it there when no Pod uses it, because volume %q has policy Retain. Run the Pod in that member, with nodeSelector %s=%s, or use another claim",
			c.Name, describeMember(c.Volume, cluster), c.Volume.Name, v1alpha1.LabelClusterID, cluster).Problem
	}
	return refusalDecision(v1alpha1.ReasonPlacedElsewhere, "the volume of claim %q is in %s: this Pod waits until no Pod in that member uses the volume. Delete the Pods that use the volume. In a Deployment, use the Recreate strategy, because a rolling update keeps the old Pod until the new one runs. If that member is lost, an admin can abandon the volume with annotation %s=true on volume %q, or delete the member's registration with annotation %s=true",
		c.Name, describeMember(c.Volume, cluster), v1alpha1.AnnotationAbandon, c.Volume.Name, v1alpha1.AnnotationForceDeregister).Problem
}

// describeMember names the member that has a host PV's volume or will provision it. It uses the
// cluster ID only if the volume does not name the member.
func describeMember(pv *corev1.PersistentVolume, cluster string) string {
	if pv != nil && pv.Labels[v1alpha1.LabelClusterID] == cluster && pv.Labels[v1alpha1.LabelCluster] != "" {
		return fmt.Sprintf("member %q", pv.Labels[v1alpha1.LabelCluster])
	}
	return "the member with cluster ID " + cluster
}

// diskBeingReleased reports whether the claim's disk is marked for release.
func (c Claim) diskBeingReleased() bool { return c.Volume != nil && hostpv.IsReleasingDisk(c.Volume) }

// awaitsLeafClaim reports whether root_pvc has not created the leaf claim yet. root_pod itself creates the
// copy of a shared volume.
func (c Claim) awaitsLeafClaim() bool { return c.Leaf == nil && !c.NeedsVolumeCopy }
