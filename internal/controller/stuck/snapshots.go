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
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/mirror/volumesource"
	"github.com/xylem-io/xylem/internal/text"
)

// endingContents returns the host contents that are being deleted and whose snapshots are in a
// cluster.
func (w *Watcher) endingContents(ctx context.Context, clusterID string) ([]snapshotv1.VolumeSnapshotContent, error) {
	if w.Snapshots == nil || w.Snapshots.Cache() == nil {
		return nil, nil
	}
	contents, err := index.SnapshotsIn(ctx, w.Client, clusterID)
	return slices.DeleteFunc(contents, func(c snapshotv1.VolumeSnapshotContent) bool { return c.DeletionTimestamp == nil }), err
}

// ofSnapshots reports which snapshots block a claim's deletion. The host's snapshot-controller
// protects the claim until they are ready.
func (w *Watcher) ofSnapshots(ctx context.Context, cr *v1alpha1.ClusterRegistration, claim *corev1.PersistentVolumeClaim) (account.Cause, error) {
	if w.Snapshots == nil || w.Snapshots.Cache() == nil || !slices.Contains(claim.Finalizers, snapshot.FinalizerSource) {
		return none, nil
	}
	all, err := index.SnapshotsOfClaim(ctx, w.Client, client.ObjectKeyFromObject(claim))
	if err != nil {
		return none, err
	}
	var names []string
	for i := range all {
		if status := all[i].Status; status == nil || !ptr.Deref(status.ReadyToUse, false) {
			names = append(names, fmt.Sprintf("%q", all[i].Name))
		}
	}
	return heldBySnapshots(names, away(cr)), nil
}

