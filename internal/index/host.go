package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	podsByClaim            = "xylem.pods-by-claim"
	podsByReference        = "xylem.pods-by-reference"
	podsByNode             = "xylem.pods-by-node"
	claimsByCluster        = "xylem.claims-by-place"
	volumesByLeaf          = "xylem.volumes-by-leaf"
	volumesByCluster       = "xylem.volumes-by-place"
	volumesByCopyCluster   = "xylem.volumes-by-copies"
	volumesByClaim         = "xylem.volumes-by-claim"
	importsByLeaf          = "xylem.imports-by-leaf"
	importsByCluster       = "xylem.imports-by-place"
	promisesByClaim        = "xylem.promises-by-claim"
	promisesByCluster      = "xylem.promises-by-place"
	waitingClaimsByClass   = "xylem.waiting-claims-by-class"
	unfilledClaimsBySource = "xylem.waiting-claims-by-source"

	registrationsByCluster = "xylem.registrations-by-cluster"
	nodesByRegistration    = "xylem.nodes-by-registration"

	// anyClass indexes the waiting claims of all classes. It is not a valid class name, so no class
	// has the same key.
	anyClass = "*"
	// annotatedClass indexes the waiting claims whose class only the old annotation names.
	annotatedClass = "*annotated"
)

// SetupHostIndexes adds the indexes to the host's cache. Call it before the cache starts.
func SetupHostIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexFields(ctx, indexer, append(endingIndexFields(concernedMember), []indexField{
		{&corev1.Pod{}, podsByClaim, indexByKeys(podspec.ClaimNamesOfPod)},
		{&corev1.Pod{}, podsByReference, indexByKeys(referenceKeys)},
		{&corev1.Pod{}, podsByNode, indexByKeys(podNodeKeys)},
		{&corev1.PersistentVolumeClaim{}, claimsByCluster, indexByKey(func(claim *corev1.PersistentVolumeClaim) string {
			return claim.Annotations[v1alpha1.AnnotationPlacedIn]
		})},
		{&corev1.PersistentVolume{}, volumesByLeaf, indexHostVolumes(func(_ *corev1.PersistentVolume, cluster, leaf string) string { return cluster + "/" + leaf })},
		{&corev1.PersistentVolume{}, volumesByCopyCluster, indexByKeys(hostpv.MembersWithCopies)},
		{&corev1.PersistentVolume{}, volumesByCluster, indexHostVolumes(func(_ *corev1.PersistentVolume, cluster, _ string) string { return cluster })},
		{&corev1.PersistentVolume{}, volumesByClaim, indexHostVolumes(func(pv *corev1.PersistentVolume, _, _ string) string {
			if ref := pv.Spec.ClaimRef; ref != nil {
				return ref.Namespace + "/" + ref.Name
			}
			return ""
		})},
		{&corev1.PersistentVolume{}, importsByLeaf, indexImports(func(cluster, leaf string) string { return cluster + "/" + leaf })},
		{&corev1.PersistentVolume{}, importsByCluster, indexImports(func(cluster, _ string) string { return cluster })},
		{&corev1.PersistentVolume{}, promisesByClaim, indexPromises(func(pv *corev1.PersistentVolume) string {
			if ref := pv.Spec.ClaimRef; ref != nil {
				return string(ref.UID)
			}
			return ""
		})},
		{&corev1.PersistentVolume{}, promisesByCluster, indexPromises(func(pv *corev1.PersistentVolume) string {
			if hostpv.IsUnfulfilledPromise(pv) {
				return pv.Labels[v1alpha1.LabelClusterID]
			}
			return ""
		})},
		{&corev1.PersistentVolumeClaim{}, waitingClaimsByClass, indexByKeys(func(claim *corev1.PersistentVolumeClaim) []string {
			if claim.Status.Phase == corev1.ClaimBound || hostpv.ClassNameOf(claim) == "" {
				return nil
			}
			if claim.Spec.VolumeName == "" && hostpv.IsClassNamedOnlyByAnnotation(claim) {
				return []string{hostpv.ClassNameOf(claim), anyClass, annotatedClass}
			}
			return []string{hostpv.ClassNameOf(claim), anyClass}
		})},
		{&corev1.PersistentVolumeClaim{}, unfilledClaimsBySource, indexByKey(unfilledSourceKey)},
		{&storagev1.CSIStorageCapacity{}, segmentsByClass, indexByKey(capacityClassOf)},
		{&v1alpha1.ClusterRegistration{}, registrationsByCluster, indexByKey(func(registration *v1alpha1.ClusterRegistration) string {
			return registration.Status.ClusterID
		})},
		{&corev1.Node{}, nodesByRegistration, indexByKey(func(node *corev1.Node) string {
			if !nodes.IsVirtual(node) {
				return ""
			}
			return node.Labels[v1alpha1.LabelCluster]
		})},
	}...))
}

