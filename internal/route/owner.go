package route

import (
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
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
	// NodeName is the name of the member's virtual node.
	NodeName string
	// ClusterID is the member's cluster ID.
	ClusterID string
}

// key identifies a member by its node's name or its cluster ID.
type key struct {
	kind  keyKind
	value string
}

type keyKind int

const (
	byNode keyKind = iota
	byCluster
	byAll
	byEnd // only for subscriptions: deletions, regardless of the member that the object names
)

// String returns the key as a value of the index by owner.
func (k key) String() string {
	switch k.kind {
	case byNode:
		return "node/" + k.value
	case byCluster:
		return "cluster/" + k.value
	case byAll, byEnd:
	}
	return "all"
}

// ownerNames returns an object's values in the index by owner.
func ownerNames(item any) ([]string, error) {
	obj, ok := item.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", item)
	}
	keys := ownersOf(obj)
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.String())
	}
	return names, nil
}

func (o Owner) keys() []key {
	return []key{{byNode, o.NodeName}, {byCluster, o.ClusterID}, {kind: byAll}}
}

// ownersOf returns the keys of the members that a host object concerns.
func ownersOf(obj client.Object) []key {
	keys := make([]key, 0, 3)
	add := func(kind keyKind, value string) {
		if value != "" {
			keys = append(keys, key{kind, value})
		}
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		add(byNode, obj.Spec.NodeName)
		add(byNode, obj.Status.NominatedNodeName)
		if obj.Spec.NodeName == "" && podstatus.Pushed(obj) == corev1.ConditionTrue {
			// A member may run the Pod before the host binds it, and the Pod may no longer name
			// that member.
			keys = append(keys, key{kind: byAll})
		}
	case *corev1.PersistentVolumeClaim:
		add(byNode, obj.Annotations[AnnSelectedNode])
		add(byCluster, clusterOf(obj))
		if boundWithoutUs(obj) {
			// The claim was bound to an existing volume without a selected node. The volume's member
			// must still place the claim.
			keys = append(keys, key{kind: byAll})
		}
	case *corev1.PersistentVolume:
		add(byCluster, obj.Labels[v1alpha1.LabelClusterID])
		if cluster, _, asks := hostpv.ImportOf(obj); asks {
			add(byCluster, cluster)
		}
		if hostpv.BackendOf(obj) != "" {
			// Every member that shares the backend may have a copy.
			keys = append(keys, key{kind: byAll})
		}
		if hostpv.IsPromise(obj) {
			// Pods in any member may wait for the promise, and another member's actions on it may
			// unblock or fail them.
			keys = append(keys, key{kind: byAll})
		}
	case *snapshotv1.VolumeSnapshotContent:
		if !snapshot.Own(obj) {
			return nil
		}
		if cluster, _, found := strings.Cut(ptr.Deref(obj.Spec.Source.VolumeHandle, ""), "/"); snapshot.PlacedIn(obj) != "" {
			add(byCluster, snapshot.PlacedIn(obj))
		} else if found {
			add(byCluster, cluster)
		} else {
			// A promise's handle does not name a member.
			keys = append(keys, key{kind: byAll})
		}
	case *snapshotv1.VolumeSnapshot:
		return nil // its content names the member
	case *storagev1.StorageClass, *corev1.Namespace:
		keys = append(keys, key{kind: byAll})
	default:
		add(byCluster, obj.GetLabels()[v1alpha1.LabelClusterID])
	}
	return keys
}

// clusterOf returns the ID of the cluster in which a claim is placed. If no member has the claim, it
// returns that of the member that reported on it last, which must remove its report.
func clusterOf(claim *corev1.PersistentVolumeClaim) string {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" && claim.Annotations[AnnSelectedNode] == "" {
		return mirror.ReporterOf(claim).ClusterID
	}
	return placed
}

// boundWithoutUs reports whether a claim that is not placed in a member is bound to an existing
// volume. It reports false for most claims of the host's own classes, because they name another
// provisioner.
func boundWithoutUs(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Spec.VolumeName == "" || claim.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
		return false
	}
	provisioner := claim.Annotations[volumehelpers.AnnStorageProvisioner]
	return provisioner == "" || provisioner == v1alpha1.ProvisionerName
}

// concerns reports whether an object concerns a member with one of the given keys.
func concerns(names []key, obj client.Object) bool {
	return slices.ContainsFunc(ownersOf(obj), func(owner key) bool { return slices.Contains(names, owner) })
}
