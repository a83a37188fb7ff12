package proof

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/route"
)

// RootGone is the proof that the host no longer has the claim with a given UID.
type RootGone struct{ witness *Witness }

func (r RootGone) rootUID() types.UID {
	if r.witness == nil {
		return ""
	}
	return r.witness.UID
}

// ProveRootGone proves by a live read that the host has no claim with the given name and UID.
func (p Prover) ProveRootGone(ctx context.Context, root types.NamespacedName, uid types.UID) (RootGone, bool, error) {
	began := p.Clock.Now()
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, root)
	if err != nil {
		return RootGone{}, false, fmt.Errorf("prove that claim %s is gone: %w", root, err)
	}
	if root.Name == "" || uid == "" || claim != nil && claim.UID == uid {
		return RootGone{}, false, nil
	}
	return RootGone{p.newWitness(began, uid, "")}, true, nil
}

// RootUnchanged is the proof that the fields that define a root claim's placement have not changed.
type RootUnchanged struct{ witness *Witness }

// ProveRootUnchanged proves by a live read that a root claim's placement has not changed. A cache filled
// by a lagging API server may lack a placement.
func (p Prover) ProveRootUnchanged(ctx context.Context, seen *corev1.PersistentVolumeClaim) (RootUnchanged, bool, error) {
	began := p.Clock.Now()
	now, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, client.ObjectKeyFromObject(seen))
	if err != nil {
		return RootUnchanged{}, false, fmt.Errorf("prove that claim %s is unchanged: %w", client.ObjectKeyFromObject(seen), err)
	}
	if now == nil || now.UID != seen.UID || now.Spec.VolumeName != seen.Spec.VolumeName ||
		now.Annotations[v1alpha1.AnnotationPlacedIn] != seen.Annotations[v1alpha1.AnnotationPlacedIn] ||
		now.Annotations[route.AnnSelectedNode] != seen.Annotations[route.AnnSelectedNode] {
		return RootUnchanged{}, false, nil
	}
	return RootUnchanged{p.newWitness(began, now.UID, now.ResourceVersion)}, true, nil
}

// HostReleased is the proof that a host PV has ended because its claim was deleted.
type HostReleased struct{ hostVolume }

// HostUnchanged is the proof that a host PV has not changed.
type HostUnchanged struct{ hostVolume }

// HostAssigned is the proof that a host PV's claimRef still names the same claim, or still no
// claim.
type HostAssigned struct{ hostVolume }

// proveHostVolume is a host PV from a live read.
type hostVolume struct {
	witness *Witness
	pv      *corev1.PersistentVolume
}

// ProveHostReleased proves by a live read that the host PV was Released from the expected claim, or has
// Failed since then, has the expected reclaim policy, and is not abandoned.
func (p Prover) ProveHostReleased(ctx context.Context, seen *corev1.PersistentVolume) (HostReleased, bool, error) {
	v, ok, err := p.proveHostVolume(ctx, seen, func(now *corev1.PersistentVolume) bool {
		return !hostpv.IsAbandonedVolume(now) && hostpv.IsReleasedOrFailed(now) && rootUIDOf(now) == rootUIDOf(seen) &&
			now.Spec.PersistentVolumeReclaimPolicy == seen.Spec.PersistentVolumeReclaimPolicy
	})
	return HostReleased{v}, ok, err
}

// ProveHostUnchanged proves by a live read that the host PV has not changed.
func (p Prover) ProveHostUnchanged(ctx context.Context, seen *corev1.PersistentVolume) (HostUnchanged, bool, error) {
	v, ok, err := p.proveHostVolume(ctx, seen, func(now *corev1.PersistentVolume) bool { return now.ResourceVersion == seen.ResourceVersion })
	return HostUnchanged{v}, ok, err
}

// ProveHostAssigned proves by a live read that the host PV's claimRef still names the claim that it
// named in seen, if any, and that the PV is not abandoned.
func (p Prover) ProveHostAssigned(ctx context.Context, seen *corev1.PersistentVolume) (HostAssigned, bool, error) {
	v, ok, err := p.proveHostVolume(ctx, seen, func(now *corev1.PersistentVolume) bool {
		return !hostpv.IsAbandonedVolume(now) && rootUIDOf(now) == rootUIDOf(seen)
	})
	return HostAssigned{v}, ok, err
}

