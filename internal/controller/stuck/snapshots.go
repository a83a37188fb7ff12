package stuck

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/wording"
)

// deletingContents returns the host contents that are being deleted and whose snapshots are in a
// cluster.
func (w *Watcher) deletingContents(ctx context.Context, clusterID string) ([]snapshotv1.VolumeSnapshotContent, error) {
	if w.Snapshots == nil || w.Snapshots.ServedCache() == nil {
		return nil, nil
	}
	contents, err := index.HostContentsIn(ctx, w.Client, clusterID)
	return slices.DeleteFunc(contents, func(c snapshotv1.VolumeSnapshotContent) bool { return c.DeletionTimestamp == nil }), err
}

// causeOfSnapshots reports which snapshots block a claim's deletion. The host's snapshot-controller
// protects the claim until they are ready.
func (w *Watcher) causeOfSnapshots(ctx context.Context, cr *v1alpha1.ClusterRegistration, claim *corev1.PersistentVolumeClaim) (account.DeletionCause, error) {
	if w.Snapshots == nil || w.Snapshots.ServedCache() == nil || !slices.Contains(claim.Finalizers, snapshot.FinalizerSource) {
		return noCause, nil
	}
	all, err := index.SnapshotsOfClaim(ctx, w.Client, client.ObjectKeyFromObject(claim))
	if err != nil {
		return noCause, err
	}
	var names []string
	for i := range all {
		if status := all[i].Status; status == nil || !ptr.Deref(status.ReadyToUse, false) {
			names = append(names, fmt.Sprintf("%q", all[i].Name))
		}
	}
	return causeOfUnreadySnapshots(names, causeOfAwayMember(cr)), nil
}