// heldByRoot explains why a host content exists as long as its VolumeSnapshot, or returns none. The host's
// snapshot-controller announces on the content that the VolumeSnapshot is being deleted.
func (w *Watcher) heldByRoot(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (account.Cause, error) {
	key := snapshot.RootOf(content)
	root, err := index.Find[snapshotv1.VolumeSnapshot](ctx, w.Client, key)
	switch {
	case err != nil || root == nil || root.UID != content.Spec.VolumeSnapshotRef.UID:
		return none, err
	case root.DeletionTimestamp == nil:
		return because(account.CauseSnapshots, "VolumeSnapshot %q still exists, and Xylem keeps its content and its data until it is deleted. Delete that VolumeSnapshot if nobody needs the data", key), nil
	case snapshot.Announced(content):
		return none, nil
	}
	claims, err := index.RestoresOf(ctx, w.Client, key)
	if err != nil {
		return none, err
	}
	claims = slices.DeleteFunc(claims, func(c corev1.PersistentVolumeClaim) bool { return c.Status.Phase != corev1.ClaimPending })
	if len(claims) == 0 {
		return because(account.CausePending, "the host's snapshot-controller has not announced on the content that VolumeSnapshot %q is being deleted. Check that the snapshot-controller is running", key), nil
	}
	var names []string
	for i := range claims {
		names = append(names, fmt.Sprintf("%q", claims[i].Name))
	}
	slices.Sort(names)
	return because(account.CauseUsed, "the host's snapshot-controller keeps VolumeSnapshot %q until no claim is restored from it (PersistentVolumeClaim %s). The deletion continues when these claims are bound or deleted", key, text.FirstNames(names, text.NamesListed, ", ")), nil
}

// heldBySnapshots names the snapshots that a claim's deletion is waiting for and, if the member is
// away, reports why they are not ready.
func heldBySnapshots(names []string, away account.Cause) account.Cause {
	if len(names) == 0 {
		return none
	}
	slices.Sort(names)
	text := "the host's snapshot-controller keeps the claim until its snapshots are ready (VolumeSnapshot " + text.FirstNames(names, text.NamesListed, ", ") + ")"
	if away != none {
		return because(away.Kind, "%s, but %s", text, away.Text)
	}
	return because(account.CauseSnapshots, "%s. Delete these snapshots if nobody needs them", text)
}

// content explains why a leaf content still exists, from the errors that its driver reports.
func (e *explainer) content(ctx context.Context, name string) (account.Cause, error) {
	if e.LeafSnapshots() == nil {
		if e.Snapshots != nil {
			if problem, known := e.Snapshots.Problem(); known && problem != nil {
				return because(account.CauseSnapshots, "%s", problem.Message), nil
			}
		}
		return none, nil
	}
	content, err := index.Find[snapshotv1.VolumeSnapshotContent](ctx, e.LeafSnapshots(), index.Named(name))
	if err != nil || content == nil {
		return none, err
	}
	ref := content.Spec.VolumeSnapshotRef
	taken, err := index.Find[snapshotv1.VolumeSnapshot](ctx, e.LeafSnapshots(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return none, err
	}
	if taken == nil || taken.UID != ref.UID {
		if why := unannounced(content); why != none {
			return why, nil
		}
	}
	events, err := index.EventsOf(ctx, e.Cache, metav1.NamespaceAll, content.UID)
	if err != nil {
		return none, err
	}
	return ofContent(content, latest(events, kindContent, name)), nil
}

// unannounced explains why a leaf content without a VolumeSnapshot is not deleted, or returns none. The
// csi-snapshotter waits for an annotation that the snapshot-controller sets when the VolumeSnapshot
// is deleted, unless somebody removed the finalizers of the VolumeSnapshot
// (external-snapshotter/pkg/sidecar-controller: shouldDelete).
func unannounced(content *snapshotv1.VolumeSnapshotContent) account.Cause {
	ref := content.Spec.VolumeSnapshotRef
	if content.DeletionTimestamp == nil || ref.UID == "" || snapshot.Announced(content) {
		return none
	}
	return because(account.CausePending, "the csi-snapshotter does not delete snapshot %q, because VolumeSnapshot \"%s/%s\" is gone, but its deletion was not announced: somebody removed its finalizers. To delete the snapshot, annotate VolumeSnapshotContent %[1]q with %[4]s=yes",
		content.Name, ref.Namespace, ref.Name, snapshot.AnnBeingDeleted)
}

// ofContent returns why a leaf content still exists. warning is the latest warning event about it, or
// nil. The csi-snapshotter reports a failed deletion only in an event, without the driver's error.
func ofContent(content *snapshotv1.VolumeSnapshotContent, warning *corev1.Event) account.Cause {
	if content.Status != nil && content.Status.Error != nil {
		return because(account.CauseProvisioner, "the driver did not delete snapshot %q: %s", content.Name, ptr.Deref(content.Status.Error.Message, ""))
	}
	if at := content.DeletionTimestamp; at != nil {
		if why := waitsFor(content, none); why != none {
			return because(why.Kind, "snapshot %q is %s", content.Name, why.Text)
		}
		if warning != nil && !warning.LastTimestamp.Before(at) {
			return because(account.CauseProvisioner, "the member did not delete snapshot %q: %s. The log of the driver's csi-snapshotter shows why", content.Name, warning.Message)
		}
	}
	return because(account.CausePending, "snapshot %q still exists (policy %s), and its csi-snapshotter reports nothing. Check that the snapshot-controller and the csi-snapshotter are running", content.Name, content.Spec.DeletionPolicy)
}

// snapshotsOf returns the names of the member's contents that have snapshots of a leaf PV.
func (e *explainer) snapshotsOf(ctx context.Context, pv *corev1.PersistentVolume) ([]string, error) {
	if e.LeafSnapshots() == nil || pv.Spec.CSI == nil {
		return nil, nil
	}
	driver, handle := volumesource.Of(pv)
	var list snapshotv1.VolumeSnapshotContentList
	if err := e.LeafSnapshots().List(ctx, &list, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the snapshots of volume %s: %w", pv.Name, err)
	}
	var names []string
	for i := range list.Items {
		spec := &list.Items[i].Spec
		if spec.Driver == driver && ptr.Deref(spec.Source.VolumeHandle, "") == handle {
			names = append(names, fmt.Sprintf("%q of VolumeSnapshot %q", list.Items[i].Name, snapshot.RootOf(&list.Items[i])))
		}
	}
	slices.Sort(names)
	return names, nil
}
