package guarded

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded/precondition"
	"github.com/xylem-io/xylem/internal/guarded/results"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/weigh"
)

// Leaf writes to a member: to objects with this host's stamp, and to the volumes of stamped claims.
type Leaf struct {
	writer
	hostID string
}

// NewLeaf creates the writer for one member. cluster is the registration's name.
func NewLeaf(c client.Client, hostID, cluster string, guard Guard) *Leaf {
	return &Leaf{writer: newWriter(c, cluster, results.Leaf, guard), hostID: hostID}
}

// Create creates a stamped object. It returns AlreadyExists unchanged, because only the next
// observation shows who owns the other object.
func (l *Leaf) Create(ctx context.Context, by Actor, obj client.Object) error {
	if err := l.owned(obj); err != nil {
		return err
	}
	if err := fits(nil, obj); err != nil {
		return err
	}
	return l.create(ctx, by, obj)
}

// TryCreate creates a stamped object in a dry run, and returns the member's result.
func (l *Leaf) TryCreate(ctx context.Context, by Actor, obj client.Object) error {
	if err := l.owned(obj); err != nil {
		return err
	}
	if err := l.guard.Held(); err != nil {
		return err
	}
	return results.Count(l.cluster, l.side, "try_create", obj, l.client.Create(ctx, obj, by.owner(), client.DryRunAll))
}

// Patch changes a stamped object from before to after. Use PatchVolume to change a PV, and
// PatchContent to change a content.
func (l *Leaf) Patch(ctx context.Context, by Actor, before, after client.Object) error {
	switch before.(type) {
	case *corev1.PersistentVolume, *snapshotv1.VolumeSnapshotContent:
		return foreign(before, "a volume or snapshot content must be changed with PatchVolume or PatchContent")
	}
	if err := l.owned(before); err != nil {
		return err
	}
	if err := fits(before, after); err != nil {
		return err
	}
	return l.patch(ctx, by, before, after)
}

// AddEphemeralContainers adds the ephemeral containers of after to a stamped Pod.
func (l *Leaf) AddEphemeralContainers(ctx context.Context, by Actor, before, after *corev1.Pod) error {
	if err := l.owned(before); err != nil {
		return err
	}
	if err := fits(before, after); err != nil {
		return err
	}
	const subresource = "ephemeralcontainers"
	return l.patching(ctx, "patch_"+subresource, before, after, func() error {
		return l.client.SubResource(subresource).Patch(ctx, after, precondition.Patch(before), by.owner())
	})
}

// Delete deletes a stamped object that holds no data. Use DeleteClaim and DestroyClaim to
// delete a claim, DeleteNamespace to delete a namespace, and DeleteSnapshot, DestroySnapshot and
// DestroyContent to delete a snapshot's objects. No method deletes a PV.
func (l *Leaf) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := l.owned(obj); err != nil {
		return err
	}
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent, *corev1.Namespace:
		return fmt.Errorf("delete %T %s without evidence: %w", obj, client.ObjectKeyFromObject(obj), proof.ErrUnproven)
	}
	return l.delete(ctx, obj, opts...)
}

// DeleteNamespace deletes a stamped namespace if the evidence covers it and destruction is allowed.
func (l *Leaf) DeleteNamespace(ctx context.Context, namespace *corev1.Namespace, evidence proof.Evidence) error {
	if err := l.covered(ctx, evidence, proof.DeleteNamespace, namespace); err != nil {
		return err
	}
	return l.delete(ctx, namespace)
}

// DeleteClaim deletes a stamped claim whose data is kept, if the claim is unchanged, the evidence covers
// it and destruction is allowed. The claim may have been bound since it was read.
func (l *Leaf) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, evidence proof.Keeps) error {
	if err := l.covered(ctx, evidence, proof.DeleteClaim, claim); err != nil {
		return err
	}
	return l.delete(ctx, claim, precondition.Unchanged(claim))
}

// DestroyClaim deletes a stamped claim, and its volume if the volume has policy Delete, if the evidence
// covers it, nobody needs the data, and destruction is allowed. A claim whose volume was never mirrored
// must also be unchanged, because it may have been bound to another volume since it was read.
func (l *Leaf) DestroyClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, nobody proof.Unneeded, evidence proof.Destroys) error {
	if err := l.covered(ctx, proof.Destruction(nobody, evidence), proof.DeleteClaim, claim); err != nil {
		return err
	}
	if _, unmirrored := evidence.(proof.Unmirrored); unmirrored {
		return l.delete(ctx, claim, precondition.Unchanged(claim))
	}
	return l.delete(ctx, claim)
}

// SetDelete sets the reclaim policy of a stamped PV to Delete, if the evidence covers it, nobody needs
// the data, and destruction is allowed. It returns the PV as the member then had it.
func (l *Leaf) SetDelete(ctx context.Context, by Actor, volume *corev1.PersistentVolume, nobody proof.Unneeded, evidence proof.Destroys) (*corev1.PersistentVolume, error) {
	if err := l.covered(ctx, proof.Destruction(nobody, evidence), proof.SetDelete, volume); err != nil {
		return nil, err
	}
	after := volume.DeepCopy()
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	return after, l.patch(ctx, by, volume, after)
}

