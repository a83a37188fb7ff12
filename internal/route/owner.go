package route

import (
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// AnnSelectedNode is the annotation by which kube-scheduler requests a claim's volume on a node.
const AnnSelectedNode = volumehelpers.AnnSelectedNode

// Owner identifies a member in host objects.
type Owner struct {
	// NodeName is the name of the member's virtual node, or the last part of the names of all of them.
	NodeName string
	// ClusterID is the member's cluster ID.
	ClusterID string
}

// ownerKey identifies a member by its node's name or its cluster ID.
type ownerKey struct {
	kind  keyKind
	value string
}

type keyKind int

const (
	byNode keyKind = iota
	byCluster
	byAll
	byDeletion // only for subscriptions: deletions, regardless of the member that the object names
)

// String returns the key as a value of the index by owner.
func (k ownerKey) String() string {
	switch k.kind {
	case byNode:
		return "node/" + k.value
	case byCluster:
		return "cluster/" + k.value
	case byAll, byDeletion:
	}
	return "all"
}

// ownerIndexValues returns an object's values in the index by owner.
func ownerIndexValues(item any) ([]string, error) {
	obj, ok := item.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", item)
	}
	keys := ownerKeysOf(obj)
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.String())
	}
	return names, nil
}

func (o Owner) routingKeys() []ownerKey {
	return []ownerKey{{byNode, o.NodeName}, {byCluster, o.ClusterID}, {kind: byAll}}
}

// ownerKeysOf returns the keys of the members that a host object concerns.
func ownerKeysOf(obj client.Object) []ownerKey {
	keys := make([]ownerKey, 0, 3)
	add := func(kind keyKind, value string) {
		if value != "" {
			keys = append(keys, ownerKey{kind, value})
		}
	}
	addNode := func(name string) { // the Node may represent a member, or a group of a member's nodes
		add(byNode, name)
		if member, found := v1alpha1.MemberNodeOf(name); found {
			add(byNode, member)
		}
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		addNode(obj.Spec.NodeName)
		addNode(obj.Status.NominatedNodeName)
		if obj.Spec.NodeName == "" && podstatus.PushedStatus(obj) == corev1.ConditionTrue {
			// A member may run the Pod before the host binds it, and the Pod may no longer name
			// that member.
			keys = append(keys, ownerKey{kind: byAll})
		}
	case *corev1.PersistentVolumeClaim:
		addNode(obj.Annotations[AnnSelectedNode])
		add(byCluster, placementClusterOf(obj))
		if isBoundButUnplaced(obj) {
			// The claim was bound to an existing volume without a selected node. The volume's member
			// must still place the claim.
			keys = append(keys, ownerKey{kind: byAll})
		}
	case *corev1.PersistentVolume:
		add(byCluster, obj.Labels[v1alpha1.LabelClusterID])
		if cluster, _, asks := hostpv.RequestedImport(obj); asks {
			add(byCluster, cluster)
		}
		if hostpv.BackendOfVolume(obj) != "" {
			// Every member that shares the backend may have a copy.
			keys = append(keys, ownerKey{kind: byAll})
		}
		if hostpv.IsPromise(obj) {
			// Pods in any member may wait for the promise, and another member's actions on it may
			// unblock or fail them.
			keys = append(keys, ownerKey{kind: byAll})
		}
	case *snapshotv1.VolumeSnapshotContent:
		if !snapshot.IsXylemContent(obj) {
			return nil
		}
		if cluster, _, found := strings.Cut(ptr.Deref(obj.Spec.Source.VolumeHandle, ""), "/"); snapshot.ContentPlacedIn(obj) != "" {
			add(byCluster, snapshot.ContentPlacedIn(obj))
		} else if found {
			add(byCluster, cluster)
		} else {
			// A promise's handle does not name a member.
			keys = append(keys, ownerKey{kind: byAll})
		}
	case *snapshotv1.VolumeSnapshot:
		return nil // its content names the member
	case *storagev1.StorageClass, *corev1.Namespace, *policyv1.PodDisruptionBudget, *corev1.Service, *discoveryv1.EndpointSlice: // for Pods in any member
		keys = append(keys, ownerKey{kind: byAll})
	default:
		add(byCluster, obj.GetLabels()[v1alpha1.LabelClusterID])
	}
	return keys
}

// placementClusterOf returns the ID of the cluster in which a claim is placed. If no member has the claim, it
// returns that of the member that reported on it last, which must remove its report.
func placementClusterOf(claim *corev1.PersistentVolumeClaim) string {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" && claim.Annotations[AnnSelectedNode] == "" {
		return mirror.ReporterOfRoot(claim).ClusterID
	}
	return placed
}

// isBoundButUnplaced reports whether a claim that is not placed in a member is bound to an existing
// volume. It reports false for most claims of the host's own classes, because they name another
// provisioner.
func isBoundButUnplaced(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Spec.VolumeName == "" || claim.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
		return false
	}
	provisioner := claim.Annotations[volumehelpers.AnnStorageProvisioner]
	return provisioner == "" || provisioner == v1alpha1.ProvisionerName
}

// concernsMember reports whether an object concerns a member with one of the given keys.
func concernsMember(names []ownerKey, obj client.Object) bool {
	return slices.ContainsFunc(ownerKeysOf(obj), func(owner ownerKey) bool { return slices.Contains(names, owner) })
}