func (p Prover) proveHostVolume(ctx context.Context, seen *corev1.PersistentVolume, still func(*corev1.PersistentVolume) bool) (hostVolume, bool, error) {
	began := p.Clock.Now()
	now, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(seen.Name))
	if err != nil {
		return hostVolume{}, false, fmt.Errorf("prove that volume %s is unchanged: %w", seen.Name, err)
	}
	if now == nil || now.UID != seen.UID || leafUIDOf(now) != leafUIDOf(seen) || !still(now) {
		return hostVolume{}, false, nil
	}
	return hostVolume{p.newWitness(began, now.UID, now.ResourceVersion), now}, true, nil
}

// rootUIDOf returns the UID of a host PV's claim, or "".
func rootUIDOf(host *corev1.PersistentVolume) types.UID {
	if host.Spec.ClaimRef == nil {
		return ""
	}
	return host.Spec.ClaimRef.UID
}

// leafUIDOf returns the UID of the leaf PV that a host PV records, or "".
func leafUIDOf(host *corev1.PersistentVolume) types.UID {
	_, _, uid, _ := hostpv.LeafOfHostVolume(host)
	return uid
}

// ClaimUnused is the proof that no Pod needs a claim's disk in this member.
type ClaimUnused struct {
	witness *Witness
	claim   types.NamespacedName
}

// ProveClaimUnused proves by a live list of the Pods in the claim's namespace, and by live reads of their
// nodes, that no Pod needs the claim's disk in this member.
func (p Prover) ProveClaimUnused(ctx context.Context, claim types.NamespacedName) (ClaimUnused, bool, error) {
	began := p.Clock.Now()
	pods, err := p.LivePodsOfClaim(ctx, claim)
	if err != nil {
		return ClaimUnused{}, false, fmt.Errorf("prove that no Pod uses claim %s: %w", claim, err)
	}
	if using, err := p.PodsUsingDisk(ctx, p.HostLive, pods); err != nil || len(using) > 0 {
		return ClaimUnused{}, false, err
	}
	return ClaimUnused{p.newWitness(began, "", ""), claim}, true, nil
}

// ProvePromiseUnmarked proves by a live read that a promise is assigned to this member, and that its disk is marked
// neither as unused nor as being released.
func (p Prover) ProvePromiseUnmarked(ctx context.Context, promise *corev1.PersistentVolume) (bool, error) {
	now, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(promise.Name))
	if err != nil {
		return false, fmt.Errorf("prove that the disk of promise %s is not being released: %w", promise.Name, err)
	}
	return now != nil && now.UID == promise.UID && !hostpv.IsReleasingDisk(now) && !hostpv.IsMarkedUnused(now) &&
		now.Labels[v1alpha1.LabelClusterID] == p.ClusterID, nil
}

// LivePodsOfClaim returns the host's Pods that use a claim, from a live list of its namespace.
func (p Prover) LivePodsOfClaim(ctx context.Context, claim types.NamespacedName) ([]corev1.Pod, error) {
	var list corev1.PodList
	var using []corev1.Pod
	err := index.ListPages(ctx, p.HostLive, &list, func() {
		using = append(using, slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !slices.Contains(podspec.ClaimNamesOfPod(&pod), claim.Name) })...)
	}, client.InNamespace(claim.Namespace))
	return using, err
}

// PodsUsingDisk returns the given Pods that need a disk in this member. It reads their nodes from host.
func (p Prover) PodsUsingDisk(ctx context.Context, host client.Reader, pods []corev1.Pod) ([]corev1.Pod, error) {
	var using []corev1.Pod
	for i := range pods {
		uses, err := p.podUsesDisk(ctx, host, &pods[i])
		if err != nil {
			return nil, err
		}
		if uses {
			using = append(using, pods[i])
		}
	}
	return using, nil
}

// podUsesDisk reports whether a Pod needs a claim's disk in this member: the Pod has not finished, and is,
// or may be, bound to one of this member's nodes. It compares the cluster that the Pod's node
// names, because the cluster may have had a different node under another registration. A node that
// does not name a cluster may belong to this member. Pods that are never pushed do not count.
func (p Prover) podUsesDisk(ctx context.Context, host client.Reader, pod *corev1.Pod) (bool, error) {
	switch {
	case podstatus.IsPodFinished(pod), podstatus.IsKeptFromMembers(pod):
		return false, nil
	case pod.Spec.NodeName == "", pod.Spec.NodeName == p.NodeName:
		return true, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, host, index.ClusterScopedKey(pod.Spec.NodeName))
	if node == nil {
		return true, err
	}
	cluster := node.Labels[v1alpha1.LabelClusterID]
	return cluster == "" || cluster == p.ClusterID, err
}
