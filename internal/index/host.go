package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	podsByClaim     = "xylem.pods-by-claim"
	podsByReference = "xylem.pods-by-reference"
	podsByNode      = "xylem.pods-by-node"
	claimsByPlace   = "xylem.claims-by-place"
	volumesByLeaf   = "xylem.volumes-by-leaf"
	volumesByPlace  = "xylem.volumes-by-place"
	volumesByCopies = "xylem.volumes-by-copies"
	volumesByClaim  = "xylem.volumes-by-claim"
	importsByLeaf   = "xylem.imports-by-leaf"
	importsByPlace  = "xylem.imports-by-place"
	promisesByClaim = "xylem.promises-by-claim"
	promisesByPlace = "xylem.promises-by-place"
	claimsByClass   = "xylem.waiting-claims-by-class"
	claimsBySource  = "xylem.waiting-claims-by-source"

	registrationsByCluster = "xylem.registrations-by-cluster"

	// anyClass indexes the waiting claims of all classes. It is not a valid class name, so no class
	// has the same key.
	anyClass = "*"
	// annotatedClass indexes the waiting claims whose class only the old annotation names.
	annotatedClass = "*annotated"
)

// SetupHost adds the indexes to the host's cache. Call it before the cache starts.
func SetupHost(ctx context.Context, indexer client.FieldIndexer) error {
	return setup(ctx, indexer, append(endings(place), []field{
		{&corev1.Pod{}, podsByClaim, on(podspec.ClaimNames)},
		{&corev1.Pod{}, podsByReference, on(referenceKeys)},
		{&corev1.Pod{}, podsByNode, by(func(pod *corev1.Pod) string { return pod.Spec.NodeName })},
		{&corev1.PersistentVolumeClaim{}, claimsByPlace, by(func(claim *corev1.PersistentVolumeClaim) string {
			return claim.Annotations[v1alpha1.AnnotationPlacedIn]
		})},
		{&corev1.PersistentVolume{}, volumesByLeaf, onVolume(func(_ *corev1.PersistentVolume, cluster, leaf string) string { return cluster + "/" + leaf })},
		{&corev1.PersistentVolume{}, volumesByCopies, on(hostpv.CopiedIn)},
		{&corev1.PersistentVolume{}, volumesByPlace, onVolume(func(_ *corev1.PersistentVolume, cluster, _ string) string { return cluster })},
		{&corev1.PersistentVolume{}, volumesByClaim, onVolume(func(pv *corev1.PersistentVolume, _, _ string) string {
			if ref := pv.Spec.ClaimRef; ref != nil {
				return ref.Namespace + "/" + ref.Name
			}
			return ""
		})},
		{&corev1.PersistentVolume{}, importsByLeaf, onImport(func(cluster, leaf string) string { return cluster + "/" + leaf })},
		{&corev1.PersistentVolume{}, importsByPlace, onImport(func(cluster, _ string) string { return cluster })},
		{&corev1.PersistentVolume{}, promisesByClaim, onPromise(func(pv *corev1.PersistentVolume) string {
			if ref := pv.Spec.ClaimRef; ref != nil {
				return string(ref.UID)
			}
			return ""
		})},
		{&corev1.PersistentVolume{}, promisesByPlace, onPromise(func(pv *corev1.PersistentVolume) string {
			if hostpv.IsUnfulfilled(pv) {
				return pv.Labels[v1alpha1.LabelClusterID]
			}
			return ""
		})},
		{&corev1.PersistentVolumeClaim{}, claimsByClass, on(func(claim *corev1.PersistentVolumeClaim) []string {
			if claim.Status.Phase == corev1.ClaimBound || hostclass.NameOf(claim) == "" {
				return nil
			}
			if claim.Spec.VolumeName == "" && hostclass.NamedOnlyByAnnotation(claim) {
				return []string{hostclass.NameOf(claim), anyClass, annotatedClass}
			}
			return []string{hostclass.NameOf(claim), anyClass}
		})},
		{&corev1.PersistentVolumeClaim{}, claimsBySource, by(waitingSource)},
		{&storagev1.CSIStorageCapacity{}, segmentsByClass, by(classOf)},
		{&v1alpha1.ClusterRegistration{}, registrationsByCluster, by(func(registration *v1alpha1.ClusterRegistration) string {
			return registration.Status.ClusterID
		})},
	}...))
}

// RegistrationsOf returns the registrations that recorded a cluster. This is one registration, or
// two if Xylem rejects the second.
func RegistrationsOf(ctx context.Context, r client.Reader, clusterID string) ([]v1alpha1.ClusterRegistration, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := r.List(ctx, &list, where{registrationsByCluster, clusterID, ""}); err != nil {
		return nil, fmt.Errorf("list the registrations of cluster %s: %w", clusterID, err)
	}
	return list.Items, nil
}

// PromiseOf returns the promise whose claimRef names a claim. It returns nil if none exists, or if
// a user created several.
func PromiseOf(ctx context.Context, r client.Reader, claim types.UID) (*corev1.PersistentVolume, error) {
	found, err := volumes(ctx, r, where{promisesByClaim, string(claim), ""})
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return &found[0], nil
}