// causeOfExistingRoot explains why a host content exists as long as its VolumeSnapshot, or returns none. The host's
// snapshot-controller announces on the content that the VolumeSnapshot is being deleted.
func (w *Watcher) causeOfExistingRoot(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (account.DeletionCause, error) {
	key := snapshot.RootSnapshotKey(content)
	root, err := index.FindObject[snapshotv1.VolumeSnapshot](ctx, w.Client, key)
	switch {
	case err != nil || root == nil || root.UID != content.Spec.VolumeSnapshotRef.UID:
		return noCause, err
	case root.DeletionTimestamp == nil:
		return formatCause(account.CauseSnapshots, "VolumeSnapshot %q still exists, and Xylem keeps its content and its data until it is deleted. Delete that VolumeSnapshot if nobody needs the data", key), nil
	case snapshot.IsSnapshotBeingDeleted(content):
		return noCause, nil
	}
	claims, err := index.UnfilledClaimsFromSnapshot(ctx, w.Client, key)
	if err != nil {
		return noCause, err
	}
	claims = slices.DeleteFunc(claims, func(c corev1.PersistentVolumeClaim) bool { return c.Status.Phase != corev1.ClaimPending })
	if len(claims) == 0 {
		return formatCause(account.CausePending, "the host's snapshot-controller has not announced on the content that VolumeSnapshot %q is being deleted. Check that the snapshot-controller is running", key), nil
	}
	var names []string
	for i := range claims {
		names = append(names, fmt.Sprintf("%q", claims[i].Name))
	}
	slices.Sort(names)
	return formatCause(account.CauseUsed, "the host's snapshot-controller keeps VolumeSnapshot %q until no claim is restored from it (PersistentVolumeClaim %s). The deletion continues when these claims are bound or deleted", key, wording.FirstNames(names, wording.NamesListed, ", ")), nil
}

// causeOfUnreadySnapshots names the snapshots that a claim's deletion is waiting for and, if the member is
// away, reports why they are not ready.
func causeOfUnreadySnapshots(names []string, away account.DeletionCause) account.DeletionCause {
	if len(names) == 0 {
		return noCause
	}
	slices.Sort(names)
	text := "the host's snapshot-controller keeps the claim until its snapshots are ready (VolumeSnapshot " + wording.FirstNames(names, wording.NamesListed, ", ") + ")"
	if away != noCause {
		return formatCause(away.Kind, "%s, but %s", text, away.Text)
	}
	return formatCause(account.CauseSnapshots, "%s. Delete these snapshots if nobody needs them", text)
}

// explainContent explains why a leaf content still exists, from the errors that its driver reports.
func (e *explainer) explainContent(ctx context.Context, name string) (account.DeletionCause, error) {
	if e.LeafSnapshotCache() == nil {
		if e.Snapshots != nil {
			if problem, known := e.Snapshots.ReadProblem(); known && problem != nil {
				return formatCause(account.CauseSnapshots, "%s", problem.Message), nil
			}
		}
		return noCause, nil
	}
	content, err := index.FindObject[snapshotv1.VolumeSnapshotContent](ctx, e.LeafSnapshotCache(), index.ClusterScopedKey(name))
	if err != nil || content == nil {
		return noCause, err
	}
	ref := content.Spec.VolumeSnapshotRef
	taken, err := index.FindObject[snapshotv1.VolumeSnapshot](ctx, e.LeafSnapshotCache(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return noCause, err
	}
	if taken == nil || taken.UID != ref.UID {
		if why := causeOfUnannounced(content); why != noCause {
			return why, nil
		}
	}
	events, err := index.LeafEventsOf(ctx, e.Cache, metav1.NamespaceAll, content.UID)
	if err != nil {
		return noCause, err
	}
	return causeOfContent(content, latestEvent(events, kindContent, name)), nil
}

// causeOfUnannounced explains why a leaf content without a VolumeSnapshot is not deleted, or returns none. The
// csi-snapshotter waits for an annotation that the snapshot-controller sets when the VolumeSnapshot
// is deleted, unless somebody removed the finalizers of the VolumeSnapshot
// (external-snapshotter/pkg/sidecar-controller: shouldDelete).
func causeOfUnannounced(content *snapshotv1.VolumeSnapshotContent) account.DeletionCause {
	ref := content.Spec.VolumeSnapshotRef
	if content.DeletionTimestamp == nil || ref.UID == "" || snapshot.IsSnapshotBeingDeleted(content) {
		return noCause
	}
	return formatCause(account.CausePending, "the csi-snapshotter does not delete snapshot %q, because VolumeSnapshot \"%s/%s\" is gone, but its deletion was not announced: somebody removed its finalizers. To delete the snapshot, annotate VolumeSnapshotContent %[1]q with %[4]s=yes",
		content.Name, ref.Namespace, ref.Name, snapshot.AnnBeingDeleted)
}

// causeOfContent returns why a leaf content still exists. warning is the latest warning event about it, or
// nil. The csi-snapshotter reports a failed deletion only in an event, without the driver's error.
func causeOfContent(content *snapshotv1.VolumeSnapshotContent, warning *corev1.Event) account.DeletionCause {
	if content.Status != nil && content.Status.Error != nil {
		return formatCause(account.CauseProvisioner, "the driver did not delete snapshot %q: %s", content.Name, ptr.Deref(content.Status.Error.Message, ""))
	}
	if at := content.DeletionTimestamp; at != nil {
		if why := causeOfFinalizers(content, noCause); why != noCause {
			return formatCause(why.Kind, "snapshot %q is %s", content.Name, why.Text)
		}
		if warning != nil && !warning.LastTimestamp.Before(at) {
			return formatCause(account.CauseProvisioner, "the member did not delete snapshot %q: %s. The log of the driver's csi-snapshotter shows why", content.Name, warning.Message)
		}
	}
	return formatCause(account.CausePending, "snapshot %q still exists (policy %s), and its csi-snapshotter reports nothing. Check that the snapshot-controller and the csi-snapshotter are running", content.Name, content.Spec.DeletionPolicy)
}

// snapshotsOfVolume returns the names of the member's contents that have snapshots of a leaf PV.
func (e *explainer) snapshotsOfVolume(ctx context.Context, pv *corev1.PersistentVolume) ([]string, error) {
	if e.LeafSnapshotCache() == nil || pv.Spec.CSI == nil {
		return nil, nil
	}
	driver, handle := mirror.VolumeSourceOf(pv)
	var list snapshotv1.VolumeSnapshotContentList
	if err := e.LeafSnapshotCache().List(ctx, &list, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the snapshots of volume %s: %w", pv.Name, err)
	}
	var names []string
	for i := range list.Items {
		spec := &list.Items[i].Spec
		if spec.Driver == driver && ptr.Deref(spec.Source.VolumeHandle, "") == handle {
			names = append(names, fmt.Sprintf("%q of VolumeSnapshot %q", list.Items[i].Name, snapshot.RootSnapshotKey(&list.Items[i])))
		}
	}
	slices.Sort(names)
	return names, nil
}