func (l *Leaf) covered(ctx context.Context, evidence proof.Evidence, action proof.Action, obj client.Object) error {
	if err := l.owned(obj); err != nil {
		return err
	}
	if err := covers(evidence, action, obj); err != nil {
		return err
	}
	return l.mayDestroy(ctx)
}

func covers(evidence proof.Evidence, action proof.Action, obj client.Object) error {
	if evidence == nil {
		return fmt.Errorf("%T %s: %w", obj, client.ObjectKeyFromObject(obj), proof.ErrUnproven)
	}
	return proof.Covers(evidence, action, obj)
}

// RequestToken requests a ServiceAccount token and stores it in review. It changes nothing in the
// member.
func (l *Leaf) RequestToken(ctx context.Context, by Actor, account *corev1.ServiceAccount, review *authenticationv1.TokenRequest) error {
	if err := l.guard.Held(); err != nil {
		return err
	}
	return results.Count(l.cluster, l.side, "create_token", account, l.client.SubResource("token").Create(ctx, account, review, by.owner()))
}

// mayDestroy is called immediately before a destructive write, so that it checks the host after the
// live reads on which the write depends.
func (l *Leaf) mayDestroy(ctx context.Context) error {
	if err := l.guard.MayDestroy(); err != nil {
		return err
	}
	return l.guard.HostCurrent(ctx)
}

// PatchVolume changes a leaf PV that has this host's stamp, or is bound to the given leaf claim
// with matching UIDs. Only SetDelete can set its policy to Delete.
func (l *Leaf) PatchVolume(ctx context.Context, by Actor, before, after *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if l.owned(before) != nil && !l.holds(claim, before) {
		return foreign(before, "neither the volume nor its claim has Xylem's stamp")
	}
	if after.Spec.PersistentVolumeReclaimPolicy != before.Spec.PersistentVolumeReclaimPolicy &&
		after.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return fmt.Errorf("set volume %s to Delete without evidence: %w", before.Name, proof.ErrUnproven)
	}
	return l.patch(ctx, by, before, after)
}

// TakeVolume stamps the leaf PV that an admin's host PV represents, and sets it to Retain. The
// member's admin must have consented, and the PV must not be in use by a claim. As with every
// patch, the resourceVersion proves that the PV is unchanged.
func (l *Leaf) TakeVolume(ctx context.Context, by Actor, before, after, host *corev1.PersistentVolume) error {
	_, leaf, uid, ours := hostpv.LeafOf(host)
	origin, stamped := mirror.OriginIn(l.hostID, before)
	switch {
	case !ours || !hostpv.Imported(host) || leaf != before.Name || uid != before.UID:
		return foreign(before, "no host PV created by an admin represents it")
	case !hostpv.Consented(before, l.hostID):
		return foreign(before, "the member's admin did not hand it over to this host")
	case stamped && origin.Root.Namespace != "":
		return foreign(before, "it is stamped for a claim")
	case before.Status.Phase != corev1.VolumeAvailable && before.Status.Phase != corev1.VolumeReleased || before.DeletionTimestamp != nil:
		return foreign(before, "it is in use")
	case after.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return foreign(before, "the change does not set its policy to Retain")
	}
	return l.patch(ctx, by, before, after)
}

func (l *Leaf) holds(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return claim != nil && l.owned(claim) == nil && claim.Spec.VolumeName == volume.Name && hostpv.HeldBy(volume, claim)
}

func (l *Leaf) owned(obj client.Object) error {
	if _, ours := mirror.OriginIn(l.hostID, obj); ours {
		return nil
	}
	// A namespace's stamp consists only of labels, because a namespace has no root. The fence's
	// Lease is written by internal/member, not by this package.
	if labels := obj.GetLabels(); rootless(obj) && labels[v1alpha1.LabelHost] == l.hostID &&
		labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue {
		return nil
	}
	return foreign(obj, "it lacks the stamp of this host")
}

// fits returns an error, like that of an API server, if a write makes a leaf so large that a few of them
// would exceed the limits of the member's responses and caches. Tenants choose the contents of leaves.
func fits(before, after client.Object) error {
	if !mirror.TooLarge(after) || before != nil && weigh.Object(after) <= weigh.Object(before) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError("the object would take more than " + mirror.SizeLimitText + " of the manager's memory, because it has too many parts")
}

func rootless(obj client.Object) bool {
	_, namespace := obj.(*corev1.Namespace)
	return namespace
}

// Grace returns the delete option for a Pod's grace period in seconds.
func Grace(seconds *int64) client.DeleteOption {
	return client.GracePeriodSeconds(ptr.Deref(seconds, corev1.DefaultTerminationGracePeriodSeconds))
}