// PromisesIn returns a cluster's promises without a disk.
func PromisesIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{promisesByPlace, clusterID, ""})
}

// WaitingForClass returns the unbound claims of a class.
func WaitingForClass(ctx context.Context, r client.Reader, class string) ([]corev1.PersistentVolumeClaim, error) {
	return claims(ctx, r, where{claimsByClass, class, ""})
}

// Waiting returns the unbound claims that have a class.
func Waiting(ctx context.Context, r client.Reader) ([]corev1.PersistentVolumeClaim, error) {
	return WaitingForClass(ctx, r, anyClass)
}

// WaitingWithAnnotatedClass returns the claims without a volume whose class only the old annotation names.
func WaitingWithAnnotatedClass(ctx context.Context, r client.Reader) ([]corev1.PersistentVolumeClaim, error) {
	return WaitingForClass(ctx, r, annotatedClass)
}

// WaitingIn returns a namespace's unbound claims that have a class.
func WaitingIn(ctx context.Context, r client.Reader, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	return claims(ctx, r, where{claimsByClass, anyClass, namespace})
}

// Namespace reads a host namespace, for the registrations' namespace rules.
func Namespace(ctx context.Context, r client.Reader, name string) (placement.Namespace, error) {
	cached, err := Find[corev1.Namespace](ctx, r, Named(name))
	return placement.NamespaceOf(name, cached), err
}

// PodsOfClaim returns the host's Pods that use a claim, including finished ones.
func PodsOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.Pod, error) {
	return pods(ctx, r, where{podsByClaim, claim.Name, claim.Namespace})
}

// PodsOfReference returns the host's Pods that refer to a ConfigMap or Secret.
func PodsOfReference(ctx context.Context, r client.Reader, kind string, key types.NamespacedName) ([]corev1.Pod, error) {
	return pods(ctx, r, where{podsByReference, kind + "/" + key.Name, key.Namespace})
}

// PodsOnNode returns the host's Pods that are bound to a node.
func PodsOnNode(ctx context.Context, r client.Reader, node string) ([]corev1.Pod, error) {
	return pods(ctx, r, where{podsByNode, node, ""})
}

// ClaimsPlacedIn returns the root claims whose placed-in annotation names a cluster ID.
func ClaimsPlacedIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolumeClaim, error) {
	return claims(ctx, r, where{claimsByPlace, clusterID, ""})
}

// VolumesOfLeaf returns the host PVs that represent one leaf PV. This is one PV, unless a user
// created another.
func VolumesOfLeaf(ctx context.Context, r client.Reader, clusterID, leaf string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByLeaf, clusterID + "/" + leaf, ""})
}

// VolumesIn returns the host PVs whose leaf volume is in a cluster.
func VolumesIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByPlace, clusterID, ""})
}

// VolumesCopiedIn returns the host PVs of other members' shared volumes of which a cluster has, or
// may have, a copy.
func VolumesCopiedIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByCopies, clusterID, ""})
}

// ImportsOf returns the unrecorded host PVs that request a leaf PV.
func ImportsOf(ctx context.Context, r client.Reader, clusterID, leaf string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{importsByLeaf, clusterID + "/" + leaf, ""})
}

// ImportsIn returns the unrecorded host PVs that request any leaf PV of a cluster.
func ImportsIn(ctx context.Context, r client.Reader, clusterID string) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{importsByPlace, clusterID, ""})
}

// VolumesOfClaim returns the host PVs for member volumes whose claimRef names a claim.
func VolumesOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]corev1.PersistentVolume, error) {
	return volumes(ctx, r, where{volumesByClaim, claim.String(), ""})
}

// referenceKeys returns no keys for a Pod with too many references, so that no controller follows them.
// A Pod that an earlier version pushed keeps its references.
func referenceKeys(pod *corev1.Pod) []string {
	references, bounded := refs.Bounded(pod)
	if !bounded && podstatus.HadLeaf(pod) {
		references = refs.Of(pod)
	}
	keys := make([]string, 0, len(references))
	for _, ref := range references {
		keys = append(keys, ref.Kind+"/"+ref.Name)
	}
	return keys
}

func onPromise(key func(*corev1.PersistentVolume) string) client.IndexerFunc {
	return by(func(pv *corev1.PersistentVolume) string {
		if !hostpv.IsPromise(pv) {
			return ""
		}
		return key(pv)
	})
}

func onImport(key func(cluster, leaf string) string) client.IndexerFunc {
	return by(func(pv *corev1.PersistentVolume) string {
		cluster, leaf, ok := hostpv.ImportOf(pv)
		if !ok {
			return ""
		}
		return key(cluster, leaf)
	})
}

func onVolume(key func(pv *corev1.PersistentVolume, cluster, leaf string) string) client.IndexerFunc {
	return by(func(pv *corev1.PersistentVolume) string {
		cluster, leaf, _, ours := hostpv.LeafOf(pv)
		if !ours {
			return ""
		}
		return key(pv, cluster, leaf)
	})
}