// VirtualNodesOf returns the Nodes that represent the member of a registration, or groups of its nodes.
func VirtualNodesOf(ctx context.Context, r client.Reader, registration string) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, indexSelector{nodesByRegistration, registration, ""}); err != nil {
		return nil, fmt.Errorf("list the virtual nodes of registration %s: %w", registration, err)
	}
	return list.Items, nil
}

// RegistrationsOfCluster returns the registrations that recorded a cluster. This is one registration, or
// two if Xylem rejects the second.
func RegistrationsOfCluster(ctx context.Context, r client.Reader, clusterID string) ([]v1alpha1.ClusterRegistration, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := r.List(ctx, &list, indexSelector{registrationsByCluster, clusterID, ""}); err != nil {
		return nil, fmt.Errorf("list the registrations of cluster %s: %w", clusterID, err)
	}
	return list.Items, nil
}

// PromiseOfClaim returns the promise whose claimRef names a claim. It returns nil if none exists, or if
// a user created several.
func PromiseOfClaim(ctx context.Context, r client.Reader, claim types.UID) (*corev1.PersistentVolume, error) {
	found, err := listVolumes(ctx, r, indexSelector{promisesByClaim, string(claim), ""})
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return &found[0], nil
}

// UnfulfilledPromisesIn returns a cluster's promises without a disk.
func UnfulfilledPromisesIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{promisesByCluster, clusterID, ""})
}

// WaitingClaimsOfClass returns the unbound claims of a class.
func WaitingClaimsOfClass(ctx context.Context, r client.Reader, class string) ([]corev1.PersistentVolumeClaim, error) {
	return listClaims(ctx, r, indexSelector{waitingClaimsByClass, class, ""})
}

// WaitingClaims returns the unbound claims that have a class.
func WaitingClaims(ctx context.Context, r client.Reader) ([]corev1.PersistentVolumeClaim, error) {
	return WaitingClaimsOfClass(ctx, r, anyClass)
}

// ClaimsWithAnnotatedClass returns the claims without a volume whose class only the old annotation names.
func ClaimsWithAnnotatedClass(ctx context.Context, r client.Reader) ([]corev1.PersistentVolumeClaim, error) {
	return WaitingClaimsOfClass(ctx, r, annotatedClass)
}

// WaitingClaimsIn returns a namespace's unbound claims that have a class.
func WaitingClaimsIn(ctx context.Context, r client.Reader, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	return listClaims(ctx, r, indexSelector{waitingClaimsByClass, anyClass, namespace})
}

// FindNamespace reads a host namespace, for the registrations' namespace rules.
func FindNamespace(ctx context.Context, r client.Reader, name string) (placement.Namespace, error) {
	cached, err := FindObject[corev1.Namespace](ctx, r, ClusterScopedKey(name))
	return placement.NamespaceOf(name, cached), err
}

// PodsOfClaim returns the host's Pods that use a claim, including finished ones.
func PodsOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.Pod, error) {
	return listPods(ctx, r, indexSelector{podsByClaim, claim.Name, claim.Namespace})
}

// PodsOfReference returns the host's Pods that refer to a ConfigMap or Secret.
func PodsOfReference(ctx context.Context, r client.Reader, kind string, key types.NamespacedName) ([]corev1.Pod, error) {
	return listPods(ctx, r, indexSelector{podsByReference, kind + "/" + key.Name, key.Namespace})
}

// groupNodes precedes a member's node name in the key of the Pods that are bound to the nodes of its groups.
const groupNodes = "*."

// podNodeKeys returns the name of a Pod's node and, for the node of a group, the key of its member.
func podNodeKeys(pod *corev1.Pod) []string {
	if pod.Spec.NodeName == "" {
		return nil
	}
	if member, found := v1alpha1.MemberNodeOf(pod.Spec.NodeName); found {
		return []string{pod.Spec.NodeName, groupNodes + member}
	}
	return []string{pod.Spec.NodeName}
}

// PodsOfMember returns the host's Pods that are bound to the node of a member, or to the nodes of its groups.
func PodsOfMember(ctx context.Context, r client.Reader, memberNode string) ([]corev1.Pod, error) {
	pods, err := PodsOnNode(ctx, r, memberNode)
	if err != nil {
		return nil, err
	}
	ofGroups, err := listPods(ctx, r, indexSelector{podsByNode, groupNodes + memberNode, ""})
	return append(pods, ofGroups...), err
}

// PodsOnNode returns the host's Pods that are bound to a node.
func PodsOnNode(ctx context.Context, r client.Reader, node string) ([]corev1.Pod, error) {
	return listPods(ctx, r, indexSelector{podsByNode, node, ""})
}

// ClaimsPlacedIn returns the root claims whose placed-in annotation names a cluster ID.
func ClaimsPlacedIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolumeClaim, error) {
	return listClaims(ctx, r, indexSelector{claimsByCluster, clusterID, ""})
}

// HostVolumesOfLeaf returns the host PVs that represent one leaf PV. This is one PV, unless a user
// created another.
func HostVolumesOfLeaf(ctx context.Context, r client.Reader, clusterID, leaf string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByLeaf, clusterID + "/" + leaf, ""})
}

// HostVolumesIn returns the host PVs whose leaf volume is in a cluster.
func HostVolumesIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByCluster, clusterID, ""})
}

// HostVolumesCopiedIn returns the host PVs of other members' shared volumes of which a cluster has, or
// may have, a copy.
func HostVolumesCopiedIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByCopyCluster, clusterID, ""})
}

// ImportsOfLeaf returns the unrecorded host PVs that request a leaf PV.
func ImportsOfLeaf(ctx context.Context, r client.Reader, clusterID, leaf string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{importsByLeaf, clusterID + "/" + leaf, ""})
}

// ImportsInCluster returns the unrecorded host PVs that request any leaf PV of a cluster.
func ImportsInCluster(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{importsByCluster, clusterID, ""})
}

// HostVolumesOfClaim returns the host PVs for member volumes whose claimRef names a claim.
func HostVolumesOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.PersistentVolume, error) {
	return listVolumes(ctx, r, indexSelector{volumesByClaim, claim.String(), ""})
}

// referenceKeys returns no keys for a Pod with too many references, so that no controller follows them.
// A Pod that an earlier version pushed keeps its references.
func referenceKeys(pod *corev1.Pod) []string {
	references, bounded := refs.BoundedReferencesOf(pod)
	if !bounded && podstatus.HadLeafPod(pod) {
		references = refs.ReferencesOfPod(pod)
	}
	keys := make([]string, 0, len(references))
	for _, ref := range references {
		keys = append(keys, ref.Kind+"/"+ref.Name)
	}
	return keys
}

func indexPromises(key func(*corev1.PersistentVolume) string) client.IndexerFunc {
	return indexByKey(func(pv *corev1.PersistentVolume) string {
		if !hostpv.IsPromise(pv) {
			return ""
		}
		return key(pv)
	})
}

func indexImports(key func(cluster, leaf string) string) client.IndexerFunc {
	return indexByKey(func(pv *corev1.PersistentVolume) string {
		cluster, leaf, ok := hostpv.RequestedImport(pv)
		if !ok {
			return ""
		}
		return key(cluster, leaf)
	})
}

func indexHostVolumes(key func(pv *corev1.PersistentVolume, cluster, leaf string) string) client.IndexerFunc {
	return indexByKey(func(pv *corev1.PersistentVolume) string {
		cluster, leaf, _, ours := hostpv.LeafOfHostVolume(pv)
		if !ours {
			return ""
		}
		return key(pv, cluster, leaf)
	})
}
